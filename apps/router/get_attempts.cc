// SPDX-License-Identifier: Apache-2.0
#include "apps/router/get_attempts.h"

#include "curtail/base/strings.h"

namespace curtail::router {

GetAttempts::GetAttempts(Routing& routing, Context& ctx, std::string_view key)
    : routing_(routing),
      ctx_(ctx),
      shard_(routing.replicas->ShardOfKey(key)),
      order_(routing.replicas->InTurn(shard_)) {}

bool GetAttempts::Next() {
  if (found_) return false;
  if (failed_ && (ctx_.cancelled() || ctx_.deadline().Expired())) return false;
  if (asked_ == order_.size()) {
    // Slow, all of them: the client has time for another round.
    if (answered_ || !timed_out_) return false;
    order_ = routing_.replicas->InTurn(shard_);
    asked_ = 0;
    timed_out_ = false;
  }
  const Deadline limit = Deadline::In(routing_.replicas->options().get_timeout);
  limited_ = order_.size() > 1 && limit < ctx_.deadline();
  part_.reset();
  if (limited_) {
    part_.emplace(&ctx_);
    part_->ShortenDeadline(limit);
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
    failed_ = true;
    timed_out_ =
        timed_out_ || (limited_ && replies[0].status().code() == absl::StatusCode::kDeadlineExceeded);
    routing_.replicas->GetFailed(replica, replies[0].status(), limited_);
    return;
  }
  routing_.replicas->Succeeded(replica);
  answered_ = true;
  if (replies[0]->found()) {
    found_ = true;
    reply->Swap(&*replies[0]);
  } else {
    missed_.Add(replica, channel);
  }
}

absl::Status GetAttempts::Finish() const { return answered_ ? absl::OkStatus() : failure_; }

Refill::Refill(Routing& routing, Context& ctx, const GetAttempts& attempts)
    : routing_(routing), attempts_(attempts), part_(&ctx) {
  part_.ShortenDeadline(Deadline::In(routing.replicas->options().get_timeout));
}

bool Refill::Begin(std::string_view key) {
  hold_ = routing_.stripes.TryTake(Stripes::Of(HashOf(key)));
  return static_cast<bool>(hold_);
}

bool Refill::TakeSource(Replies<GetReply>&& replies, StoreSet* request) {
  if (!replies[0].ok() || !replies[0]->found()) return false;
  request->set_value(std::move(*replies[0]->mutable_value()));
  request->set_version(routing_.replicas->NextVersion());
  request->set_if_absent(true);
  return true;
}

}  // namespace curtail::router
