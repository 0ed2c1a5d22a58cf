// SPDX-License-Identifier: Apache-2.0
//
// once.h - writes that a client may safely repeat when their reply was lost.
//
// The client names its request by the metadata "idempotency-key":
//
//  - A request with the same name and the same content changes nothing, and gets the answer of the first.
//  - A request with the same name and another content is ALREADY_EXISTS.
//  - A request that failed keeps no name, so a repetition tries again.
//
// The service that clients call hands the name on by NameRequest(). The service that writes keeps the name and the answer
// in the transaction of the write:
//
//   co_return co_await WriteOnce(db, ctx, request.user(), reply, [&](SqlSession& s) {
//     ... the write, which fills *reply ...
//   });
//
// A name belongs to its caller, and to the service that keeps it, for a day. Each new name removes up to 16 older ones, so
// a table holds the names of about a day. The answer stays with the name, even if what it tells of is deleted meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/store/sql/sql.h"

namespace google::protobuf {
class MessageLite;
}

namespace curtail::apps {

// Adds to the calls of `ctx` the name that its caller sent, if any, and a digest of the method and `content`. `part` tells calls
// of one request to one service apart. INVALID_ARGUMENT: a name has 1 to 128 characters.
absl::Status NameRequest(Context& ctx, std::string_view method, const google::protobuf::MessageLite& content,
                         std::string_view part = {});

// A step of the schema of each service that keeps names.
extern const char kOnceSchema[];

// Forgets all names of a caller, with their answers: it was deleted.
absl::Status ForgetRequests(SqlSession& s, uint64_t caller);

// A Once is the name of one request of one caller. Without a name nothing is kept, and each write happens. Thread-compatible.
class Once {
 public:
  enum class Seen : uint8_t { kNever, kBegun, kDone };

  Once() = default;
  // The name that NameRequest() has added to the call of `ctx`.
  Once(const Context& ctx, uint64_t caller);

  bool named() const { return !name_.empty(); }
  // For a service that keeps names by itself: the name, and what differs where the contents of two requests do.
  const std::string& name() const { return name_; }
  const std::string& content() const { return content_; }
  // True if the last Write(), Look() or RedisAnswered() has found the name.
  bool repeated() const { return seen_ != Seen::kNever; }
  // Adds the name to the calls of `ctx`.
  void HandOn(Context& ctx) const;

  // For the transaction of the write. A new name runs `write()` and is kept with `*reply`; a known one writes nothing and
  // sets `*reply` to the first answer. Errors: what `write` and SqlSession return; ALREADY_EXISTS.
  template <class Work>
  absl::Status Write(SqlSession& s, google::protobuf::MessageLite* reply, Work write) {
    absl::Status status = Look(s, reply);
    if (!status.ok() || repeated()) return status;
    status = write();
    return status.ok() ? Keep(s, *reply, Seen::kDone) : status;
  }

  // The parts of Write(), for a write of several steps. The first keeps the name as kBegun, the last as kDone; a repetition
  // that finds it begun goes on, as whoever began may be gone. Look() leaves `*reply` if the name was never seen.
  absl::Status Look(SqlSession& s, google::protobuf::MessageLite* reply);
  Seen seen() const { return seen_; }
  absl::Status Keep(SqlSession& s, const google::protobuf::MessageLite& reply, Seen seen) const;
  // Forgets the name of a write that was begun and is taken back.
  absl::Status Forget(SqlSession& s) const;

  // The same in a Redis, where a write is a script. `body` returns a number, negative if it refuses. RedisScript() makes a
  // script of it, which returns two numbers: the first answer, and whether this is a repetition. RedisWords() runs it; the
  // body's keys and arguments come first. The name is kept under `prefix`.
  static std::string RedisScript(std::string_view body);
  std::vector<std::string> RedisWords(std::string script, std::string_view prefix,
                                      std::vector<std::string> keys, std::vector<std::string> args) const;
  // For both numbers of the answer. ALREADY_EXISTS, as of Write().
  absl::Status RedisAnswered(int64_t number, bool repeated);
  // Deleting this forgets the name.
  std::string RedisKey(std::string_view prefix) const;

 private:
  uint64_t caller_ = 0;
  std::string name_, content_;
  Seen seen_ = Seen::kNever;
};

// Once::Write() in a transaction of its own, for the request of `ctx`.
template <class Work>
Coroutine WriteOnce(SqlDatabase& db, const Context& ctx, uint64_t caller,
                    google::protobuf::MessageLite* reply, Work work) {
  Once once(ctx, caller);
  co_return co_await db.Writing(ctx.deadline(),
                                [&](SqlSession& s) { return once.Write(s, reply, [&] { return work(s); }); });
}

}  // namespace curtail::apps
