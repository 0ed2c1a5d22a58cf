// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/tests/basket_history_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"
#include "curtail/base/mix.h"
#include "curtail/base/strings.h"

namespace curtail::shop {
namespace {

constexpr const char* kNames[] = {"add", "set", "remove", "clear", "take", "merge", "nothing of"};
// Steps of a search that may give up, and of another one.
constexpr int kFewSteps = 300'000, kMostSteps = 3'000'000;

std::string Shown(const Counts& lines) {
  std::string text;
  for (const auto& [product, count] : lines) text += Join(text.empty() ? "" : ", ", count, " of ", product);
  return text.empty() ? "nothing" : text;
}

// The basket after a change, which may be impossible.
std::optional<Counts> After(Counts basket, const Edit& edit) {
  using Kind = Edit::Kind;
  if (edit.kind == Kind::kClear) return Counts();
  for (const auto& [product, count] : edit.lines) {
    const auto found = basket.find(product);
    const uint32_t before = found == basket.end() ? 0 : found->second;
    switch (edit.kind) {
      case Kind::kAdd:
        if (before + count > kMostOfProduct) return std::nullopt;
        basket[product] = before + count;
        break;
      case Kind::kSet:
        if (before == 0) return std::nullopt;
        basket[product] = count;
        break;
      case Kind::kMerge:
        basket[product] = std::min(before + count, kMostOfProduct);
        break;
      case Kind::kTake:
        if (before > count) basket[product] = before - count;
        else basket.erase(product);
        break;
      case Kind::kRemove:
        basket.erase(product);
        break;
      case Kind::kClear:
      case Kind::kNothing:
        break;
    }
  }
  return basket;
}

// A change, and the versions that it may explain.
struct Placed {
  const Edit* edit = nullptr;
  uint64_t earliest = 1, latest = 0;
  size_t effect = 0;  // the same for changes that do the same, and that the same follows in their turn
  bool used = false;

  bool known() const { return edit->version != 0; }
  bool MayBe(uint64_t version) const { return !used && earliest <= version && version <= latest; }
};

// The search for an order, version by version. Of the changes that may come next, it tries first the one that leads nearest to what was
// seen next, then the one that could have come first, as most come at once. Of changes with one effect it tries only the one that must
// come first.
class Explanation {
 public:
  Explanation(std::vector<Placed> edits, std::map<uint64_t, Counts> seen, int most_steps)
      : edits_(std::move(edits)),
        seen_(std::move(seen)),
        last_(seen_.rbegin()->first),
        most_steps_(most_steps) {
    std::ranges::sort(edits_, {}, [](const Placed& one) {
      return std::tuple(!one.edit->certain, one.earliest, one.edit->span.began);
    });
    std::map<Effect, size_t> effects;
    spare_ = static_cast<int64_t>(last_);
    for (Placed& one : edits_) {
      one.effect = effects.try_emplace(EffectOf(*one.edit), effects.size()).first->second;
      if (one.edit->certain) --spare_;
    }
    left_ = edits_;
  }

  bool Find() { return spare_ >= 0 && Find(1, {}); }

  bool gave_up() const { return steps_ > most_steps_; }
  std::string Failure() const {
    std::string text =
        spare_ < 0 ? Join(last_, " versions are ", -spare_, " too few for the changes") : FarthestVersion();
    for (const Placed& one : left_) {
      if (one.used) continue;
      text += Join("\n  ", kNames[static_cast<size_t>(one.edit->kind)], " ", Shown(one.edit->lines),
                   ", version ", one.edit->version, " in ", one.earliest, " to ", one.latest,
                   one.edit->certain ? "" : ", perhaps", apps::StepsOf(one.edit->span));
    }
    return text;
  }

 private:
  // The kinds and lines of a change and of the changes that follow in its turn, by their distance; whether it is certain; its
  // turn where only changes of one turn are alike.
  using Effect = std::tuple<std::map<uint64_t, std::pair<Edit::Kind, Counts>>, bool, uint64_t>;

  // Two changes that do the same may be exchanged in an order, with all that follows each of them. Where changes may never come, one may
  // be followed while the other is not, so these are alike only if nothing follows.
  Effect EffectOf(const Edit& edit) const {
    std::map<uint64_t, std::pair<Edit::Kind, Counts>> does = {{0, {edit.kind, edit.lines}}};
    for (const Placed& other : edits_) {
      const auto [turns, turn] = other.edit->turn;
      if (turns != 0 && turns == edit.turn.first && turn > edit.turn.second)
        does.emplace(turn - edit.turn.second, std::pair(other.edit->kind, other.edit->lines));
    }
    const uint64_t own_turn = edit.certain || does.size() == 1 ? 0 : edit.turn.first;
    return {std::move(does), edit.certain, own_turn};
  }

  bool Find(uint64_t version, const Counts& before) {
    if (++steps_ > most_steps_ || !tried_.insert(Left(before)).second) return false;
    if (version > farthest_) farthest_ = version, at_farthest_ = before, left_ = edits_;
    const auto is_due = [&](const Placed& one) {
      return !one.used && one.edit->certain && (one.latest < version || version > last_);
    };
    if (std::ranges::any_of(edits_, is_due)) return false;
    if (version > last_) return true;
    const auto known =
        std::ranges::find(edits_, version, [](const Placed& one) { return one.edit->version; });
    if (known != edits_.end()) return Try(*known, version, before);
    std::vector<std::pair<uint64_t, Placed*>> next;
    for (Placed& one : edits_) {
      if (!MayCome(one, version) || !IsFirstOfItsEffect(one, version)) continue;
      if (const std::optional<Counts> after = After(before, *one.edit))
        next.emplace_back(DistanceToNextSight(version, *after), &one);
    }
    std::ranges::sort(next);  // by distance, then by their place in edits_
    return std::ranges::any_of(next, [&](const auto& of) { return Try(*of.second, version, before); });
  }

