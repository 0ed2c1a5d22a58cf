// SPDX-License-Identifier: Apache-2.0
#include "apps/router/write.h"

#include "curtail/base/strings.h"

namespace curtail::router {
namespace {

// Whether a replica that failed so has surely not done the write.
bool SurelyNotDone(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kResourceExhausted ||
         status.code() == absl::StatusCode::kUnimplemented;
}

}  // namespace

absl::Status Write::Begin(std::string_view key) {
  const uint64_t hash = HashOf(key);
  shard_ = ShardOf(hash, routing_.replicas->shards());
  hold_ = routing_.stripes.Take(Stripes::Of(hash), ctx_.deadline());
  if (!hold_) {
    return absl::DeadlineExceededError("other writes of keys of this stripe took too long; nothing was sent");
  }
  return absl::OkStatus();
}

bool Write::Next() {
  if (ended_) return false;
  ++rounds_;
  targets_ = routing_.replicas->Admitted(shard_);
  version_ = routing_.replicas->NextVersion();
  part_.reset();
  if (targets_.size() > 1) {
    // Neither the client's deadline nor its cancellation.
    part_.emplace(Deadline::In(routing_.replicas->options().write_timeout));
    for (const auto& [key, value] : ctx_.metadata()) part_->AddMetadata(key, value);
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
  const bool all_ejected = EjectThoseWhoMissedIt(replies, last_round);
  // Who took it has been ejected meanwhile, so who missed it is the last one that takes part: it has to take it.
  const bool lost = taken_ > 0 && !all_ejected;
  ended_ = (!late && !lost) || last_round;
  if (ended_ && late) failure_ = absl::AbortedError("other mid-tiers write keys of this stripe all the time");
  if (ended_ && lost) taken_ = 0;
}

bool Write::EjectThoseWhoMissedIt(const Replies<StoreReply>& replies, bool last_round) {
  bool all = true;
  // Those that cannot be reached first: if all failed, one that is only slow is the one to keep.
  for (const bool unreachable : {true, false}) {
    for (size_t i = 0; i < replies.size(); ++i) {
      const absl::Status& status = replies[i].status();
      if (status.ok() && !(replies[i]->late() && last_round && taken_ > 0)) continue;
      if (taken_ == 0 && SurelyNotDone(status)) continue;
      if ((status.code() == absl::StatusCode::kUnavailable) != unreachable) continue;
      const std::string_view why = status.ok() ? "too many others" : Message(status);
      all = routing_.replicas->Eject(targets_.id(i), Join("missed a write: ", why)) && all;
    }
  }
  return all;
}

absl::Status Write::Finish() const { return taken_ > 0 ? absl::OkStatus() : failure_; }

}  // namespace curtail::router
