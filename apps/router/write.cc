// SPDX-License-Identifier: Apache-2.0
#include "apps/router/write.h"

#include <algorithm>
#include <chrono>

#include "curtail/base/strings.h"

namespace curtail::router {
namespace {

// How soon a write that waits for its turn notices that its client has given up.
constexpr Nanos kLookInterval = std::chrono::milliseconds(50);

// True if a replica that failed so has surely not done the write.
bool SurelyNotDone(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kResourceExhausted ||
         status.code() == absl::StatusCode::kUnimplemented;
}

}  // namespace

absl::Status Write::Begin(std::string_view key) {
  const uint64_t hash = HashOf(key);
  shard_ = ShardOf(hash, routing_.replicas->shards());
  // A client without a deadline waits as long as one write may take.
  const Deadline limit = ctx_.deadline().infinite()
                             ? Deadline::In(kMaxRounds * routing_.replicas->options().write_timeout)
                             : ctx_.deadline();
  while (true) {
    if (ctx_.cancelled()) return absl::CancelledError("the client gave up; nothing was sent");
    if (limit.Expired()) {
      return absl::DeadlineExceededError(
          "other writes of keys of this stripe took too long; nothing was sent");
    }
    // In parts, because a cancellation does not end this wait.
    hold_ = routing_.stripes.Take(Stripes::Of(hash), std::min(limit, Deadline::In(kLookInterval)));
    if (hold_) return absl::OkStatus();
  }
}

bool Write::Next() {
  if (ended_) return false;
  ++rounds_;
  targets_ = routing_.replicas->AdmittedForWrite(shard_, &version_);
  const ReplicaOptions& options = routing_.replicas->options();
  const Deadline limit = Deadline::In(options.write_timeout);
  if (options.replicas > 1) {
    // Neither the client's deadline nor its cancellation: even where one replica takes part now, another one
    // may be back before it has answered, and whoever missed the write is ejected.
    part_.emplace(&ctx_, limit);
  } else {
    part_.emplace(&ctx_);
    part_->ShortenDeadline(limit);
  }
  return true;
}

void Write::Take(const Replies<StoreReply>& replies) {
  taken_ = 0;
  failure_ = absl::OkStatus();
  bool late = false;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].ok()) {
      failure_ = absl::Status(replies[i].status().code(), Join("leaf ", targets_.channel(i)->target(), ": ",
                                                               Message(replies[i].status())));
    } else if (replies[i]->late()) {
      late = true;
      routing_.replicas->SawVersion(replies[i]->newest());
    } else {
      ++taken_;
      done_ = done_ || replies[i]->done();
      routing_.replicas->Succeeded(targets_.id(i));
    }
  }
  const bool last_round = rounds_ == kMaxRounds;
  EjectThoseWhoMissedIt(replies, last_round);
  const bool missed = taken_ > 0 && taken_ < targets_.size();
  ended_ = (!late && !missed) || last_round;
  if (ended_ && late) failure_ = absl::AbortedError("other mid-tiers write keys of this stripe all the time");
  if (ended_ && missed) taken_ = 0;
}

uint32_t Write::members() const {
  uint32_t members = 0;
  for (size_t i = 0; i < targets_.size(); ++i) members |= 1u << targets_.id(i) % replicas();
  return members;
}

void Write::EjectThoseWhoMissedIt(const Replies<StoreReply>& replies, bool last_round) {
  // It took part alone and holds the only copy; a replica that is back since then is empty.
  if (targets_.size() == 1 && taken_ == 0) return;
  // Those that cannot be reached first: if all failed, one that is only slow is the one to keep.
  for (const bool unreachable : {true, false}) {
    for (size_t i = 0; i < replies.size(); ++i) {
      const absl::Status& status = replies[i].status();
      if (status.ok() && !(replies[i]->late() && last_round && taken_ > 0)) continue;
      if (taken_ == 0 && SurelyNotDone(status)) continue;
      if ((status.code() == absl::StatusCode::kUnavailable) != unreachable) continue;
      const std::string_view why = status.ok() ? "too many others" : Message(status);
      // Eject() keeps the last one, if the replica that took the write was ejected meanwhile; it gets the write again.
      routing_.replicas->Eject(targets_.id(i), Join("missed a write: ", why));
    }
  }
}

absl::Status Write::Finish() const {
  if (taken_ > 0) return absl::OkStatus();
  return failure_.ok() ? absl::UnavailableError("no replica of the shard was asked") : failure_;
}

}  // namespace curtail::router
