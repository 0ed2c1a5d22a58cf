// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/admin/admin_service.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "curtail/base/internal/connection_counts.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/observe/http_admin_guard.h"
#include "curtail/rpc/admin/admin.curtail.h"
#include "curtail/rpc/server/server_core.h"

namespace curtail::internal {
namespace {

int64_t Micros(Nanos time) { return std::chrono::duration_cast<std::chrono::microseconds>(time).count(); }
int64_t SinceEpoch(TimePoint time) { return Nanos(time.time_since_epoch()).count(); }
// An estimate has no more digits than that.
double ToTenth(double rate) { return std::round(rate * 10) / 10; }

std::string Printable(std::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (c < ' ' || c > '~') c = '?';
  }
  return printable;
}

void Fill(const PolicyDecision& of, admin::v1::Decision* decision) {
  decision->set_at_ns(SinceEpoch(of.when));
  decision->set_rate_per_s(ToTenth(of.rate_per_s));
  decision->set_from(of.from.ToString());
  decision->set_to(of.to.ToString());
  decision->set_reason(Printable(of.reason));
  decision->set_failure(Printable(Message(of.status)));
}

void Fill(const PolicyStats& of, admin::v1::Policy* policy) {
  policy->set_name(Printable(of.policy));
  policy->set_note(Printable(of.note));
  policy->set_switches_by_itself(of.switches_by_itself);
  policy->set_rate_per_s(ToTenth(of.rate_per_s));
  policy->set_fast_rate_per_s(ToTenth(of.fast_rate_per_s));
  policy->set_paper_rate_per_s(ToTenth(of.paper_rate_per_s));
  policy->set_arrivals(of.arrivals);
  policy->set_evaluations(of.evaluations);
  policy->set_switches(of.switches);
  policy->set_failures(of.failures);
  policy->set_last_failure(Printable(of.last_failure));
  for (const PolicyDecision& decision : of.decisions) Fill(decision, policy->add_decisions());
}

void Fill(const ExecutorStats& of, admin::v1::GetStatusReply* status) {
  status->set_config(of.config.ToString());
  for (const ExecutorStats::Pool& each : of.pools) {
    admin::v1::Pool* const pool = status->add_pools();
    pool->set_name(each.name);
    pool->set_threads(each.threads);
    pool->set_active(each.active);
    pool->set_waiting(each.waiting);
    pool->set_parked(each.parked);
  }
  status->set_spinning_threads(of.spinning);
  status->set_sleeping_threads(of.asleep);
  status->set_fibers(of.fibers);
  status->set_queued(of.queued);
  status->set_begun(of.begun);
  status->set_queue_wait_us(Micros(of.queue_wait));
  status->set_max_queue_wait_us(Micros(of.max_queue_wait));
}

void Fill(const ThreadStats& of, admin::v1::Process* process) {
  process->set_threads(of.threads);
  process->set_voluntary_switches(of.voluntary_switches);
  process->set_involuntary_switches(of.involuntary_switches);
  process->set_cpu_us(Micros(of.cpu));
  process->set_run_delay_us(Micros(of.run_delay));
}

// Checks that the caller may change this process. Errors: PERMISSION_DENIED.
absl::Status CheckMayChange(const Context& ctx, std::string_view token) {
  if (ctx.peer().starts_with("unix:")) return absl::OkStatus();
  const std::optional<std::string_view> given = ctx.metadata().Find("authorization");
  if (!given) {
    return absl::PermissionDeniedError(
        "a change over TCP needs the server's token: set CURTAIL_ADMIN_TOKEN, or use the server's --admin "
        "unix:PATH");
  }
  if (token.empty()) {
    return absl::PermissionDeniedError(
        "the server was started without CURTAIL_ADMIN_TOKEN: start it with one, or use its --admin "
        "unix:PATH");
  }
  if (observe::SameSecret(*given, Join("Bearer ", token))) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "the server refuses this CURTAIL_ADMIN_TOKEN; set the token that the server was started with");
}

void Fill(const FenceStats& stats, admin::v1::Fences* fences) {
  fences->set_mode(std::string(FenceModeName(stats.mode)));
  fences->set_limiter(stats.limiter);
  for (const FenceClassStats& from : stats.classes) {
    admin::v1::FenceClass* const to = fences->add_classes();
    to->set_name(from.name);
    to->set_limit(from.limit);
    to->set_in_use(from.in_use);
    to->set_waiting(from.waiting);
    to->set_begun(from.begun);
    to->set_queued(from.queued);
    to->set_refused(from.refused);
    to->set_borrowed(from.borrowed);
    to->set_shed(from.shed);
    to->set_late(from.late);
    to->set_no_credit(from.no_credit);
    for (const std::string& method : from.methods) to->add_methods(method);
  }
  for (const UndeclaredCalls& from : stats.undeclared) {
    admin::v1::UndeclaredCalls* const to = fences->add_undeclared();
    to->set_method(from.method);
    to->set_service(from.service);
    to->set_times(from.times);
  }
}

