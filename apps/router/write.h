// SPDX-License-Identifier: Apache-2.0
//
// write.h - a set or delete as the mid-tier makes it: to all replicas of the shard at once, one write of a
// stripe of keys after the other. It ejects replicas that miss it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "apps/router/get_attempts.h"
#include "curtail/rpc/context.h"
#include "router.pb.h"

namespace curtail::router {

// Why replicas converge: writes of a key that go through one mid-tier take turns, and each goes to all replicas
// that take part. A replica that misses one does not take part before it has been emptied. A leaf refuses a
// version that is not the newest (`late`): the write was given up, or another mid-tier wrote in between. Then
// all replicas get the write again with a newer version, so in the end all of them have done the newest. The
// same happens when a replica has missed the write and was ejected. The write is acknowledged once the replicas
// that remain have done it again with the list of themselves, by which a mid-tier that starts finds them (recall.h).
//
// Once begun, a write is carried through even if the client gives up, unless the shard has one replica only:
// half of it would cost a replica. Each round takes `write_timeout` at most.
//
// A Write names the replicas to call and judges the answers; the handlers call. For one request.
class Write {
 public:
  Write(Routing& routing, Context& ctx) : routing_(routing), ctx_(ctx) {}

  // Takes the key's turn. REQUIRES: the key passes CheckKey(). Errors: DEADLINE_EXCEEDED, CANCELLED.
  absl::Status Begin(std::string_view key);
  // True: call (again); then these say how.
  bool Next();
  uint64_t version() const { return version_; }
  // To be called before each call. StoreWrite: StoreSet or StoreDelete.
  template <class StoreWrite>
  void Address(StoreWrite* request) const {
    request->set_version(version_);
    request->set_members(members());
  }
  Context& context() { return *part_; }
  std::span<Channel* const> channels() const { return targets_.channels(); }
  // Their answers.
  void Take(const Replies<StoreReply>& replies);

  // OK if a replica took it; otherwise why one did not, with its name.
  absl::Status Finish() const;
  uint32_t taken() const { return taken_; }
  uint32_t replicas() const { return static_cast<uint32_t>(routing_.replicas->options().replicas); }
  // True if a replica said `done`.
  bool done() const { return done_; }

 private:
  static constexpr int kMaxRounds = 5;

  // The replicas that it goes to, as StoreSet says.
  uint32_t members() const;
  void EjectThoseWhoMissedIt(const Replies<StoreReply>& replies, bool last_round);

  Routing& routing_;
  Context& ctx_;
  Stripes::Hold hold_;
  size_t shard_ = 0;
  Targets targets_;
  std::optional<Context> part_;
  uint64_t version_ = 0;
  int rounds_ = 0;
  bool ended_ = false;
  uint32_t taken_ = 0;
  bool done_ = false;
  absl::Status failure_;
};

}  // namespace curtail::router
