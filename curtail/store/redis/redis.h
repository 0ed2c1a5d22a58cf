// SPDX-License-Identifier: Apache-2.0
//
// redis.h - a client of one Redis for handlers: pooled connections, and commands that share a round
// trip.
//
// A call that fails with DEADLINE_EXCEEDED or UNAVAILABLE may have been carried out, and a command
// that Redis has read whole may still be: write so that a repetition does no harm. Nothing is sent
// twice by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/store/address.h"
#include "curtail/store/pool.h"

namespace curtail {

struct RedisOptions {
  // At once; in fiber models from each thread. Redis' own limit (maxclients) is 10,000 by default.
  int connections = 64;
  // Of the replies to one batch, as Redis sends them. All of them have 262,144 elements at most.
  size_t max_reply_bytes = 16u << 20;
};

// The reply of Redis to one command. A value type.
struct RedisReply {
  enum class Kind : uint8_t { kNull, kInteger, kText, kArray, kError };

  // Of an error: RESOURCE_EXHAUSTED (no memory), UNAVAILABLE (it loads, or is a replica without its
  // master), PERMISSION_DENIED, FAILED_PRECONDITION (a key of another type) or INVALID_ARGUMENT;
  // else OK.
  [[nodiscard]] absl::Status status() const;
  bool null() const { return kind == Kind::kNull; }

  Kind kind = Kind::kNull;
  int64_t integer = 0;                    // kInteger
  std::string text;                       // kText: any bytes; kError: the message
  std::vector<RedisReply> elements = {};  // kArray
};

// A RedisBatch is commands that are sent together, each a list of words of any bytes.
class RedisBatch {
 public:
  void Add(std::span<const std::string_view> words);
  void Add(std::initializer_list<std::string_view> words) { Add(std::span(words.begin(), words.size())); }
  size_t size() const { return size_; }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t size_ = 0;
};

// A Redis connects on first use, and again when Redis was restarted. It logs in on each new
// connection if its address names a file of the password, or the environment has one:
// REDIS_PASSWORD_FILE names a file, else REDIS_PASSWORD is the password; REDIS_USER is for
// addresses without a user. A file is read at each connection, so a password may change.
//
// Thread-safe. Every call waits as the threading model in force waits (stream.h), and until
// `deadline` at most. Errors of all calls: DEADLINE_EXCEEDED; UNAVAILABLE if Redis cannot be
// reached, is gone or does not speak its protocol; RESOURCE_EXHAUSTED if the replies are larger
// than RedisOptions allows. PERMISSION_DENIED if it does not take the password; FAILED_PRECONDITION
// if its certificate or the file of the password cannot be used.
class Redis {
 public:
  explicit Redis(StoreAddress address, RedisOptions options = {});
  // REQUIRES: no call is in progress.
  ~Redis();
  Redis(const Redis&) = delete;
  Redis& operator=(const Redis&) = delete;

  const std::string& address() const { return pool_.address().text; }

  // One command. An error that Redis replies is an error of the call: RedisReply::status().
  [[nodiscard]] absl::StatusOr<RedisReply> Run(std::initializer_list<std::string_view> words,
                                               Deadline deadline);
  // All commands of a batch in one round trip: a reply for each, in order, errors included. Other
  // commands may come between them.
  [[nodiscard]] absl::StatusOr<std::vector<RedisReply>> Run(const RedisBatch& batch, Deadline deadline);
  // OK if it answers.
  [[nodiscard]] absl::Status Check(Deadline deadline);

 private:
  // A new connection, or a used one that still stands, on which this client is logged in.
  absl::Status Take(Deadline deadline, StreamPool::Lease* lease);
  absl::Status LogIn(Deadline deadline, Stream& stream) const;
  absl::Status Exchange(const RedisBatch& batch, Deadline deadline, Stream& stream,
                        std::vector<RedisReply>* replies) const;

  const RedisOptions options_;
  StreamPool pool_;
};

}  // namespace curtail
