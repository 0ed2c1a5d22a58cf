// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/admin/admin_json.h"

#include <utility>

#include "nlohmann/json.hpp"

namespace curtail::internal {
namespace {

using nlohmann::json;

// Sorted keys; a byte that is no UTF-8 becomes a replacement character.
std::string Document(const json& document) {
  return document.dump(2, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

int64_t AgoMs(const admin::v1::Decision& decision, const admin::v1::GetStatusReply& status) {
  return (status.now_ns() - decision.at_ns()) / 1'000'000;
}

json PolicyJson(const admin::v1::GetStatusReply& status) {
  if (!status.has_policy()) return nullptr;
  const admin::v1::Policy& policy = status.policy();
  json decisions = json::array();
  for (const admin::v1::Decision& decision : policy.decisions()) {
    decisions.push_back({{"ago_ms", AgoMs(decision, status)},
                         {"rate_per_s", decision.rate_per_s()},
                         {"from", decision.from()},
                         {"to", decision.to()},
                         {"reason", decision.reason()},
                         {"failure", decision.failure()}});
  }
  return {{"name", policy.name()},
          {"note", policy.note()},
          {"switches_by_itself", policy.switches_by_itself()},
          {"rate_per_s", policy.rate_per_s()},
          {"fast_rate_per_s", policy.fast_rate_per_s()},
          {"paper_rate_per_s", policy.paper_rate_per_s()},
          {"arrivals", policy.arrivals()},
          {"evaluations", policy.evaluations()},
          {"switches", policy.switches()},
          {"failures", policy.failures()},
          {"last_failure", policy.last_failure()},
          {"decisions", std::move(decisions)}};
}

json PoolsJson(const admin::v1::GetStatusReply& status) {
  json pools = json::array();
  for (const admin::v1::Pool& pool : status.pools()) {
    pools.push_back({{"name", pool.name()},
                     {"threads", pool.threads()},
                     {"active", pool.active()},
                     {"waiting", pool.waiting()},
                     {"parked", pool.parked()}});
  }
  return pools;
}

json HeldUpJson(const admin::v1::GetStatusReply& status) {
  json methods = json::array();
  for (const admin::v1::HeldUpMethod& method : status.held_up()) {
    methods.push_back({{"path", method.path()}, {"times", method.times()}, {"blocks", method.blocks()}});
  }
  return methods;
}

json LimitsJson(const admin::v1::GetStatusReply& status) {
  json limits = json::object();
  for (const admin::v1::LimitCount& limit : status.limits()) limits[limit.name()] = limit.times();
  return limits;
}

json StoresJson(const admin::v1::GetStatusReply& status) {
  json stores = json::array();
  for (const admin::v1::Store& store : status.stores()) {
    stores.push_back({{"name", store.name()},
                      {"up", store.up()},
                      {"connections", store.connections()},
                      {"attempts", store.attempts()},
                      {"failures", store.failures()},
                      {"lost", store.lost()}});
  }
  return stores;
}

json RefusalsJson(const admin::v1::GetStatusReply& status) {
  json refusals = json::object();
  for (const admin::v1::RefusalCount& refusal : status.refusals()) {
    refusals[refusal.reason()] = refusal.times();
  }
  return refusals;
}

json FencesJson(const admin::v1::GetStatusReply& status) {
  if (!status.has_fences()) return nullptr;
  json classes = json::array();
  for (const admin::v1::FenceClass& c : status.fences().classes()) {
    classes.push_back({{"services", c.name()},
                       {"permits", c.limit()},
                       {"in_use", c.in_use()},
                       {"waiting", c.waiting()},
                       {"begun", c.begun()},
                       {"queued", c.queued()},
                       {"refused", c.refused()},
                       {"borrowed", c.borrowed()},
                       {"shed", c.shed()},
                       {"late", c.late()},
                       {"no_credit", c.no_credit()},
                       {"methods", c.methods()}});
  }
  json undeclared = json::array();
  for (const admin::v1::UndeclaredCalls& calls : status.fences().undeclared()) {
    undeclared.push_back(
        {{"method", calls.method()}, {"service", calls.service()}, {"times", calls.times()}});
  }
  return {{"mode", status.fences().mode()},
          {"limiter", status.fences().limiter()},
          {"classes", std::move(classes)},
          {"undeclared", std::move(undeclared)}};
}

json CreditsJson(const admin::v1::GetStatusReply& status) {
  if (!status.has_credits()) return nullptr;
  return {{"total", status.credits().total()},
          {"issued", status.credits().issued()},
          {"accounts", status.credits().accounts()}};
}

}  // namespace

std::string StatusJson(const admin::v1::GetStatusReply& status) {
  const admin::v1::Process& process = status.process();
  const json document = {{"schema_version", 1},
                         {"config", status.config()},
                         {"pools", PoolsJson(status)},
                         {"spinning_threads", status.spinning_threads()},
                         {"sleeping_threads", status.sleeping_threads()},
                         {"fibers", status.fibers()},
                         {"queued", status.queued()},
                         {"begun", status.begun()},
                         {"queue_wait_us", status.queue_wait_us()},
                         {"max_queue_wait_us", status.max_queue_wait_us()},
                         {"connections", status.connections()},
                         {"open_calls", status.open_calls()},
                         {"held_bytes", status.held_bytes()},
                         {"held_up", HeldUpJson(status)},
                         {"limits", LimitsJson(status)},
                         {"stores", StoresJson(status)},
                         {"refusals", RefusalsJson(status)},
                         {"credits", CreditsJson(status)},
                         {"fences", FencesJson(status)},
                         {"policy", PolicyJson(status)},
                         {"process",
                          {{"threads", process.threads()},
                           {"voluntary_switches", process.voluntary_switches()},
                           {"involuntary_switches", process.involuntary_switches()},
                           {"cpu_us", process.cpu_us()},
                           {"run_delay_us", process.run_delay_us()}}}};
  return Document(document);
}

std::string ConfigJson(const ServerStats& stats) {
  const PolicyStats* const policy = stats.policy ? &*stats.policy : nullptr;
  return Document({{"config", stats.pools.config.ToString()},
                   {"policy", policy == nullptr ? json(nullptr) : json(policy->policy)},
                   {"switches_by_itself", policy != nullptr && policy->switches_by_itself}});
}

std::string SwitchedJson(std::string_view previous, std::string_view config) {
  return Document({{"previous", previous}, {"config", config}});
}

std::string ThreadsJson(const std::vector<observe::ThreadUsage>& threads) {
  json list = json::array();
  for (const observe::ThreadUsage& thread : threads) {
    list.push_back({{"id", thread.id},
                    {"name", thread.name},
                    {"state", std::string(1, thread.state)},
                    {"cpu_us", thread.cpu.count() / 1000},
                    {"run_delay_us", thread.run_delay.count() / 1000},
                    {"voluntary_switches", thread.voluntary_switches},
                    {"involuntary_switches", thread.involuntary_switches}});
  }
  return Document({{"threads", std::move(list)}});
}

}  // namespace curtail::internal