class AdminService final : public admin::v1::Admin::Service {
 public:
  explicit AdminService(ServerCore* core) : core_(core) {}

  absl::Status Switch(Context& ctx, const admin::v1::SwitchRequest& request,
                      admin::v1::SwitchReply* reply) override {
    const absl::Status may = CheckMayChange(ctx, core_->options().admin_token);
    if (!may.ok()) return may;
    const absl::StatusOr<Config> config = Config::Parse(request.config());
    if (!config.ok()) return config.status();
    reply->set_previous(core_->executor().config().ToString());
    return core_->SwitchTo(*config);
  }

  absl::Status SetLogLevel(Context& ctx, const admin::v1::SetLogLevelRequest& request,
                           admin::v1::SetLogLevelReply* reply) override {
    reply->set_previous(std::string(SeverityName(LogLevel())));
    if (request.level().empty()) return absl::OkStatus();
    const absl::Status may = CheckMayChange(ctx, core_->options().admin_token);
    if (!may.ok()) return may;
    return ChangeLogLevel(request.level());
  }

  absl::Status GetConfig(Context&, const admin::v1::GetConfigRequest&,
                         admin::v1::GetConfigReply* reply) override {
    reply->set_config(core_->executor().config().ToString());
    return absl::OkStatus();
  }

  absl::Status GetStatus(Context&, const admin::v1::GetStatusRequest&,
                         admin::v1::GetStatusReply* reply) override {
    const ServerStats stats = core_->Sample(/*process=*/true);
    *reply = StatusMessage(stats, Now());
    return absl::OkStatus();
  }

  absl::Status GetDecisions(Context&, const admin::v1::GetDecisionsRequest&,
                            admin::v1::GetDecisionsReply* reply) override {
    const Adaptation* const adaptation = core_->adaptation();
    const PolicyStats stats = adaptation == nullptr ? PolicyStats() : adaptation->Stats(SIZE_MAX);
    *reply = DecisionsMessage(stats, Now());
    return absl::OkStatus();
  }

 private:
  ServerCore* const core_;
};

}  // namespace

absl::Status ChangeLogLevel(std::string_view text) {
  const std::optional<Severity> level = ParseSeverity(text);
  if (!level)
    return absl::InvalidArgumentError(
        Join("\"", text, "\" is not a level of the log; write debug, info, warning or error"));
  SetLogLevel(*level);
  return absl::OkStatus();
}

admin::v1::GetStatusReply StatusMessage(const ServerStats& stats, TimePoint now) {
  admin::v1::GetStatusReply status;
  status.set_now_ns(SinceEpoch(now));
  Fill(stats.pools, &status);
  status.set_connections(stats.connections);
  status.set_open_calls(stats.open_calls);
  status.set_held_bytes(stats.held_bytes);
  if (stats.policy) Fill(*stats.policy, status.mutable_policy());
  Fill(stats.process, status.mutable_process());
  for (const HeldUpMethod& method : stats.held_up) {
    admin::v1::HeldUpMethod* const held_up = status.add_held_up();
    held_up->set_path(method.path);
    held_up->set_times(method.times);
    held_up->set_blocks(method.blocks);
  }
  for (const ConnectionCounts::Row& row : ConnectionCounts::ToStores().Read()) {
    admin::v1::Store* const store = status.add_stores();
    store->set_name(Printable(row.target));
    store->set_up(!row.silent);
    store->set_connections(row.open);
    store->set_attempts(row.attempts);
    store->set_failures(row.failures);
    store->set_lost(row.lost);
  }
  for (const LimitCount& limit : stats.limits) {
    admin::v1::LimitCount* const reached = status.add_limits();
    reached->set_name(limit.name);
    reached->set_times(limit.times);
  }
  if (stats.fences) Fill(*stats.fences, status.mutable_fences());
  if (stats.credits) {
    admin::v1::Credits* const credits = status.mutable_credits();
    credits->set_total(stats.credits->total);
    credits->set_issued(stats.credits->issued);
    credits->set_accounts(stats.credits->accounts);
  }
  for (const RefusalCount& refusal : stats.refusals) {
    admin::v1::RefusalCount* const refused = status.add_refusals();
    refused->set_reason(refusal.reason);
    refused->set_times(refusal.times);
  }
  return status;
}

admin::v1::GetDecisionsReply DecisionsMessage(const PolicyStats& stats, TimePoint now) {
  admin::v1::GetDecisionsReply reply;
  reply.set_now_ns(SinceEpoch(now));
  reply.set_switches(stats.switches);
  for (const PolicyDecision& decision : stats.decisions) Fill(decision, reply.add_decisions());
  return reply;
}

std::unique_ptr<Service> NewAdminService(ServerCore* core) { return std::make_unique<AdminService>(core); }

}  // namespace curtail::internal
