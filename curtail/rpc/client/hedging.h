// SPDX-License-Identifier: Apache-2.0
//
// hedging.h - several attempts at once at a call of a fan-out, of which the first that is answered counts.
//
// The rules are gRPC's: https://github.com/grpc/proposal/blob/master/A6-client-retries.md
// The protocol is at the top of hedging.cc.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "curtail/base/mutex.h"
#include "curtail/rpc/client/fanout.h"

namespace curtail::internal {

// A call whose method has a hedging policy, beside its Member, which is the first attempt. Thread-safe as annotated.
struct Fanout::HedgedCall {
  HedgedCall(size_t i, const HedgingPolicy& p)
      : index(i), policy(p), extra(std::make_unique<Member[]>(static_cast<size_t>(p.max_attempts - 1))) {}

  // Immutable after construction.
  const size_t index;  // in the batch
  const HedgingPolicy& policy;
  const std::unique_ptr<Member[]> extra;  // the further attempts; each owned by its sender until it is sent

  Mutex mu;
  // Of the round.
  bool begun CURTAIL_GUARDED_BY(mu) = false;  // the first attempt was sent
  bool over CURTAIL_GUARDED_BY(mu) = false;   // no more attempts: one decided, or the call was cancelled
  bool stop CURTAIL_GUARDED_BY(mu) = false;   // a server wants no more
  int left CURTAIL_GUARDED_BY(mu) = 0;        // attempts that may still be made
  size_t taken CURTAIL_GUARDED_BY(mu) = 0;    // of `extra`
  int sent CURTAIL_GUARDED_BY(mu) = 0;        // of those
  int open CURTAIL_GUARDED_BY(mu) = 0;        // attempts that have not ended
  TimePoint next CURTAIL_GUARDED_BY(mu);      // when another is due, if there are some left
  Member* winner CURTAIL_GUARDED_BY(mu) = nullptr;  // decides the call
  Member* last CURTAIL_GUARDED_BY(mu) = nullptr;    // ... if there is no winner
};

struct Fanout::Hedges {
  std::deque<HedgedCall> calls;
  std::shared_ptr<Poller> poller;  // of the round
};

}  // namespace curtail::internal
