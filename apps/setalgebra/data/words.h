// SPDX-License-Identifier: Apache-2.0
//
// words.h - cuts text into words, and numbers them.
//
// A word is a longest run of ASCII letters, digits and bytes from 0x80 up, at most kMaxWord bytes long;
// longer runs are no words. A to Z become a to z; bytes from 0x80 up are kept as they are, whether they are
// UTF-8 or not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace curtail::setalgebra {

inline constexpr size_t kMaxWord = 255;

namespace internal {

// The byte that a byte becomes in a word; 0: it ends the word.
inline constexpr std::array<uint8_t, 256> kWordBytes = [] {
  std::array<uint8_t, 256> bytes = {};
  for (unsigned c = '0'; c <= '9'; ++c) bytes[c] = static_cast<uint8_t>(c);
  for (unsigned c = 'a'; c <= 'z'; ++c) bytes[c] = bytes[c - 'a' + 'A'] = static_cast<uint8_t>(c);
  for (unsigned c = 0x80; c <= 0xff; ++c) bytes[c] = static_cast<uint8_t>(c);
  return bytes;
}();

}  // namespace internal

// Calls body(std::string_view word) for each word in turn; the view lives as long as the call.
template <class Body>
void ForEachWord(std::string_view text, Body body) {
  char word[kMaxWord];
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    size_t size = 0;
    for (; at < end; ++at) {
      const uint8_t byte = internal::kWordBytes[static_cast<uint8_t>(*at)];
      if (byte == 0) break;
      if (size < kMaxWord) word[size] = static_cast<char>(byte);
      ++size;
    }
    if (size > 0 && size <= kMaxWord) body(std::string_view(word, size));
    ++at;
  }
}

// A term of a query as the index knows it. Errors: INVALID_ARGUMENT when it is not exactly one word.
[[nodiscard]] absl::StatusOr<std::string> NormalTerm(std::string_view term);

// The same for every process and platform of one byte order.
uint64_t HashWord(std::string_view word);

// A WordTable numbers different words from 0 in the order they come. Thread-compatible.
class WordTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The number of a word, kNone when it is not there.
  uint32_t Find(std::string_view word) const;
  // The number of a word, which is added when it is new. REQUIRES: fewer than 2^31 words.
  uint32_t Insert(std::string_view word);

  size_t size() const { return ends_.size(); }
  // Valid until the next Insert().
  std::string_view word(uint32_t number) const {
    const uint64_t begin = number == 0 ? 0 : ends_[number - 1];
    return {text_.data() + begin, static_cast<size_t>(ends_[number] - begin)};
  }
  // Gives back memory kept for more words.
  void ShrinkToFit();
  // Of memory.
  size_t bytes() const;

 private:
  struct Slot {
    uint32_t tag = 0;  // of the hash
    uint32_t number = kNone;
  };

  // The slot of a word, or the free one where it belongs.
  size_t SlotOf(std::string_view word, uint64_t hash) const;
  void Grow();

  std::vector<char> text_;  // the words, one after the other
  std::vector<uint64_t> ends_;
  std::vector<Slot> slots_ = std::vector<Slot>(16);  // open addressing; a power of two
};

}  // namespace curtail::setalgebra
