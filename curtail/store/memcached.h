// SPDX-License-Identifier: Apache-2.0
//
// memcached.h - a client of one memcached for handlers: pooled connections, and writes that cannot
// land late.
//
// A write that was sent whole and not answered in time may still be carried out, whatever the
// client does: memcached reads what lies in its sockets. So the client keeps that connection aside.
// It refuses other writes and flushes until memcached has answered or closed it. A command that was
// sent in part only, memcached drops with the connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/store/address.h"
#include "curtail/store/memcached_codec.h"
#include "curtail/store/pool.h"

namespace curtail {

struct MemcachedOptions {
  // At once; in fiber models from each thread. memcached's own limit (-c) is 1,024 by default.
  int connections = 64;
};

// A Memcached connects on first use, and again when memcached was restarted. Thread-safe. Every
// call waits as the threading model in force waits (stream.h), and until `deadline` at most. Errors
// of all calls: DEADLINE_EXCEEDED; UNAVAILABLE if memcached cannot be reached, is gone, answers
// what was not asked, or has not answered an earlier write yet.
class Memcached {
 public:
  explicit Memcached(StoreAddress address, MemcachedOptions options = {});
  // REQUIRES: no call is in progress.
  ~Memcached();
  Memcached(const Memcached&) = delete;
  Memcached& operator=(const Memcached&) = delete;

  const std::string& address() const { return pool_.address().text; }

  // REQUIRES, of all: key and value pass memcached::CheckKey() and memcached::CheckValue().
  [[nodiscard]] absl::Status Get(std::string_view key, Deadline deadline, bool* found, std::string* value);
  // The same with the version of the value, for Replace().
  [[nodiscard]] absl::Status GetVersioned(std::string_view key, Deadline deadline, bool* found,
                                          std::string* value, uint64_t* version);
  // The values of many keys, kMaxGets in a round trip; none for a key that is not there. After an
  // error the values that came before it are there.
  [[nodiscard]] absl::Status GetAll(std::span<const std::string> keys, Deadline deadline,
                                    std::vector<std::optional<std::string>>* values);
  static constexpr size_t kMaxGets = 64;
  // `stored` is false only if `if_absent` and there is such a key. Further errors: INVALID_ARGUMENT
  // (larger than memcached takes, see its -I), RESOURCE_EXHAUSTED (it has no memory). After both
  // the key is gone.
  [[nodiscard]] absl::Status Set(std::string_view key, std::string_view value, bool if_absent,
                                 Deadline deadline, bool* stored);
  // Sets the value of a key that has the value of this version. `stored` is false if the key has
  // another one, or none. It may also be false after a restart of memcached or a lost answer, while
  // the value was stored: read again. Further errors: as Set().
  [[nodiscard]] absl::Status Replace(std::string_view key, std::string_view value, uint64_t version,
                                     Deadline deadline, bool* stored);
  [[nodiscard]] absl::Status Delete(std::string_view key, Deadline deadline, bool* found);
  // Forgets everything.
  [[nodiscard]] absl::Status Flush(Deadline deadline);
  // OK if it answers. Afterwards lost() is up to date.
  [[nodiscard]] absl::Status Check(Deadline deadline);
  // The time, in nanoseconds since 1970, at which a connection was last found closed: memcached may
  // have been started again, empty. 0: never.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  struct Command {
    std::string_view head, body, tail;
    bool writes = false;
    // The kinds that answer it, beside a refusal; kBroken: there is no such kind.
    memcached::Answer::Kind yes = memcached::Answer::Kind::kDone, no = memcached::Answer::Kind::kDone,
                            neither = memcached::Answer::Kind::kBroken;
    size_t answers = 1;
  };
  // Hears of each answer by its number; of all of them again if the command is sent again. Views of
  // the last one hold while the lease does.
  using OnAnswer = absl::FunctionRef<void(size_t number, const memcached::Answer& answer)>;

  absl::Status Run(const Command& command, Deadline deadline, OnAnswer on_answer, StreamPool::Lease* lease);
  // The same for a command with one answer.
  absl::Status Run(const Command& command, Deadline deadline, memcached::Answer* answer,
                   StreamPool::Lease* lease);
  // One try; sets `again` if a pooled connection turned out to be closed, so that a fresh one is
  // worth a try.
  absl::Status RunOnce(const Command& command, Deadline deadline, OnAnswer on_answer,
                       StreamPool::Lease* lease, bool* again);
  absl::Status Set(const Command& command, Deadline deadline, bool* stored);
  absl::Status Get(std::string_view head, Deadline deadline, bool* found, std::string* value,
                   uint64_t* version);
  // Sends the command and reads the answers.
  absl::Status Exchange(const Command& command, Deadline deadline, Stream& stream, OnAnswer on_answer,
                        bool* sent, bool* closed) const;
  // UNAVAILABLE while an earlier write may still be carried out.
  absl::Status CheckNoneUnanswered();
  void KeepAside(std::unique_ptr<Stream> stream);
  absl::Status Refused(const memcached::Answer& answer) const;

  StreamPool pool_;

  Mutex mu_;
  std::vector<std::unique_ptr<Stream>> unanswered_ CURTAIL_GUARDED_BY(mu_);
  // Atomic; unanswered_ is not empty. Relaxed: the caller's lock orders a write and what it must
  // not overtake.
  std::atomic<bool> any_unanswered_{false};
  // Atomic; relaxed, a time.
  std::atomic<uint64_t> lost_{0};
};

}  // namespace curtail
