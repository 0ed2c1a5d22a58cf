// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/internal/driver.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/load/drive/methods.h"

namespace curtail::internal {
namespace {

// How long a poll may last at most, so that a stop request is noticed.
constexpr Nanos kLongestWait = std::chrono::milliseconds(50);
constexpr Nanos kSecond = std::chrono::seconds(1);
constexpr const char* kInterruptedBefore = "interrupted before the run began";

Nanos ThreadCpu() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + Nanos(t.tv_nsec);
}

// Until `when`, or a signal.
void SleepUntil(TimePoint when) {
  const Nanos left = when.time_since_epoch();
  const timespec t{.tv_sec = static_cast<time_t>(left / kSecond), .tv_nsec = (left % kSecond).count()};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

// A later request may succeed: the server is busy, or a part of it is away.
bool IsOfTheMoment(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
      return true;
    default:
      return false;
  }
}

}  // namespace

// A call before the run: is the target there, and does it take such requests?
struct Driver::Probe final : LoadCompletion {
  bool done = false;
  absl::Status status;
  void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
};

struct Driver::Call final : LoadCompletion {
  Driver* driver = nullptr;
  uint64_t number = 0;  // of this thread's requests
  Nanos intended{0};
  Nanos sent{0};
  std::optional<Nanos> arrived;  // the reply, at the kernel
  bool active = false;
  size_t target = 0;
  size_t method = 0;  // by methods_
  int retries = 0;
  Nanos paused{0};           // between the steps of a journey
  Nanos later_lag{0};        // of its steps after the first
  RequestTracer::Root root;  // with a tracer

  void OnRetry() override { ++retries; }
  void OnStep(const Step& step) override { driver->StepEnded(this, step); }
  void OnArrival(TimePoint when) override { arrived = when - driver->start_; }
  void Done(absl::Status&& status, std::string&& reply) override { driver->Ended(this, status, reply); }
};

Driver::Driver(const RunOptions& options, const Workload& workload, LoadPlan plan, const RateCurve* curve)
    : options_(options),
      workload_(workload),
      journey_(workload.journey()),
      timeout_(options.timeout),
      warmup_(options.warmup),
      poisson_(plan.arrivals == "poisson"),
      curve_(curve),
      failure_latency_(plan.failure_latency()),
      recorder_(std::move(plan), workload.score_name()),
      sampler_(curve),
      margin_(options.spin),
      // The step after a reply must not wait for it to be read.
      unread_(options, /*may_stay=*/curve != nullptr && journey_ == nullptr),
      client_(MakeLoadClient(options, journey_)) {
  if (journey_ != nullptr) return;
  const std::vector<WorkloadMethod> methods = MethodsOf(workload);
  for (const WorkloadMethod& method : methods) firsts_.push_back(method.first);
  if (methods.size() < 2) return;
  for (const WorkloadMethod& method : methods) methods_.emplace(method.path, methods_.size());
}

Driver::~Driver() = default;

absl::Status Driver::Preflight(bool strict) {
  if (absl::Status status = client_->Resolve(); !status.ok()) return status;
  // Whoever asked for so many requests gets no others.
  unprobed_ =
      options_.requests > 0 && !options_.first_must_succeed && !options_.stream && journey_ == nullptr;
  if (unprobed_) return absl::OkStatus();
  const size_t targets = options_.targets.size();
  int each = options_.channel.connections;
  if (options_.stream && options_.stream->kind == StreamOptions::Kind::kBoth) {
    each = std::max(each, options_.stream->count);  // all streams are open before the run
  }
  std::vector<uint64_t> requests(targets * static_cast<size_t>(each));
  std::iota(requests.begin(), requests.end(), 0);
  if (options_.first_must_succeed) {
    for (const uint64_t first : firsts_) {
      if (first >= targets * static_cast<size_t>(each)) requests.push_back(first);
    }
  }
  probes_ = std::vector<Probe>(requests.size());
  const Nanos patience = std::max<Nanos>(timeout_, 5 * kSecond);
  const Deadline deadline = Deadline::In(patience);
  for (size_t i = 0; i < probes_.size(); ++i) {
    // A journey may change its server: no two threads make the same.
    const uint64_t index = probes_[i].index = journey_ != nullptr ? IndexOf(requests[i]) : requests[i];
    probes_[i].step_timeout = patience;
    probes_[i].longest_pause = kSecond;
    client_->Start(i % targets, workload_.MethodOf(index), deadline, MetadataOf(index, &drawn_metadata_),
                   workload_.Request(index), &probes_[i]);
  }
  // Ends: each call has a deadline, which the client keeps.
  const auto under_way = [&] {
    return std::any_of(probes_.begin(), probes_.end(), [](const Probe& p) { return !p.done; });
  };
  while (under_way() && !Stopped()) client_->Poll(Deadline::In(kLongestWait));
  if (under_way()) return absl::CancelledError(kInterruptedBefore);
  for (size_t target = 0; target < targets; ++target) {
    if (absl::Status status = JudgeTarget(target); !status.ok()) return status;
  }
  if (absl::Status status = JudgeRequests(strict); !status.ok()) return status;
  if (journey_ != nullptr) first_index_ = probes_.size();
  probes_.clear();
  return absl::OkStatus();
}

