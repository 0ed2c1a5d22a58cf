// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: the code is canonical (codes of one length count upwards in the order of their symbols), so the
// lengths alone say everything and all tables are computed from them when this file is compiled. Bits are kept
// left-aligned in a 64-bit word. One look-up of the next twelve bits decodes two characters of most header text, or
// one; codes that are longer still are found by comparing with the last code of each length.

#include "curtail/wire/internal/huffman.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace curtail::wire::internal {
namespace {

constexpr int kEndOfString = 256;
constexpr int kSymbols = 257;
constexpr int kMaxBits = 30;
constexpr int kRootBits = 12;

// The lengths of the codes of RFC 7541 appendix B, by symbol.
constexpr std::array<uint8_t, kSymbols> kLengths = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,  5,  5,  5,  6,
    6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
    7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,  15, 5,  6,  5,  6,  5,  6,  6,
    6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7,  15, 11, 14, 13, 28, 20, 22,
    20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23,
    22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22,
    23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22,
    25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
};

// The meaning of the next kRootBits bits: one symbol or, if they hold the whole codes of two, both.
struct RootEntry {
  uint8_t symbols[2];
  uint8_t count;
  uint8_t length;  // of the codes together; 0: the code is longer than kRootBits
};

// The tables of decoding; each array that is indexed by a length has room for kMaxBits.
struct Tables {
  std::array<RootEntry, 1 << kRootBits> root{};
  // All symbols in the order of their codes.
  std::array<uint16_t, kSymbols> symbols{};
  // The first code of a length, its place in `symbols`, and the end of the codes of that length, left-aligned in
  // 32 bits (so the end of the last one needs a 33rd).
  std::array<uint32_t, kMaxBits + 1> first_code{};
  std::array<uint16_t, kMaxBits + 1> first_symbol{};
  std::array<uint64_t, kMaxBits + 1> end{};
};

// Enters `entry` wherever the root bits start with `code`.
constexpr void FillRoot(Tables& tables, uint32_t code, RootEntry entry) {
  const uint32_t begin = code << (kRootBits - entry.length);
  const uint32_t end = (code + 1) << (kRootBits - entry.length);
  for (uint32_t i = begin; i < end; ++i) tables.root[i] = entry;
}

consteval Tables MakeTables() {
  Tables tables;
  std::array<uint32_t, kSymbols> codes{};
  uint32_t code = 0;
  uint16_t place = 0;
  for (int length = 1; length <= kMaxBits; ++length) {
    code <<= 1;
    tables.first_code[length] = code;
    tables.first_symbol[length] = place;
    for (int symbol = 0; symbol < kSymbols; ++symbol) {
      if (kLengths[symbol] != length) continue;
      tables.symbols[place++] = static_cast<uint16_t>(symbol);
      codes[symbol] = code++;
    }
    tables.end[length] = static_cast<uint64_t>(code) << (32 - length);
  }
  for (int i = 0; i < tables.first_symbol[kRootBits + 1]; ++i) {
    const auto first = static_cast<uint8_t>(tables.symbols[i]);
    FillRoot(tables, codes[first], {{first, 0}, 1, kLengths[first]});
    for (int j = 0; kLengths[first] + kLengths[tables.symbols[j]] <= kRootBits; ++j) {
      const auto second = static_cast<uint8_t>(tables.symbols[j]);
      const auto length = static_cast<uint8_t>(kLengths[first] + kLengths[second]);
      FillRoot(tables, codes[first] << kLengths[second] | codes[second], {{first, second}, 2, length});
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();
static_assert(kTables.end[kMaxBits] == 1ull << 32, "the code is complete");
static_assert(kTables.symbols[kSymbols - 1] == kEndOfString, "the code of all ones ends the string");

struct Symbol {
  int length;
  int value;
};

// The code longer than kRootBits that `bits` starts with. There always is one: the code is complete.
Symbol LongCode(uint64_t bits) {
  const auto next = static_cast<uint32_t>(bits >> 32);
  int length = kRootBits + 1;
  while (next >= kTables.end[length]) ++length;
  const uint32_t rank = (next >> (32 - length)) - kTables.first_code[length];
  return {length, kTables.symbols[kTables.first_symbol[length] + rank]};
}

// The first code of `bits` alone, where `entry` is what the root says.
Symbol FirstCode(uint64_t bits, RootEntry entry) {
  if (entry.length == 0) return LongCode(bits);
  return {kLengths[entry.symbols[0]], entry.symbols[0]};
}

uint64_t LoadBigEndian(const char* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  return word;
}

// A BitReader holds the next bits of a string, the first of them on top. At most 63 bits count; what lies below
// them is either zero or the bits that follow, so that adding bytes again does no harm.
struct BitReader {
  const char* next;
  const char* end;
  uint64_t bits = 0;
  int count = 0;

  // Takes bytes until there are at least 56 bits, or no more bytes.
  void Fill() {
    if (end - next >= 8) {
      bits |= LoadBigEndian(next) >> count;
      const int bytes = (63 - count) >> 3;
      next += bytes;
      count += bytes * 8;
      return;
    }
    while (count < 56 && next != end) {
      bits |= static_cast<uint64_t>(static_cast<uint8_t>(*next++)) << (56 - count);
      count += 8;
    }
  }

  RootEntry Root() const { return kTables.root[bits >> (64 - kRootBits)]; }

  void Drop(int length) {
    bits <<= length;
    count -= length;
  }
};

}  // namespace

std::optional<size_t> HuffmanDecode(std::string_view coded, char* out) {
  const char* const begin = out;
  BitReader in{coded.data(), coded.data() + coded.size()};
  for (in.Fill(); in.count >= kMaxBits; in.Fill()) {
    do {
      const RootEntry entry = in.Root();
      if (entry.length != 0) [[likely]] {
        std::memcpy(out, entry.symbols, 2);
        out += entry.count;
        in.Drop(entry.length);
        continue;
      }
      const Symbol symbol = LongCode(in.bits);
      if (symbol.value == kEndOfString) return std::nullopt;
      *out++ = static_cast<char>(symbol.value);
      in.Drop(symbol.length);
    } while (in.count >= kMaxBits);
  }
  // The last bits, continued by ones, until only ones are left: a part of them is the padding.
  in.bits |= ~uint64_t{0} >> in.count;
  while (in.bits != ~uint64_t{0}) {
    const RootEntry entry = in.Root();
    if (entry.length != 0 && entry.length <= in.count) {
      std::memcpy(out, entry.symbols, 2);
      out += entry.count;
      in.Drop(entry.length);
    } else {
      const Symbol symbol = FirstCode(in.bits, entry);
      if (symbol.length > in.count) return std::nullopt;
      *out++ = static_cast<char>(symbol.value);
      in.Drop(symbol.length);
    }
    in.bits |= ~uint64_t{0} >> in.count;
  }
  if (in.count >= 8) return std::nullopt;
  return static_cast<size_t>(out - begin);
}

}  // namespace curtail::wire::internal
