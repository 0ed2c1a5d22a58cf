// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "curtail/rpc/client/message_bytes.h"
#include "curtail/rpc/server/builtin_services.h"
#include "curtail/rpc/server/server_core.h"

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

int64_t Micros(Nanos time) { return std::chrono::duration_cast<std::chrono::microseconds>(time).count(); }

// As a JSON string, for text without non-ASCII characters of its own.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c >= ' ' && c <= '~' ? c : '?';
  }
  return quoted + "\"";
}

std::string Rate(double per_s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", per_s);
  return text;
}

// What follows its time.
std::string ToJson(const PolicyDecision& of) {
  return Join(",\"rate_per_s\":", Rate(of.rate_per_s), ",\"from\":\"", of.from.ToString(), "\",\"to\":\"",
              of.to.ToString(), "\",\"reason\":", Quoted(of.reason),
              ",\"failure\":", Quoted(Message(of.status)), "}");
}

std::string ToJson(const PolicyStats& of) {
  const TimePoint now = Now();
  std::string decisions;
  for (const PolicyDecision& decision : of.decisions) {
    const auto ago = std::chrono::duration_cast<std::chrono::milliseconds>(now - decision.when);
    decisions += Join(decisions.empty() ? "" : ",", "{\"ago_ms\":", ago.count(), ToJson(decision));
  }
  return Join("{\"name\":", Quoted(of.policy), ",\"note\":", Quoted(of.note),
              ",\"switches_by_itself\":", of.switches_by_itself ? "true" : "false",
              ",\"rate_per_s\":", Rate(of.rate_per_s), ",\"fast_rate_per_s\":", Rate(of.fast_rate_per_s),
              ",\"paper_rate_per_s\":", Rate(of.paper_rate_per_s), ",\"arrivals\":", of.arrivals,
              ",\"evaluations\":", of.evaluations, ",\"switches\":", of.switches,
              ",\"failures\":", of.failures, ",\"last_failure\":", Quoted(of.last_failure),
              ",\"decisions\":[", decisions, "]}");
}

std::string ToJson(const ServerStats& stats) {
  std::string pools;
  for (const ExecutorStats::Pool& pool : stats.pools.pools) {
    pools +=
        Join(pools.empty() ? "" : ",", "{\"name\":\"", pool.name, "\",\"threads\":", pool.threads,
             ",\"active\":", pool.active, ",\"waiting\":", pool.waiting, ",\"parked\":", pool.parked, "}");
  }
  const ExecutorStats& of = stats.pools;
  const std::string policy = stats.policy ? ToJson(*stats.policy) : "null";
  return Join(
      "{\"schema_version\":1,\"config\":\"", of.config.ToString(), "\",\"pools\":[", pools,
      "],\"spinning_threads\":", of.spinning, ",\"sleeping_threads\":", of.asleep, ",\"fibers\":", of.fibers,
      ",\"queued\":", of.queued, ",\"begun\":", of.begun, ",\"queue_wait_us\":", Micros(of.queue_wait),
      ",\"max_queue_wait_us\":", Micros(of.max_queue_wait), ",\"connections\":", stats.connections,
      ",\"open_calls\":", stats.open_calls, ",\"policy\":", policy,
      ",\"process\":{\"threads\":", stats.process.threads,
      ",\"voluntary_switches\":", stats.process.voluntary_switches,
      ",\"involuntary_switches\":", stats.process.involuntary_switches,
      ",\"cpu_us\":", Micros(stats.process.cpu), ",\"run_delay_us\":", Micros(stats.process.run_delay), "}}");
}

// All decisions that are remembered. Times are Now()'s, so programs on one machine can compare theirs.
std::string DecisionsJson(const Adaptation* adaptation) {
  const PolicyStats of = adaptation == nullptr ? PolicyStats() : adaptation->Stats(SIZE_MAX);
  std::string decisions;
  for (const PolicyDecision& decision : of.decisions) {
    decisions += Join(decisions.empty() ? "" : ",", "{\"at_ns\":", decision.when.time_since_epoch().count(),
                      ToJson(decision));
  }
  return Join("{\"schema_version\":1,\"now_ns\":", Now().time_since_epoch().count(),
              ",\"switches\":", of.switches, ",\"decisions\":[", decisions, "]}");
}

class AdminService final : public Service {
 public:
  explicit AdminService(ServerCore* core) : core_(core) {}

  std::string_view FullName() const override { return "curtail.admin.v1.Admin"; }

  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Switch",
             .handler = [this](Context&, std::string_view request,
                               std::string* reply) { return Switch(request, reply); }},
            {.name = "GetConfig",
             .handler =
                 [this](Context&, std::string_view, std::string* reply) {
                   MessageWriter out;
                   out.Bytes(1, core_->executor().config().ToString());
                   *reply = out.Take();
                   return absl::OkStatus();
                 }},
            {.name = "GetStatus",
             .handler =
                 [this](Context&, std::string_view, std::string* reply) {
                   MessageWriter out;
                   out.Bytes(1, ToJson(core_->Sample(/*process=*/true)));
                   *reply = out.Take();
                   return absl::OkStatus();
                 }},
            {.name = "GetDecisions", .handler = [this](Context&, std::string_view, std::string* reply) {
               MessageWriter out;
               out.Bytes(1, DecisionsJson(core_->adaptation()));
               *reply = out.Take();
               return absl::OkStatus();
             }}};
  }

 private:
  absl::Status Switch(std::string_view request, std::string* reply) {
    std::string text;
    if (!ForEachField(request, [&](int field, std::string_view bytes, uint64_t) {
          if (field == 1) text = bytes;
        })) {
      return absl::InternalError("request is no valid curtail.admin.v1.SwitchRequest");
    }
    absl::StatusOr<Config> config = Config::Parse(text);
    if (!config.ok()) return config.status();
    const std::string previous = core_->executor().config().ToString();
    if (absl::Status switched = core_->SwitchTo(*config); !switched.ok()) return switched;
    MessageWriter out;
    out.Bytes(1, previous);
    *reply = out.Take();
    return absl::OkStatus();
  }

  ServerCore* const core_;
};

}  // namespace

std::unique_ptr<Service> NewAdminService(ServerCore* core) { return std::make_unique<AdminService>(core); }

}  // namespace curtail::internal
