// SPDX-License-Identifier: Apache-2.0
#include "caller.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/rpc/when_all.h"
#include "soak.curtail.h"

namespace curtail::soak {
namespace {

std::string Times(const std::string& text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

// The time at which a plan has its call cancelled.
TimePoint CancelAt(const Plan& plan) {
  return plan.cancel_after ? Now() + *plan.cancel_after : TimePoint::max();
}

}  // namespace

Caller::Caller(uint64_t seed, std::vector<Route> routes, std::vector<std::string> raw, Watch& watch,
               Tally& tally)
    : routes_(std::move(routes)),
      raw_(std::move(raw)),
      watch_(watch),
      tally_(tally),
      slot_(watch.NewSlot()),
      planner_(seed) {}

void Caller::CallOnce() {
  using Method = void (Caller::*)(Context&, const Plan&, Verdict&);
  struct Kind {
    const char* name;
    Method method;
  };
  static constexpr Kind kKinds[] = {
      {"unary", &Caller::Echo},
      {"straight fan-out", &Caller::StraightFanOut},
      {"woven fan-out", &Caller::WovenFanOut},
      {"client's fan-out", &Caller::ClientFanOut},
      {"together", &Caller::AwaitAll},
      {"client streams", &Caller::Upload},
      {"server streams", &Caller::Replies},
      {"both stream", &Caller::Chat},
  };
  const size_t drawn = planner_.rng().Below(std::size(kKinds) + 1);
  if (drawn == std::size(kKinds)) return BreakOff();
  const Method method = kKinds[drawn].method;
  Run(kKinds[drawn].name,
      [&](Context& ctx, const Plan& plan, Verdict& verdict) { (this->*method)(ctx, plan, verdict); });
}

void Caller::Run(const std::string& kind, const Body& body) {
  const Plan plan = planner_.Draw(routes_[planner_.rng().Below(routes_.size())]);
  Verdict verdict(kind, plan, watch_, tally_);
  Context ctx(verdict.deadline());
  if (!plan.text.empty()) ctx.AddMetadata("x-soak", plan.text), ctx.AddMetadata("x-soak-bin", plan.bytes);
  slot_->Begin(absl::StrCat(kind, " to ", plan.route.name), &ctx, CancelAt(plan), verdict.deadline().when());
  body(ctx, plan, verdict);
  slot_->End();
}

void Caller::Echo(Context& ctx, const Plan& plan, Verdict& verdict) {
  Packet reply;
  ReplyMetadata metadata;
  const absl::Status status = Woven::Stub(plan.route.channel).Echo(ctx, plan.request, &reply, &metadata);
  const bool ok = verdict.Ended(status);
  if (ok) verdict.Expect(reply.payload() == plan.request.payload(), "the payload differs");
  if (ok) verdict.ExpectMetadata(metadata.initial, "initial");
  if (ok || status.message() == "as asked") verdict.ExpectMetadata(metadata.trailing, "trailing");
}

void Caller::StraightFanOut(Context& ctx, const Plan& plan, Verdict& verdict) {
  Packet reply;
  if (verdict.Ended(Straight::Stub(plan.route.channel).FanOut(ctx, plan.request, &reply)))
    verdict.Expect(reply.payload() == Times(plan.request.payload(), 3), "the payload differs");
}

void Caller::WovenFanOut(Context& ctx, const Plan& plan, Verdict& verdict) {
  Packet reply;
  ReplyMetadata metadata;
  if (!verdict.Ended(Woven::Stub(plan.route.channel).FanOut(ctx, plan.request, &reply, &metadata))) return;
  verdict.Expect(reply.payload() == Times(plan.request.payload(), 3), "the payload differs");
  verdict.ExpectMetadata(metadata.trailing, "trailing");
}

// To all routes of the plan's client at once: judged by the plan's own, and the others' answers if there are any.
void Caller::ClientFanOut(Context& ctx, const Plan& plan, Verdict& verdict) {
  std::vector<Channel*> channels = {plan.route.channel};
  for (const Route& route : routes_) channels.push_back(route.channel);
  std::vector<Packet> requests(channels.size(), plan.request);
  for (Packet& request : requests)
    request.mutable_payload()->append(absl::StrCat(&request - requests.data()));
  const auto replies = ctx.FanOut(channels, Woven::kEcho, requests);
  verdict.Ended(replies[0].status());
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].ok())
      verdict.Expect(replies[i]->payload() == requests[i].payload(), "the payload differs");
  }
}