absl::Status Driver::JudgeTarget(size_t target) const {
  // A server that answers may refuse calls, and one may stall: the run counts those.
  const bool answered = client_->Answered(target);
  bool unimplemented = true;
  for (size_t i = target; i < probes_.size(); i += options_.targets.size()) {
    const absl::Status& status = probes_[i].status;
    if (absl::IsUnavailable(status) && !answered) return status;
    unimplemented &= absl::IsUnimplemented(status);
  }
  return unimplemented ? probes_[target].status : absl::OkStatus();
}

absl::Status Driver::JudgeRun(const LoadResult& result) const {
  if (result.ok > 0 || result.interrupted || result.codes.size() != 1) return absl::OkStatus();
  const bool away = absl::IsUnavailable(first_failure_) && NobodyAnswered();
  return away || absl::IsUnimplemented(first_failure_) ? first_failure_ : absl::OkStatus();
}

bool Driver::NobodyAnswered() const {
  for (size_t target = 0; target < options_.targets.size(); ++target) {
    if (client_->Answered(target)) return false;
  }
  return true;
}

absl::Status Driver::JudgeRequests(bool strict) const {
  const bool journey = journey_ != nullptr;
  if (!options_.first_must_succeed && !journey) return absl::OkStatus();
  for (const Probe& probe : probes_) {
    if (probe.status.ok() || (!strict && IsOfTheMoment(probe.status.code()))) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        strict ? "" : "nothing was measured, as ", "the first ",
        journey ? "journey" : absl::StrCat("request of ", std::string(workload_.MethodOf(probe.index))),
        " failed: ", absl::StatusCodeToString(probe.status.code()), ": ", probe.status.message()));
  }
  return absl::OkStatus();
}

absl::Status Driver::Start() {
  const TimePoint at = options_.start_at.value_or(Now());
  if (const Nanos late = Now() - at; options_.start_at && late > Nanos::zero()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the time to start passed %.3f s before the targets had answered: choose a later one",
                        InSeconds(late)));
  }
  while (Now() < at && !Stopped()) client_->Poll(Deadline::At(std::min(at, Now() + kLongestWait)));
  if (options_.start_at && Stopped()) return absl::CancelledError(kInterruptedBefore);
  start_ = Now();
  started_ = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  next_tick_ = kSecond;
  if (options_.observer != nullptr) options_.observer->Started(start_);
  return absl::OkStatus();
}

Driver::Call* Driver::TakeCall() {
  if (free_.empty()) {
    calls_.emplace_back();
    calls_.back().driver = this;
    calls_.back().step_timeout = timeout_;
    return &calls_.back();
  }
  Call* call = free_.back();
  free_.pop_back();
  return call;
}

const Metadata& Driver::MetadataOf(uint64_t index, Metadata* drawn) const {
  if (options_.drawn_metadata == nullptr) return options_.metadata;
  return *drawn = options_.drawn_metadata->Render(index);
}

void Driver::Prepare(uint64_t number) {
  if (prepared_ && prepared_number_ == number) return;
  prepared_message_ = workload_.Request(IndexOf(number));
  prepared_number_ = number;
  prepared_ = true;
}

