// SPDX-License-Identifier: Apache-2.0
#include "apps/router/get_attempts.h"

#include <algorithm>

#include "curtail/base/strings.h"

namespace curtail::router {
namespace {

// A client that sets no deadline is served for so many `get_timeout`s; a replica that stalls does not hold it
// for good.
constexpr int kTimeoutsWithoutDeadline = 10;
// Part of the client's time that a refill may take: the answer waits for it.
constexpr int kRefillPart = 4;

}  // namespace

GetAttempts::GetAttempts(Routing& routing, Context& ctx, std::string_view key)
    : routing_(routing),
      ctx_(ctx),
      deadline_(ctx.deadline().infinite()
                    ? Deadline::In(kTimeoutsWithoutDeadline * routing.replicas->options().get_timeout)
                    : ctx.deadline()),
      shard_(routing.replicas->ShardOfKey(key)),
      order_(routing.replicas->InTurn(shard_)) {}

bool GetAttempts::Next() {
  if (found_) return false;
  if (failed_.size() > 0 && (ctx_.cancelled() || deadline_.Expired())) return false;
  if (asked_ == order_.size()) {
    // Some were slow: the client has time for another round. That others have no such key does not say that
    // the slow ones have none.
    if (!timed_out_) return false;
    order_ = routing_.replicas->InTurn(shard_);
    asked_ = 0;
    timed_out_ = false;
    missed_ = failed_ = Targets();
  }
  const Deadline limit = Deadline::In(routing_.replicas->options().get_timeout);
  limited_ = order_.size() > 1 && limit < deadline_;
  part_.reset();
  if (limited_ || deadline_ < ctx_.deadline()) {
    part_.emplace(&ctx_);
    part_->ShortenDeadline(limited_ ? limit : deadline_);
  }
  routing_.replicas->CountGet(order_.id(asked_));
  return true;
}

void GetAttempts::Take(Replies<GetReply>&& replies, GetReply* reply) {
  const uint32_t replica = order_.id(asked_);
  Channel* const channel = order_.channel(asked_);
  ++asked_;
  if (!replies[0].ok()) {
    failure_ = absl::Status(replies[0].status().code(),
                            Join("leaf ", channel->target(), ": ", Message(replies[0].status())));
    failed_.Add(replica, channel);
    timed_out_ =
        timed_out_ || (limited_ && replies[0].status().code() == absl::StatusCode::kDeadlineExceeded);
    routing_.replicas->GetFailed(replica, replies[0].status(), limited_);
    return;
  }
  routing_.replicas->Succeeded(replica);
  if (replies[0]->found()) {
    found_ = true;
    reply->Swap(&*replies[0]);
  } else {
    missed_.Add(replica, channel);
  }
}

absl::Status GetAttempts::Finish() const {
  if (found_) return absl::OkStatus();
  // A replica that failed may hold the key, unless it has been ejected for it.
  for (size_t i = 0; i < failed_.size(); ++i) {
    if (routing_.replicas->IsAdmitted(failed_.id(i))) return failure_;
  }
  if (missed_.size() > 0) return absl::OkStatus();
  return failure_.ok() ? absl::UnavailableError("no replica of the shard was asked") : failure_;
}

Refill::Refill(Routing& routing, Context& ctx, const GetAttempts& attempts)
    : routing_(routing), attempts_(attempts), part_(&ctx) {
  part_.ShortenDeadline(Deadline::In(
      std::min(routing.replicas->options().get_timeout, ctx.deadline().Remaining() / kRefillPart)));
}

bool Refill::Begin(std::string_view key) {
  hold_ = routing_.stripes.TryTake(Stripes::Of(HashOf(key)));
  // If it has missed a delete since it was asked, it was ejected before that let go of the stripe.
  return hold_ && routing_.replicas->IsAdmitted(attempts_.source_id());
}

bool Refill::TakeSource(Replies<GetReply>&& replies, StoreSet* request) {
  if (!replies[0].ok() || !replies[0]->found()) return false;
  // In this order: where an ejected replica is emptied after this look, it refuses the version.
  request->set_version(routing_.replicas->NextVersion());
  const Targets& missed = attempts_.missed();
  for (size_t i = 0; i < missed.size(); ++i) {
    if (routing_.replicas->IsAdmitted(missed.id(i))) targets_.Add(missed.id(i), missed.channel(i));
  }
  request->set_value(std::move(*replies[0]->mutable_value()));
  request->set_if_absent(true);
  return targets_.size() > 0;
}

}  // namespace curtail::router
