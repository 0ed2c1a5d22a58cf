// SPDX-License-Identifier: Apache-2.0
//
// The event-driven calls of the soak test.
#include <memory>
#include <optional>
#include <utility>

#include "caller.h"
#include "soak.curtail.h"

namespace curtail::soak {
namespace {

// One call after the other.
class EventCall final : public Completion {
 public:
  EventCall(Planner& planner, Watch& watch, Tally& tally)
      : planner_(planner), watch_(watch), tally_(tally), slot_(watch.NewSlot()) {}

  bool idle() const { return !plan_; }

  void Start(const Route& route) {
    plan_ = planner_.Draw(route);
    plan_->cancel_after.reset();  // there is no such thing
    verdict_.emplace("event-driven", *plan_, watch_, tally_);
    metadata_.Clear();
    Metadata metadata;
    if (!plan_->text.empty()) metadata.Add("x-soak", plan_->text), metadata.Add("x-soak-bin", plan_->bytes);
    const Deadline deadline = verdict_->deadline();
    slot_->Begin("event-driven to " + route.name, nullptr, TimePoint::max(), deadline.when());
    const auto path = planner_.Chance(0.5) ? Woven::kEcho.path : Woven::kFanOut.path;
    copies_ = path == Woven::kEcho.path ? 1 : 3;
    route.channel->Start(path, deadline, metadata, plan_->request.SerializeAsString(), this);
  }

  void OnMetadata(ReplyMetadata&& metadata) override { metadata_ = std::move(metadata); }
  void Done(absl::Status&& status, std::string&& bytes) override {
    slot_->End();
    if (verdict_->Ended(status)) {
      Packet reply;
      std::string expected;
      for (int i = 0; i < copies_; ++i) expected += plan_->request.payload();
      verdict_->Expect(reply.ParseFromString(bytes) && reply.payload() == expected, "the payload differs");
      verdict_->ExpectMetadata(metadata_.initial, "initial");
      verdict_->ExpectMetadata(metadata_.trailing, "trailing");
    }
    verdict_.reset();
    plan_.reset();
  }

 private:
  Planner& planner_;
  Watch& watch_;
  Tally& tally_;
  Watch::Slot* const slot_;
  std::optional<Plan> plan_;
  std::optional<Verdict> verdict_;
  ReplyMetadata metadata_;
  int copies_ = 1;
};

}  // namespace

void CallByEvents(uint64_t seed, Client& client, const std::vector<Route>& routes, size_t in_flight,
                  Watch& watch, Tally& tally, const std::function<bool()>& stop,
                  const std::function<bool()>& due) {
  Planner planner(seed);
  std::vector<std::unique_ptr<EventCall>> calls;
  for (size_t i = 0; i < in_flight; ++i) calls.push_back(std::make_unique<EventCall>(planner, watch, tally));
  while (true) {
    const bool stopping = stop();
    bool idle = true;
    for (const auto& call : calls) {
      if (!stopping && call->idle() && due()) call->Start(routes[planner.rng().Below(routes.size())]);
      idle &= call->idle();
    }
    if (stopping && idle) return;
    client.Poll(Deadline::In(std::chrono::milliseconds(5)));
  }
}

}  // namespace curtail::soak