void Driver::Send(uint64_t number, Nanos intended) {
  if (intended >= warmup_) ++measured_;
  if (in_flight_ >= options_.max_in_flight) {
    ++failed_;
    Observe(intended, Nanos::zero(), false);
    return recorder_.Dropped(intended);
  }
  Prepare(number);
  prepared_ = false;
  unread_.Sent(prepared_message_.size());
  Call* call = TakeCall();
  const uint64_t index = call->index = IndexOf(number);
  call->number = number;
  call->intended = intended;
  call->arrived.reset();
  call->active = true;
  call->retries = 0;
  call->paused = call->later_lag = Nanos::zero();
  ++in_flight_;
  ++sent_;
  // Each round begins one target later, so that no target gets the same lines of a file each time.
  const size_t targets = options_.targets.size();
  call->target = (number + number / targets) % targets;
  const Metadata* metadata = &MetadataOf(index, &drawn_metadata_);
  if (options_.tracer != nullptr) {
    traced_metadata_ = *metadata;
    call->root = options_.tracer->Begin(&traced_metadata_);
    metadata = &traced_metadata_;
  }
  const Nanos now = call->sent = Elapsed();
  recorder_.Sent(intended, now);
  if (intended >= warmup_) {
    if (first_measured_ == kNone) first_measured_ = number;
    sampler_.Sent(number - first_measured_, now);
  }
  const std::string_view method = workload_.MethodOf(index);
  if (!methods_.empty()) {
    const auto known = methods_.find(method);
    call->method = known == methods_.end() ? methods_.size() : known->second;
  }
  client_->Start(call->target, method, Deadline::At(start_ + intended + timeout_), *metadata,
                 prepared_message_, call);
}

void Driver::StepEnded(Call* call, const LoadCompletion::Step& step) {
  recorder_.StepDone(call->intended, step.step, step.latency, step.status.ok());
  if (step.step == 0) return;
  call->paused += step.pause;
  call->later_lag += step.lag;
}

void Driver::Ended(Call* call, const absl::Status& status, std::string_view reply) {
  const Nanos now = Elapsed();
  const Nanos end = std::clamp(call->arrived.value_or(now), std::min(call->sent, now), now);
  const Nanos done = end - call->paused;
  unread_.Ended(call->arrived.has_value(), reply.size());
  const double score =
      status.ok() ? workload_.Score(call->index, reply) : std::numeric_limits<double>::quiet_NaN();
  recorder_.Done(call->intended, call->sent + call->later_lag, done, status, score);
  recorder_.MethodDone(call->intended, call->method, done - call->intended, status.ok());
  if (options_.checks != nullptr && status.ok()) CheckReply(call->intended, reply);
  if (journey_ != nullptr && status.ok()) recorder_.DoneWithPauses(call->intended, end - call->intended);
  if (call->retries > 0) recorder_.Retried(call->intended, call->retries);
  Observe(call->intended, done - call->intended, status.ok());
  if (options_.tracer != nullptr) {
    options_.tracer->End(call->root, workload_.MethodOf(call->index), options_.targets[call->target],
                         start_ + call->sent, start_ + done, status, recorder_.Measured(call->intended));
  }
  if (call->intended >= warmup_) sampler_.Done(call->number - first_measured_, done - call->intended);
  if (!status.ok() && failed_ == 0) {
    first_failure_ = status;
    hopeless_ = unprobed_ && ok_ == 0 && absl::IsUnavailable(status) && NobodyAnswered();
  }
  ++(status.ok() ? ok_ : failed_);
  --in_flight_;
  call->active = false;
  free_.push_back(call);
}

void Driver::CheckReply(Nanos due, std::string_view reply) {
  if (!recorder_.Measured(due)) return;
  failed_checks_.clear();
  options_.checks->Judge(
      reply, [&](size_t check, std::string_view found) { failed_checks_.emplace_back(check, found); });
  recorder_.Checked(due, failed_checks_);
}

void Driver::Observe(Nanos due, Nanos latency, bool ok) const {
  if (options_.observer == nullptr) return;
  options_.observer->Ended(due, ok ? latency : std::max(latency, failure_latency_), ok);
}

void Driver::Poll() {
  client_->Poll(Deadline::At(TimePoint()));
  Housekeep(Elapsed());
}