void Caller::AwaitAll(Context& ctx, const Plan& plan, Verdict& verdict) {
  Channel* const channel = plan.route.channel;
  Packet other = plan.request;
  other.set_payload(planner_.Payload(64u << 10));
  auto [echo, fan] = curtail::AwaitAll(ctx, Ask(channel, Woven::kEcho, plan.request),
                                       Ask(channel, Straight::kFanOut, other));
  verdict.Ended(echo.status());
  if (echo.ok()) verdict.Expect(echo->payload() == plan.request.payload(), "the payload differs");
  if (fan.ok())
    verdict.Expect(fan->payload() == Times(other.payload(), 3), "the payload of the fan-out differs");
}

void Caller::Upload(Context& ctx, const Plan& plan, Verdict& verdict) {
  auto stream = Streams::Stub(plan.route.channel).Upload(ctx);
  std::string sent;
  const int count = static_cast<int>(planner_.rng().Below(40));
  for (int i = 0; i < count; ++i) {
    Packet packet;
    packet.set_payload(planner_.Payload(64u << 10));
    sent += packet.payload();
    if (!stream.Write(packet)) break;
  }
  stream.Write(plan.request);  // its code ends the call
  sent += plan.request.payload();
  Packet reply;
  if (!verdict.Ended(stream.Finish(&reply))) return;
  verdict.Expect(reply.payload() == sent, "the payload differs");
  verdict.ExpectMetadata(stream.InitialMetadata(), "initial");
  verdict.ExpectMetadata(stream.metadata().trailing, "trailing");
}

void Caller::Replies(Context& ctx, const Plan& plan, Verdict& verdict) {
  Packet request = plan.request;
  request.mutable_payload()->resize(std::min<size_t>(request.payload().size(), 64u << 10));
  request.set_count(static_cast<int>(planner_.rng().Below(40)));
  auto stream = Streams::Stub(plan.route.channel).Watch(ctx, request);
  int came = 0;
  for (Packet reply; stream.Read(&reply); ++came)
    verdict.Expect(reply.payload() == request.payload(), "the payload differs");
  if (!verdict.Ended(stream.Finish())) return;
  verdict.Expect(came == request.count(), "the number of messages differs");
  verdict.ExpectMetadata(stream.metadata().trailing, "trailing");
}

void Caller::Chat(Context& ctx, const Plan& plan, Verdict& verdict) {
  auto stream = Streams::Stub(plan.route.channel).Chat(ctx);
  const int count = static_cast<int>(planner_.rng().Below(30));
  Packet reply;
  bool open = true;
  for (int i = 0; open && i < count; ++i) {
    Packet packet;
    packet.set_payload(planner_.Payload(64u << 10));
    open = stream.Write(packet) && stream.Read(&reply);
    if (open) verdict.Expect(reply.payload() == packet.payload(), "the payload differs");
  }
  if (open && stream.Write(plan.request) && stream.Read(&reply))
    verdict.Expect(reply.payload() == plan.request.payload(), "the payload differs");
  if (verdict.Ended(stream.Finish())) verdict.ExpectMetadata(stream.metadata().trailing, "trailing");
}

void Caller::BreakOff() {
  slot_->Begin("a peer that breaks off", nullptr, TimePoint::max(), Now() + kAmple);
  BreakOffAt(raw_[planner_.rng().Below(raw_.size())], planner_);
  slot_->End();
}

}  // namespace curtail::soak
