// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: two chained hash tables, one by name and value and one by name, over the static entries (made when this
// file is compiled) and over the entries of the dynamic table, which only grows until it is cleared. The hash
// looks at lengths and a few bytes, which tells the fields of one application apart; the chains are short anyway.
//
// Literals are written raw. Huffman coding would make them a fifth to a quarter shorter, but costs ten to twenty
// instructions a byte at each end, and services in one data centre are short of instructions, not of bandwidth.
// Fields that repeat come from the table and are one or two bytes either way.

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "curtail/wire/internal/hpack.h"
#include "curtail/wire/internal/hpack_static_table.h"

namespace curtail::wire::internal {
namespace {

constexpr uint32_t kBuckets = 64;

constexpr uint32_t Byte(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

constexpr uint32_t HashName(std::string_view name) {
  if (name.empty()) return 0;
  return static_cast<uint32_t>(name.size()) * 5 + Byte(name, name.size() - 1) * 3 +
         Byte(name, name.size() / 2) * 17;
}

constexpr uint32_t HashPair(uint32_t name_hash, std::string_view value) {
  if (value.empty()) return name_hash;
  const size_t size = value.size();
  return name_hash + static_cast<uint32_t>(size) * 7 + Byte(value, size - 1) * 11 +
         Byte(value, size / 2) * 29 + Byte(value, size * 3 / 4) * 37;
}

// The heads of the chains: numbers of entries, from 1; 0 ends a chain.
using Heads = std::array<uint8_t, kBuckets>;
constexpr uint32_t kMaxEntries = kDefaultTableBytes / kEntryOverhead;
static_assert(kMaxEntries <= UINT8_MAX && kStaticEntries <= UINT8_MAX);

// HpackEncoder's index of the static table.
struct StaticIndex {
  Heads pair_heads{};
  Heads name_heads{};
  std::array<uint8_t, kStaticEntries + 1> next_pair{};
  std::array<uint8_t, kStaticEntries + 1> next_name{};
};

consteval StaticIndex MakeStaticIndex() {
  StaticIndex index;
  // Backwards, so that of several entries with one name the first is found first.
  for (uint32_t i = kStaticEntries; i > 0; --i) {
    const HeaderField& field = kStaticTable[i - 1];
    const uint32_t hash = HashName(field.name);
    uint8_t& name_head = index.name_heads[hash % kBuckets];
    uint8_t& pair_head = index.pair_heads[HashPair(hash, field.value) % kBuckets];
    index.next_name[i] = name_head;
    index.next_pair[i] = pair_head;
    name_head = pair_head = static_cast<uint8_t>(i);
  }
  return index;
}

constexpr StaticIndex kStaticIndex = MakeStaticIndex();

// The representations of RFC 7541 6, as their first byte and the mask of the integer in it.
constexpr uint8_t kIndexed = 0x80;
constexpr uint8_t kInsertedLiteral = 0x40;
constexpr uint8_t kPlainLiteral = 0x00;
constexpr uint8_t kSizeUpdate = 0x20;
constexpr uint32_t kIndexedMask = 0x7f;
constexpr uint32_t kInsertedMask = 0x3f;
constexpr uint32_t kPlainMask = 0x0f;
constexpr uint32_t kSizeMask = 0x1f;
constexpr uint8_t kRawString = 0x00;
constexpr uint32_t kStringMask = 0x7f;

// A Head collects the integers that go ahead of text.
class Head {
 public:
  void Integer(uint8_t first, uint32_t mask, size_t value) {
    if (value < mask) [[likely]] {
      bytes_[size_++] = static_cast<char>(first | value);
      return;
    }
    bytes_[size_++] = static_cast<char>(first | mask);
    for (value -= mask; value >= 0x80; value >>= 7) bytes_[size_++] = static_cast<char>(value | 0x80);
    bytes_[size_++] = static_cast<char>(value);
  }
  void AppendTo(std::string* out) const { out->append(bytes_, size_); }

 private:
  char bytes_[24];  // two integers of at most 64 bits
  size_t size_ = 0;
};

bool Same(std::string_view a, const char* b, size_t b_size) {
  return a.size() == b_size && std::memcmp(a.data(), b, b_size) == 0;
}

}  // namespace

struct HpackEncoder::Table {
  struct Entry {
    uint32_t begin;  // of the name in `bytes`; the value follows
    uint16_t name_size;
    uint16_t value_size;
    uint8_t next_pair;
    uint8_t next_name;
  };

  // The index on the wire: the newest entry has the lowest.
  uint32_t IndexOf(uint32_t number) const {
    return kStaticEntries + 1 + static_cast<uint32_t>(entries.size()) - number;
  }