  // How much a basket of a version differs from what was seen then or next.
  uint64_t DistanceToNextSight(uint64_t version, const Counts& basket) const {
    const Counts& seen = seen_.lower_bound(version)->second;
    const auto count = [](const Counts& of, uint64_t product) -> int64_t {
      const auto found = of.find(product);
      return found == of.end() ? 0 : found->second;
    };
    int64_t distance = 0;
    for (const auto& [product, has] : basket) distance += std::abs(int64_t{has} - count(seen, product));
    for (const auto& [product, has] : seen) distance += basket.contains(product) ? 0 : has;
    return static_cast<uint64_t>(distance);
  }

  bool MayCome(const Placed& one, uint64_t version) const {
    if (one.known() || !one.MayBe(version)) return false;
    const uint64_t turns = one.edit->turn.first, turn = one.edit->turn.second;
    return turns == 0 || std::ranges::none_of(edits_, [turns, turn](const Placed& other) {
             return !other.used && other.edit->turn.first == turns && other.edit->turn.second < turn;
           });
  }

  bool IsFirstOfItsEffect(const Placed& one, uint64_t version) const {
    return std::ranges::none_of(edits_, [&](const Placed& other) {
      return other.effect == one.effect && std::pair(other.latest, &other) < std::pair(one.latest, &one) &&
             MayCome(other, version);
    });
  }

  bool Try(Placed& one, uint64_t version, const Counts& before) {
    const std::optional<Counts> after = After(before, *one.edit);
    const int64_t spare = one.edit->certain ? 0 : 1;
    if (!after || !one.MayBe(version) || spare > spare_) return false;
    const auto seen = seen_.find(version);
    if (seen != seen_.end() && seen->second != *after) return false;
    one.used = true, spare_ -= spare;
    if (Find(version + 1, *after)) return true;
    one.used = false, spare_ += spare;
    return false;
  }

  // Returns the hash of the state of the search: the changes that were used, and the basket.
  uint64_t Left(const Counts& before) const {
    uint64_t hash = 0;
    for (const auto& [product, count] : before) hash = Mix(Mix(hash, product), count);
    for (const Placed& one : edits_) hash = Mix(hash, one.used ? 1 : 0);
    return hash;
  }

  std::string FarthestVersion() const {
    const auto seen = seen_.find(farthest_);
    return Join(gave_up() ? "the search took too long; " : "", "no change explains version ", farthest_,
                " of ", last_, ": before it has ", Shown(at_farthest_), ", and ",
                seen == seen_.end() ? "then nobody saw it" : "then " + Shown(seen->second));
  }

  std::vector<Placed> edits_;
  const std::map<uint64_t, Counts> seen_;
  const uint64_t last_;
  const int most_steps_;
  int64_t spare_ = 0;  // versions that changes explain which are not certain
  int steps_ = 0;
  std::unordered_set<uint64_t> tried_;  // Left() of searches that have failed, or are in progress
  uint64_t farthest_ = 0;
  Counts at_farthest_;
  std::vector<Placed> left_;  // edits_ there
};

}  // namespace

Counts CountsOf(const google::protobuf::RepeatedPtrField<Line>& lines) {
  Counts counts;
  for (const Line& line : lines) counts[line.product()] = line.count();
  return counts;
}

void BasketHistory::Did(Edit edit) {
  const std::lock_guard lock(mu_);
  edits_.push_back(std::move(edit));
}

void BasketHistory::Saw(uint64_t version, Counts lines, apps::Span span) {
  const std::lock_guard lock(mu_);
  sights_.push_back({version, std::move(lines), span, apps::NowMs()});
}

void BasketHistory::Judge(const std::string& whose, bool may_give_up) const {
  std::map<uint64_t, Counts> seen;
  for (const Sight& sight : sights_) {
    const auto [at, fresh] = seen.emplace(sight.version, sight.lines);
    EXPECT_TRUE(fresh || at->second == sight.lines)
        << whose << ": version " << sight.version << " has " << Shown(at->second) << ", and "
        << Shown(sight.lines) << apps::StepsOf(sight.span);
    for (const Sight& later : sights_) {
      EXPECT_TRUE(later.span.began < sight.span.ended || later.version >= sight.version)
          << whose << ": version " << later.version << apps::StepsOf(later.span) << " after version "
          << sight.version << apps::StepsOf(sight.span);
    }
  }
  ASSERT_FALSE(seen.empty()) << whose;
  std::vector<Placed> edits;
  for (const Edit& edit : edits_) {
    Placed placed = {.edit = &edit, .earliest = 1, .latest = std::numeric_limits<uint64_t>::max()};
    for (const Sight& sight : sights_) {
      if (sight.span.ended < edit.span.began || sight.ended_ms < edit.after_ms)
        placed.earliest = std::max(placed.earliest, sight.version + 1);
      if (sight.span.began > edit.span.ended) placed.latest = std::min(placed.latest, sight.version);
    }
    edits.push_back(placed);
  }
  Explanation explanation(std::move(edits), std::move(seen), may_give_up ? kFewSteps : kMostSteps);
  const bool found = explanation.Find();
  if (!found && may_give_up && explanation.gave_up()) {
    std::printf("%s is not judged: too many orders of its changes are possible\n", whose.c_str());
    return;
  }
  EXPECT_TRUE(found) << whose << ": " << explanation.Failure();
}

}  // namespace curtail::shop
