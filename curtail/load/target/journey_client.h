// SPDX-License-Identifier: Apache-2.0
//
// journey_client.h - the LoadClient of journeys (journey.h), each one a request, over the client of their steps.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "curtail/load/message/journey.h"
#include "curtail/load/target/load_client.h"

namespace curtail::internal {

// A JourneyClient sends the first step with Start() and each later one when it is due: after the reply before and the
// pause. Each step has LoadCompletion::step_timeout. A failed step ends the journey; its name goes in front of the message.
class JourneyClient final : public LoadClient {
 public:
  // `journey` outlives the client.
  JourneyClient(std::unique_ptr<LoadClient> client, const Journey& journey);
  ~JourneyClient() override;

  absl::Status Resolve() override { return client_->Resolve(); }
  // `metadata` goes with every step, which may add its own. `message` and `deadline` are the first step's, which was due
  // done->step_timeout before the deadline.
  void Start(size_t target, std::string_view method, Deadline deadline, const Metadata& metadata,
             std::string_view message, LoadCompletion* done) override;
  // Counts steps.
  size_t Poll(Deadline deadline) override;
  bool Answered(size_t target) const override { return client_->Answered(target); }
  std::vector<std::string> Warnings() const override { return client_->Warnings(); }
  TimePoint NextDue() const override { return waiting_.empty() ? TimePoint::max() : waiting_.top().first; }

 private:
  // A journey in flight.
  struct Run;
  using Waiting = std::pair<TimePoint, Run*>;

  Run* Take();
  void SendDue();
  void Send(Run* run, std::string_view message);
  // Prepares the next step, or ends the journey.
  void StepEnded(Run* run, absl::Status&& status, std::string&& reply);
  void Next(Run* run, TimePoint end);
  void Fail(Run* run, const absl::Status& why);
  void End(Run* run, absl::Status&& status, std::string&& reply);

  const Journey& journey_;

  std::deque<Run> runs_;
  std::vector<Run*> free_;
  // The earliest on top.
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  // Destroyed first, before the runs that it may complete.
  const std::unique_ptr<LoadClient> client_;
};

}  // namespace curtail::internal
