// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/target/journey_client.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace curtail::internal {

struct JourneyClient::Run final : LoadCompletion {
  JourneyClient* client = nullptr;
  LoadCompletion* done = nullptr;
  size_t target = 0;
  size_t step = 0;
  Nanos pause{0};  // before the step
  TimePoint due;   // of the step
  TimePoint sent;
  std::optional<TimePoint> arrived;  // its reply, at the kernel
  std::string message;               // of a step that waits
  Metadata metadata;                 // of all steps
  KeptValues kept;

  void OnRetry() override { done->OnRetry(); }
  void OnArrival(TimePoint when) override { arrived = when; }
  void Done(absl::Status&& status, std::string&& reply) override {
    client->StepEnded(this, std::move(status), std::move(reply));
  }
};

JourneyClient::JourneyClient(std::unique_ptr<LoadClient> client, const Journey& journey)
    : journey_(journey), client_(std::move(client)) {}

JourneyClient::~JourneyClient() = default;

JourneyClient::Run* JourneyClient::Take() {
  if (free_.empty()) {
    runs_.emplace_back().client = this;
    return &runs_.back();
  }
  Run* run = free_.back();
  free_.pop_back();
  return run;
}

void JourneyClient::Start(size_t target, std::string_view /*method*/, Deadline deadline,
                          const Metadata& metadata, std::string_view message, LoadCompletion* done) {
  Run* run = Take();
  run->done = done;
  run->index = done->index;
  run->target = target;
  run->step = 0;
  run->pause = Nanos::zero();
  run->due = deadline.when() - done->step_timeout;
  run->metadata = metadata;
  run->kept.clear();
  Send(run, message);
}

void JourneyClient::Send(Run* run, std::string_view message) {
  run->arrived.reset();
  Metadata metadata = run->metadata;
  if (absl::Status status = journey_.AddStepMetadata(run->step, run->index, run->kept, &metadata);
      !status.ok())
    return Fail(run, status);
  run->sent = Now();
  client_->Start(run->target, journey_.StepMethod(run->step),
                 Deadline::At(run->due + run->done->step_timeout), metadata, message, run);
}

void JourneyClient::SendDue() {
  while (!waiting_.empty() && waiting_.top().first <= Now()) {
    Run* run = waiting_.top().second;
    waiting_.pop();
    const std::string message = std::move(run->message);
    Send(run, message);
  }
}

size_t JourneyClient::Poll(Deadline deadline) {
  SendDue();
  const size_t ended = client_->Poll(std::min(deadline, Deadline::At(NextDue())));
  SendDue();
  return ended;
}

void JourneyClient::StepEnded(Run* run, absl::Status&& status, std::string&& reply) {
  const TimePoint now = Now();
  const TimePoint end = std::clamp(run->arrived.value_or(now), std::min(run->sent, now), now);
  if (status.ok()) status = journey_.Keep(run->step, reply, &run->kept);
  run->done->OnStep({.step = run->step,
                     .pause = run->pause,
                     .lag = run->sent - run->due,
                     .latency = end - run->due,
                     .status = status});
  if (!status.ok() || run->step + 1 == journey_.steps()) return End(run, std::move(status), std::move(reply));
  Next(run, end);
}

void JourneyClient::Next(Run* run, TimePoint end) {
  ++run->step;
  run->pause = std::min(journey_.PauseBefore(run->step, run->index), run->done->longest_pause);
  run->due = end + run->pause;
  absl::StatusOr<std::string> message = journey_.StepRequest(run->step, run->index, run->kept);
  if (!message.ok()) return Fail(run, message.status());
  run->message = *std::move(message);
  waiting_.emplace(run->due, run);
}

// The step cannot be sent.
void JourneyClient::Fail(Run* run, const absl::Status& why) {
  run->arrived.reset();
  run->done->OnStep({.step = run->step,
                     .pause = Nanos::zero(),
                     .lag = Nanos::zero(),
                     .latency = Nanos::zero(),
                     .status = why});
  End(run, absl::Status(why), {});
}

void JourneyClient::End(Run* run, absl::Status&& status, std::string&& reply) {
  LoadCompletion* done = run->done;
  if (run->arrived) done->OnArrival(*run->arrived);
  if (!status.ok()) {
    status = absl::Status(status.code(), absl::StrCat("step ", std::string(journey_.StepName(run->step)),
                                                      ": ", status.message()));
  }
  free_.push_back(run);
  done->Done(std::move(status), std::move(reply));
}

}  // namespace curtail::internal