  Heads pair_heads{};
  Heads name_heads{};
  // The oldest first.
  std::vector<Entry> entries;
  std::string bytes;
};

HpackEncoder::HpackEncoder() = default;
HpackEncoder::~HpackEncoder() = default;

size_t HpackEncoder::table_entries() const { return table_ == nullptr ? 0 : table_->entries.size(); }

void HpackEncoder::SetPeerTableSize(uint32_t bytes) {
  const uint32_t limit = std::min(bytes, kDefaultTableBytes);
  if (limit == table_limit_) return;
  table_limit_ = limit;
  table_.reset();
  bytes_ = 0;
  pending_ = true;
  ++generation_;
}

void HpackEncoder::Begin(std::string* out) {
  if (!pending_) return;
  pending_ = false;
  // The first update empties the peer's table, and covers any smaller size that came and went since the last
  // block (RFC 7541 4.2).
  Head head;
  head.Integer(kSizeUpdate, kSizeMask, 0);
  if (table_limit_ != 0) head.Integer(kSizeUpdate, kSizeMask, table_limit_);
  head.AppendTo(out);
}

void HpackEncoder::Encode(std::string_view name, std::string_view value, Indexing indexing,
                          std::string* out) {
  const uint32_t name_hash = HashName(name);
  const uint32_t pair_hash = HashPair(name_hash, value);
  Head head;
  if (const uint32_t index = FindPair(pair_hash, name, value); index != 0) {
    head.Integer(kIndexed, kIndexedMask, index);
    return head.AppendTo(out);
  }
  const uint32_t name_index = FindName(name_hash, name);
  if (indexing == Indexing::kIndex && Insert(name, value, name_hash, pair_hash)) {
    head.Integer(kInsertedLiteral, kInsertedMask, name_index);
  } else {
    head.Integer(kPlainLiteral, kPlainMask, name_index);
  }
  if (name_index == 0) {
    head.Integer(kRawString, kStringMask, name.size());
    head.AppendTo(out);
    out->append(name);
    head = Head();
  }
  head.Integer(kRawString, kStringMask, value.size());
  head.AppendTo(out);
  out->append(value);
}

uint32_t HpackEncoder::FindPair(uint32_t hash, std::string_view name, std::string_view value) const {
  for (uint32_t i = kStaticIndex.pair_heads[hash % kBuckets]; i != 0; i = kStaticIndex.next_pair[i]) {
    const HeaderField& field = kStaticTable[i - 1];
    if (field.value == value && field.name == name) return i;
  }
  if (table_ == nullptr) return 0;
  for (uint32_t i = table_->pair_heads[hash % kBuckets]; i != 0;) {
    const Table::Entry& entry = table_->entries[i - 1];
    const char* const bytes = table_->bytes.data() + entry.begin;
    if (Same(value, bytes + entry.name_size, entry.value_size) && Same(name, bytes, entry.name_size)) {
      return table_->IndexOf(i);
    }
    i = entry.next_pair;
  }
  return 0;
}

uint32_t HpackEncoder::FindName(uint32_t hash, std::string_view name) const {
  for (uint32_t i = kStaticIndex.name_heads[hash % kBuckets]; i != 0; i = kStaticIndex.next_name[i]) {
    if (kStaticTable[i - 1].name == name) return i;
  }
  if (table_ == nullptr) return 0;
  for (uint32_t i = table_->name_heads[hash % kBuckets]; i != 0;) {
    const Table::Entry& entry = table_->entries[i - 1];
    if (Same(name, table_->bytes.data() + entry.begin, entry.name_size)) return table_->IndexOf(i);
    i = entry.next_name;
  }
  return 0;
}

bool HpackEncoder::Insert(std::string_view name, std::string_view value, uint32_t name_hash,
                          uint32_t pair_hash) {
  const size_t size = name.size() + value.size() + kEntryOverhead;
  if (size > table_limit_ - bytes_) return false;
  if (table_ == nullptr) table_ = std::make_unique<Table>();
  const auto number = static_cast<uint8_t>(table_->entries.size() + 1);
  uint8_t& pair_head = table_->pair_heads[pair_hash % kBuckets];
  uint8_t& name_head = table_->name_heads[name_hash % kBuckets];
  table_->entries.push_back({static_cast<uint32_t>(table_->bytes.size()), static_cast<uint16_t>(name.size()),
                             static_cast<uint16_t>(value.size()), pair_head, name_head});
  pair_head = name_head = number;
  table_->bytes.append(name);
  table_->bytes.append(value);
  bytes_ += static_cast<uint32_t>(size);
  ++generation_;
  return true;
}

}  // namespace curtail::wire::internal
