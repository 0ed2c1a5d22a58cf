// SPDX-License-Identifier: Apache-2.0
//
// ledger_testing.h - what users of a test were told, and how much they have done.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "curtail/base/testing.h"

namespace curtail::social {

// A Ledger holds what the users were told. Thread-safe.
class Ledger {
 public:
  enum class Fate : uint8_t { kKept, kInDoubt, kDeleted };  // in doubt: a deletion failed, or may come
  struct Entry {
    size_t author = 0;
    std::set<size_t> mentioned = {};
    Fate fate = Fate::kKept;
  };

  void Keep(uint64_t post, Entry entry) {
    const std::lock_guard lock(mu_);
    EXPECT_TRUE(posts_.emplace(post, std::move(entry)).second) << post << " twice";
  }
  void Refuse(size_t author, std::string text) {
    const std::lock_guard lock(mu_);
    refused_.emplace(author, std::move(text));
  }
  void Set(uint64_t post, Fate fate) {
    const std::lock_guard lock(mu_);
    posts_.at(post).fate = fate;
  }
  bool Refused(size_t author, const std::string& text) const {
    const std::lock_guard lock(mu_);
    return refused_.contains({author, text});
  }
  std::map<uint64_t, Entry> Posts() const {
    const std::lock_guard lock(mu_);
    return posts_;
  }
  // Those of `fate` that `wanted(entry)` chooses.
  template <class Wanted>
  std::vector<uint64_t> Those(Fate fate, Wanted wanted) const {
    const std::lock_guard lock(mu_);
    std::vector<uint64_t> ids;
    for (const auto& [id, entry] : posts_) {
      if (entry.fate == fate && wanted(entry)) ids.push_back(id);
    }
    return ids;
  }
  std::vector<uint64_t> Deleted() const {
    return Those(Fate::kDeleted, [](const Entry&) { return true; });
  }

 private:
  mutable std::mutex mu_;
  // Guarded by mu_.
  std::map<uint64_t, Entry> posts_;
  std::set<std::pair<size_t, std::string>> refused_;
};

// Acts counts what the users have done. Thread-safe.
class Acts {
 public:
  enum class Kind : uint8_t { kPosted, kRefused, kOther };  // a post acknowledged, or refused

  void Did(Kind kind) {
    {
      const std::lock_guard lock(mu_);
      all_ += 1;
      posted_ += kind == Kind::kPosted ? 1 : 0;
      refused_ += kind == Kind::kRefused ? 1 : 0;
    }
    done_.notify_all();
  }
  // Until so many more were done. False: that took too long.
  bool Await(int more) { return Await(&all_, more); }
  bool AwaitPosted(int more) { return Await(&posted_, more); }
  // Until more posts than these were refused.
  bool AwaitRefusedAfter(int refused) {
    std::unique_lock lock(mu_);
    return done_.wait_for(lock, kMaxTestWait, [&] { return refused_ > refused; });
  }
  int refused() {
    const std::lock_guard lock(mu_);
    return refused_;
  }

 private:
  bool Await(const int* count, int more) {
    std::unique_lock lock(mu_);
    const int wanted = *count + more;
    return done_.wait_for(lock, kMaxTestWait, [&] { return *count >= wanted; });
  }

  std::mutex mu_;
  std::condition_variable done_;
  int all_ = 0, posted_ = 0, refused_ = 0;  // guarded by mu_
};

}  // namespace curtail::social
