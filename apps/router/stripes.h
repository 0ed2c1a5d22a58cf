// SPDX-License-Identifier: Apache-2.0
//
// stripes.h - where keys belong, and a lock a handler may hold over a fan-out so that writes of one key take
// turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "curtail/base/clock.h"
#include "curtail/exec/sync.h"

namespace curtail::router {

// XXH3 of the key, 64 bits. Shards and stripes are made of different halves of it.
uint64_t HashOf(std::string_view key);
size_t ShardOf(uint64_t hash, size_t shards);

// A Stripes is a lock in many parts; keys of one stripe share one. Mid-tier and leaves map keys to the same
// stripes: a leaf relies on that to recognise a late write. Thread-safe; a thread that waits does so by its
// threading model.
class Stripes {
 public:
  static constexpr size_t kCount = 1024;
  static size_t Of(uint64_t hash) { return hash % kCount; }

  // Holds a stripe until it is destroyed, on any thread.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;
    ~Hold();
    explicit operator bool() const { return part_ != nullptr; }

   private:
    friend class Stripes;
    struct Part;
    explicit Hold(Part* part) : part_(part) {}
    Part* part_ = nullptr;
  };

  Stripes();
  ~Stripes();
  Stripes(const Stripes&) = delete;
  Stripes& operator=(const Stripes&) = delete;

  // Takes a stripe; holds nothing if it was not free before `deadline`.
  Hold Take(size_t stripe, Deadline deadline);
  // Takes it if it is free now.
  Hold TryTake(size_t stripe) { return Take(stripe, Deadline::At(TimePoint::min())); }

 private:
  const std::unique_ptr<Hold::Part[]> parts_;
};

}  // namespace curtail::router
