// SPDX-License-Identifier: Apache-2.0
//
// facts.h - what the operations of a history have made true, and may have made true.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "apps/kit/testing/history.h"
#include "curtail/base/rng.h"

namespace curtail::apps {

struct Change {
  bool to = false;
  Span span;
  bool certain = true;  // takes effect by the end of the span; otherwise perhaps never
};

// Rule 3 of history.h. The first change is to nothing.
Possible ValueIn(Span span, const std::vector<Change>& changes);

// Facts change by operations. A `Fact` is a value with an order, such as a kind and the ids that it names. Thread-safe.
template <class Fact>
class Facts {
 public:
  // Nothing if the operation was refused.
  void Set(const Fact& fact, bool to, const Operation& by) {
    if (by.outcome != Outcome::kRefused) Set(fact, to, by.span);
  }
  // An open span is one of an unknown outcome.
  void Set(const Fact& fact, bool to, Span span) {
    const std::lock_guard lock(mu_);
    changes_.try_emplace(fact, 1).first->second.push_back({to, span, span.ended != Span::kOpen});
  }
  // As the operation said that was told last. For choosing what to do next, not for judging.
  bool Last(const Fact& fact) const {
    const std::lock_guard lock(mu_);
    return Of(fact).back().to;
  }
  Possible In(const Fact& fact, Span span) const {
    const std::lock_guard lock(mu_);
    return ValueIn(span, Of(fact));
  }
  // Oldest first; one at least.
  std::vector<Change> ChangesOf(const Fact& fact) const {
    const std::lock_guard lock(mu_);
    return Of(fact);
  }
  // Nothing is on its way any more: operations of unknown outcome have taken effect by `step`, or never will.
  void Settle(uint64_t step) {
    const std::lock_guard lock(mu_);
    for (auto& [fact, changes] : changes_) {
      for (Change& change : changes) change.span.ended = std::min(change.span.ended, step);
    }
  }

 private:
  const std::vector<Change>& Of(const Fact& fact) const {
    static const std::vector<Change> none(1);
    const auto found = changes_.find(fact);
    return found == changes_.end() ? none : found->second;
  }

  mutable std::mutex mu_;
  std::map<Fact, std::vector<Change>> changes_;  // guarded by mu_
};

// Items are what users make and remove, each with an id and an entry of the application's. Thread-safe.
template <class Entry>
class Items {
 public:
  // Nothing if the operation was refused. The test fails if there was an item of this id.
  void Add(uint64_t id, Entry entry, const Operation& by) {
    if (by.outcome == Outcome::kRefused) return;
    {
      const std::lock_guard lock(mu_);
      EXPECT_TRUE(all_.emplace(id, std::move(entry)).second) << id << " twice";
    }
    exists_.Set(id, true, by);
  }
  void Remove(uint64_t id, const Operation& by) { exists_.Set(id, false, by); }
  void Remove(uint64_t id, Span span) { exists_.Set(id, false, span); }
  Possible Exists(uint64_t id, Span span) const { return exists_.In(id, span); }
  void Settle(uint64_t step) { exists_.Settle(step); }

  std::optional<Entry> Find(uint64_t id) const {
    const std::lock_guard lock(mu_);
    const auto found = all_.find(id);
    return found == all_.end() ? std::nullopt : std::optional(found->second);
  }
  // The ids, smallest first, of items that `wanted(entry, exists)` chooses; as Exists() has it in `span`.
  template <class Wanted>
  std::vector<uint64_t> Those(Span span, Wanted wanted) const {
    const std::lock_guard lock(mu_);
    std::vector<uint64_t> ids;
    for (const auto& [id, entry] : all_) {
      if (wanted(entry, Exists(id, span))) ids.push_back(id);
    }
    return ids;
  }
  // One at random that `wanted(entry, exists)` chooses, exists as Facts::Last() has it; 0: there is none.
  template <class Wanted>
  std::pair<uint64_t, Entry> Any(Rng& rng, Wanted wanted) const {
    const std::lock_guard lock(mu_);
    std::vector<std::pair<uint64_t, Entry>> those;
    for (const auto& [id, entry] : all_) {
      if (wanted(entry, exists_.Last(id))) those.emplace_back(id, entry);
    }
    return those.empty() ? std::pair<uint64_t, Entry>() : those[rng.Below(those.size())];
  }
  // For judging: no operation adds an item meanwhile.
  const std::map<uint64_t, Entry>& all() const { return all_; }

 private:
  mutable std::mutex mu_;
  std::map<uint64_t, Entry> all_;  // guarded by mu_ while users act
  Facts<uint64_t> exists_;
};

}  // namespace curtail::apps
