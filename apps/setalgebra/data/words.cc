// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/data/words.h"

#include <cstring>

#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 32)) * kFactor;
  return x ^ (x >> 29);
}

}  // namespace

absl::StatusOr<std::string> NormalTerm(std::string_view term) {
  std::string normal;
  size_t words = 0;
  ForEachWord(term, [&](std::string_view word) { normal = word, ++words; });
  if (words == 1) return normal;
  const std::string shown(term.substr(0, 64));
  if (words > 1) {
    return absl::InvalidArgumentError(Join("term '", shown, "' is ", words, " words; give each as a term"));
  }
  if (term.size() > kMaxWord) {
    return absl::InvalidArgumentError(Join("term '", shown, "...' is longer than ", kMaxWord, " bytes"));
  }
  return absl::InvalidArgumentError(Join("term '", shown, "' holds no letter or digit"));
}

uint64_t HashWord(std::string_view word) {
  uint64_t hash = word.size() * kFactor;
  const char* at = word.data();
  size_t left = word.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t piece;
    std::memcpy(&piece, at, 8);
    hash = Mix(hash ^ piece) * kFactor;
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < left; ++i) tail |= uint64_t{static_cast<uint8_t>(at[i])} << (8 * i);
  return Mix(Mix(hash ^ tail) * kFactor);
}

size_t WordTable::SlotOf(std::string_view word_wanted, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const uint32_t tag = static_cast<uint32_t>(hash >> 32);
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.number == kNone) return at;
    if (slot.tag == tag && word(slot.number) == word_wanted) return at;
  }
}

uint32_t WordTable::Find(std::string_view word) const { return slots_[SlotOf(word, HashWord(word))].number; }

uint32_t WordTable::Insert(std::string_view word) {
  const uint64_t hash = HashWord(word);
  size_t at = SlotOf(word, hash);
  if (slots_[at].number != kNone) return slots_[at].number;
  if ((size() + 1) * 4 > slots_.size() * 3) {
    Grow();
    at = SlotOf(word, hash);
  }
  const uint32_t number = static_cast<uint32_t>(size());
  text_.insert(text_.end(), word.begin(), word.end());
  ends_.push_back(text_.size());
  slots_[at] = {static_cast<uint32_t>(hash >> 32), number};
  return number;
}

void WordTable::Grow() {
  slots_.assign(slots_.size() * 2, Slot{});
  const size_t mask = slots_.size() - 1;
  for (uint32_t number = 0; number < size(); ++number) {
    const uint64_t hash = HashWord(word(number));
    size_t at = hash & mask;
    while (slots_[at].number != kNone) at = (at + 1) & mask;
    slots_[at] = {static_cast<uint32_t>(hash >> 32), number};
  }
}

void WordTable::ShrinkToFit() {
  text_.shrink_to_fit();
  ends_.shrink_to_fit();
}

size_t WordTable::bytes() const {
  return text_.capacity() + ends_.capacity() * sizeof(uint64_t) + slots_.capacity() * sizeof(Slot);
}

}  // namespace curtail::setalgebra
