// SPDX-License-Identifier: Apache-2.0
//
// binary_fields.h - the values of "-bin" keys that arrive, from base64 to bytes.
//
// A peer may refer to a field of its table by one byte, again and again. Such a field is decoded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "curtail/wire/internal/hpack.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire::internal {

// Values of "-bin" keys in one call that share a field with others, by commas.
inline constexpr uint32_t kMaxJoined = 16;

// A BinaryFields belongs to one HpackDecoder, and keeps what it made of the entries of its table, 32 KiB at most.
// Thread-compatible.
class BinaryFields {
 public:
  // The bytes that a field holds. Proxies may join repeated fields with commas, which base64 never contains.
  struct Values {
    uint64_t number = 0;     // HeaderField::number
    uint32_t joined = 0;     // commas; with more than kMaxJoined the rest is not set
    bool malformed = false;  // some of it is not valid base64
    Metadata entries;
  };

  // The result lives until the next call. `table_entries` is the decoder's.
  const Values& Decode(const HeaderField& field, size_t table_entries);

 private:
  static void DecodeInto(const HeaderField& field, Values* values);

  Values once_;  // of a field that is in no table
  // By the low bits of the number: as many as the table has had entries, so that those that it has do not meet.
  std::vector<Values> known_;
  size_t known_bytes_ = 0;
};

}  // namespace curtail::wire::internal
