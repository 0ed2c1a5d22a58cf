// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/status_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/rpc/admin/admin_json.h"
#include "nlohmann/json.hpp"

namespace curtail::tool {
namespace {

using curtail::internal::StatusJson;

admin::v1::GetStatusReply AStatus() {
  admin::v1::GetStatusReply status;
  status.set_now_ns(20'000'000'000);
  status.set_config("SDB1-4");
  admin::v1::Pool* const pool = status.add_pools();
  pool->set_name("workers");
  pool->set_threads(4), pool->set_active(1), pool->set_waiting(2), pool->set_parked(3);
  status.set_spinning_threads(5), status.set_sleeping_threads(6), status.set_fibers(7);
  status.set_queued(8), status.set_begun(uint64_t{1} << 60);
  status.set_queue_wait_us(int64_t{3} << 60), status.set_max_queue_wait_us(11);
  status.set_connections(12), status.set_open_calls(13);
  status.set_held_bytes(14 << 10);
  admin::v1::Process* const process = status.mutable_process();
  process->set_threads(14), process->set_voluntary_switches(15), process->set_involuntary_switches(16);
  process->set_cpu_us(17'250'000), process->set_run_delay_us(18'000);
  return status;
}

void AddPolicy(admin::v1::GetStatusReply* status, int decisions) {
  admin::v1::Policy* const policy = status->mutable_policy();
  policy->set_name("mutune"), policy->set_note("a \"note\""), policy->set_switches_by_itself(true);
  policy->set_rate_per_s(1234.6), policy->set_fast_rate_per_s(99), policy->set_paper_rate_per_s(0.5);
  policy->set_arrivals(1), policy->set_evaluations(2), policy->set_switches(3), policy->set_failures(4);
  policy->set_last_failure("too many threads");
  for (int i = 0; i < decisions; ++i) {
    admin::v1::Decision* const decision = policy->add_decisions();
    decision->set_at_ns(status->now_ns() - (decisions - i) * 1'000'999'999LL);
    decision->set_rate_per_s(100.1), decision->set_from("SIB1"), decision->set_to("SDB1-4");
    decision->set_reason("lower predicted latency");
    if (i == 0) decision->set_failure("refused");
  }
}

TEST(StatusText, ShowsPoolsQueueAndProcess) {
  EXPECT_EQ(
      StatusText(AStatus()),
      "config SDB1-4\n"
      "\n"
      "pool        threads   active  waiting   parked\n"
      "workers           4        1        2        3\n"
      "\n"
      "5 spinning, 6 without a role, 7 fibers\n"
      "queue: 8 now, 1152921504606846976 requests taken so far after 3 us each; the longest since the last "
      "look waited 11 us\n"
      "12 connections, 13 open calls, 14 KiB held for them\n"
      "process: 14 threads, 15 voluntary and 16 involuntary switches, 17.2 s on CPUs, 0.0 s ready without "
      "one\n");
}

TEST(StatusText, ShowsMethodsThatHeldAThreadUp) {
  admin::v1::GetStatusReply status = AStatus();
  admin::v1::HeldUpMethod* const sleeper = status.add_held_up();
  sleeper->set_path("/a.B/Sleep"), sleeper->set_times(3), sleeper->set_blocks(true);
  admin::v1::HeldUpMethod* const computer = status.add_held_up();
  computer->set_path("/a.B/Compute"), computer->set_times(1);
  const std::string text = StatusText(status);
  EXPECT_NE(text.find("\n/a.B/Sleep held a thread up, 3 times: it sleeps, so that each of its calls has a "
                      "thread of its own\n/a.B/Compute held a thread up, once\n"),
            std::string::npos)
      << text;
}

TEST(BlockingNotes, NameMethodsThatSleepUnderAConfigOfFewThreads) {
  admin::v1::GetStatusReply status;
  admin::v1::HeldUpMethod* const sleeper = status.add_held_up();
  sleeper->set_path("/a.B/Sleep"), sleeper->set_blocks(true);
  status.add_held_up()->set_path("/a.B/Compute");
  const std::vector<std::string> notes = BlockingNotes(status, *Config::Parse("SDB1-2"));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "/a.B/Sleep sleeps outside of curtail's waits, so the 2 threads of SDB1-2 answer no more of its "
            "calls at a time; "
            "under auto each call has a thread of its own");
  EXPECT_TRUE(BlockingNotes(status, Config::Auto()).empty());
  EXPECT_TRUE(BlockingNotes({}, *Config::Parse("SIB1")).empty());
}

TEST(StatusText, ShowsStores) {
  admin::v1::GetStatusReply status = AStatus();
  admin::v1::Store* const store = status.add_stores();
  store->set_name("redis unix:/r"), store->set_up(true), store->set_connections(3), store->set_attempts(5);
  store->set_failures(1), store->set_lost(2);
  *status.add_stores() = *store;
  status.mutable_stores(1)->set_up(false);
  EXPECT_NE(
      StatusText(status).find("\nstore redis unix:/r: up, 3 connections, 2 lost, 1 of 5 attempts failed\n"
                              "store redis unix:/r: DOWN, "),
      std::string::npos)
      << StatusText(status);
  EXPECT_EQ(nlohmann::json::parse(StatusJson(status))["stores"][1],
            nlohmann::json::parse(R"({"name": "redis unix:/r", "up": false, "connections": 3, "attempts": 5,)"
                                  R"( "failures": 1, "lost": 2})"));
}

TEST(StatusText, ShowsThePolicyAndItsLastTenSwitches) {
  admin::v1::GetStatusReply status = AStatus();
  AddPolicy(&status, 2);
  EXPECT_NE(StatusText(status).find(
                "policy mutune: 1235 requests/s (99 by the last few), switches: 3, failed: 4\n"
                "  a \"note\"\n"
                "       2.001 s ago, at 100/s: SIB1 -> SDB1-4 (lower predicted latency) failed: refused\n"
                "       1.000 s ago, at 100/s: SIB1 -> SDB1-4 (lower predicted latency)\n"
                "\npool "),
            std::string::npos)
      << StatusText(status);
  AddPolicy(&status, 12);
  const std::string text = StatusText(status);
  EXPECT_NE(text.find("10.009 s ago"), std::string::npos) << text;
  EXPECT_EQ(text.find("11.010 s ago"), std::string::npos) << text;
  status.mutable_policy()->set_switches_by_itself(false);
  EXPECT_NE(StatusText(status).find("policy mutune\n"), std::string::npos) << StatusText(status);
}

// The fields that programs rely on, and their types.
TEST(StatusJson, HasTheFieldsOfItsSchemaVersion) {
  admin::v1::GetStatusReply status = AStatus();
  admin::v1::HeldUpMethod* const held_up = status.add_held_up();
  held_up->set_path("/a.B/C"), held_up->set_times(3), held_up->set_blocks(true);
  admin::v1::LimitCount* const limit = status.add_limits();
  limit->set_name("resets"), limit->set_times(7);
  admin::v1::RefusalCount* const refusal = status.add_refusals();
  refusal->set_reason("waited too long"), refusal->set_times(9);
  EXPECT_TRUE(StatusText(status).ends_with(
      "\nlimit resets: reached 7 times by clients\noverload: waited too long, 9 times\n"));
  admin::v1::Credits* const credits = status.mutable_credits();
  credits->set_total(20), credits->set_issued(18), credits->set_accounts(3);
  EXPECT_TRUE(StatusText(status).ends_with("times\ncredits: 20, of which 3 connections have 18\n"));
  const auto json = nlohmann::json::parse(StatusJson(status));
  EXPECT_EQ(json, nlohmann::json::parse(R"({
    "schema_version": 1, "config": "SDB1-4",
    "pools": [{"name": "workers", "threads": 4, "active": 1, "waiting": 2, "parked": 3}],
    "spinning_threads": 5, "sleeping_threads": 6, "fibers": 7, "queued": 8, "begun": 1152921504606846976,
    "queue_wait_us": 3458764513820540928, "max_queue_wait_us": 11, "connections": 12, "open_calls": 13,
    "held_bytes": 14336,
    "held_up": [{"path": "/a.B/C", "times": 3, "blocks": true}], "limits": {"resets": 7}, "stores": [],
    "refusals": {"waited too long": 9},
    "credits": {"total": 20, "issued": 18, "accounts": 3}, "fences": null, "policy": null,
    "process": {"threads": 14, "voluntary_switches": 15, "involuntary_switches": 16, "cpu_us": 17250000,
                "run_delay_us": 18000}})"));
  AddPolicy(&status, 1);
  const auto with_policy = nlohmann::json::parse(StatusJson(status));
  EXPECT_EQ(with_policy["policy"], nlohmann::json::parse(R"({
    "name": "mutune", "note": "a \"note\"", "switches_by_itself": true, "rate_per_s": 1234.6,
    "fast_rate_per_s": 99.0, "paper_rate_per_s": 0.5, "arrivals": 1, "evaluations": 2, "switches": 3, "failures": 4,
    "last_failure": "too many threads",
    "decisions": [{"ago_ms": 1000, "rate_per_s": 100.1, "from": "SIB1", "to": "SDB1-4",
                   "reason": "lower predicted latency", "failure": "refused"}]})"));
  EXPECT_TRUE(with_policy["policy"]["fast_rate_per_s"].is_number_float());
}

TEST(StatusText, ShowsTheFences) {
  admin::v1::GetStatusReply status = AStatus();
  status.mutable_fences()->set_mode("on");
  status.mutable_fences()->set_limiter("sct");
  admin::v1::FenceClass* const local = status.mutable_fences()->add_classes();
  local->set_name("local"), local->set_begun(9);
  admin::v1::FenceClass* const users = status.mutable_fences()->add_classes();
  users->set_name("a.Users"), users->set_limit(4), users->set_in_use(3), users->set_waiting(2);
  users->set_begun(50), users->set_queued(6), users->set_refused(7), users->set_borrowed(8);
  users->set_shed(11), users->set_late(12), users->set_no_credit(13), users->add_methods("/a.Front/Show");
  admin::v1::UndeclaredCalls* const calls = status.mutable_fences()->add_undeclared();
  calls->set_method("/a.B/C"), calls->set_service("a.Posts"), calls->set_times(10);
  EXPECT_TRUE(
      StatusText(status).ends_with("\nfences on, limits follow sct\n"
                                   " permits   in use  waiting      begun     queued    refused   borrowed   "
                                   "    shed       late  no credit  services\n"
                                   "       -        0        0          9          0          0          0   "
                                   "       0          0          0  local\n"
                                   "       4        3        2         50          6          7          8   "
                                   "      11         12         13  a.Users\n"
                                   "/a.B/C called a.Posts, which it has not declared: 10 undeclared calls\n"))
      << StatusText(status);
  const auto json = nlohmann::json::parse(StatusJson(status));
  EXPECT_EQ(json["fences"]["mode"], "on");
  EXPECT_EQ(json["fences"]["limiter"], "sct");
  status.mutable_fences()->set_limiter("fixed");
  EXPECT_NE(StatusText(status).find("\nfences on\n"), std::string::npos);
  EXPECT_EQ(json["fences"]["classes"][1], nlohmann::json::parse(R"({
    "services": "a.Users", "permits": 4, "in_use": 3, "waiting": 2, "begun": 50, "queued": 6, "refused": 7,
    "borrowed": 8, "shed": 11, "late": 12, "no_credit": 13, "methods": ["/a.Front/Show"]})"));
  EXPECT_EQ(json["fences"]["undeclared"],
            nlohmann::json::parse(R"([{"method": "/a.B/C", "service": "a.Posts", "times": 10}])"));
}

// Empty lists stay lists; a line for people ends what is written.
TEST(StatusJson, IsWholeForAnEmptyMessage) {
  const std::string text = StatusJson({});
  EXPECT_TRUE(text.starts_with("{\n  \"begun\": 0,\n")) << text;
  EXPECT_TRUE(text.ends_with("\n}\n")) << text;
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["pools"], nlohmann::json::array());
  EXPECT_EQ(json["process"]["cpu_us"], 0);
}

}  // namespace
}  // namespace curtail::tool