void Driver::PollUntil(Nanos when) {
  const Nanos now = Elapsed();
  Housekeep(now);
  when = std::min(when, client_->NextDue() - start_);
  const Nanos wake = std::min({when - margin_.get(), next_tick_, now + kLongestWait});
  if (wake > now) {
    if (unread_.MayStay(in_flight_, wake - now)) {
      SleepUntil(start_ + wake);
      return margin_.Fired(std::max(Elapsed() - wake, Nanos::zero()));
    }
    const size_t ended = client_->Poll(Deadline::At(start_ + wake));
    // Nothing ended: so it was the timer, unless it was something else and too early.
    if (const Nanos late = Elapsed() - wake; ended == 0 && late > Nanos::zero()) margin_.Fired(late);
    return;
  }
  const size_t ended = client_->Poll(Deadline::At(TimePoint()));
  if (ended == 0 && window_open_) spin_ += Elapsed() - now;
}

uint64_t Driver::DueUntil(Nanos now) const {
  if (curve_ == nullptr) return sent_;
  return static_cast<uint64_t>(std::llround(curve_->Expected(std::min(now, curve_->length()))));
}

void Driver::Housekeep(Nanos now) {
  if (now >= next_tick_) {
    const LoadInterval& last = recorder_.Tick(now, DueUntil(now), in_flight_);
    next_tick_ = now + recorder_.interval();
    if (Live* live = options_.live; live != nullptr) {
      const double seconds = static_cast<double>(last.length.count()) / 1e9;
      live->p50_ns.store(last.p50.count(), std::memory_order_relaxed);
      live->p99_ns.store(last.p99.count(), std::memory_order_relaxed);
      live->due_per_s.store(static_cast<double>(last.due) / seconds, std::memory_order_relaxed);
      live->sent_per_s.store(static_cast<double>(last.sent) / seconds, std::memory_order_relaxed);
    }
  }
  Publish(now);
}

void Driver::Publish(Nanos now) {
  Live* live = options_.live;
  if (live == nullptr) return;
  live->elapsed_ns.store(now.count(), std::memory_order_relaxed);
  live->sent.store(sent_, std::memory_order_relaxed);
  live->ok.store(ok_, std::memory_order_relaxed);
  live->failed.store(failed_, std::memory_order_relaxed);
  live->in_flight.store(in_flight_, std::memory_order_relaxed);
}

void Driver::Drain(Nanos limit) {
  while (in_flight_ > 0) {
    const Nanos now = Elapsed();
    Housekeep(now);
    if (now >= limit) break;
    const Nanos due = client_->NextDue() - start_;
    client_->Poll(Deadline::At(start_ + std::min({limit, now + kLongestWait, due - margin_.get()})));
  }
  if (in_flight_ == 0) return;
  for (Call& call : calls_) {
    if (!call.active) continue;
    if (journey_ != nullptr && Stopped()) {
      recorder_.Cut(call.intended);
      continue;
    }
    const Nanos now = Elapsed();
    recorder_.Unfinished(call.intended, call.sent, now);
    recorder_.MethodDone(call.intended, call.method, now - call.intended, false);
    Observe(call.intended, now - call.intended, false);
  }
}

void Driver::BeginWindow() {
  if (window_open_) return;
  window_open_ = true;
  cpu_ = ThreadCpu();
  spin_ = Nanos::zero();
}

void Driver::EndWindow() {
  if (!window_open_) return;
  window_open_ = false;
  cpu_ = ThreadCpu() - cpu_;
}

LoadResult Driver::Finish(Nanos end, bool interrupted) {
  const Nanos now = Elapsed();
  Publish(now);
  recorder_.LastTick(now, DueUntil(now));
  LoadResult result = recorder_.Finish(end, interrupted, cpu_, spin_, sampler_.Check(poisson_));
  result.plan.spin = margin_.get();
  result.started = started_;
  if (result.ok == 0 && result.failed > 0 && absl::IsDeadlineExceeded(first_failure_) &&
      result.codes.size() == 1)
    result.warnings.push_back(
        "nothing was answered: does the server stand still, or does it not speak this protocol?");
  for (std::string& warning : client_->Warnings()) result.warnings.push_back(std::move(warning));
  return result;
}

}  // namespace curtail::internal
