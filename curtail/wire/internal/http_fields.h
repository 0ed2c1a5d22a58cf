// SPDX-License-Identifier: Apache-2.0
//
// http_fields.h - the fields of one header block, as far as the rules of HTTP go (RFC 9113, 8.2 and 8.3).
//
// Thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "curtail/wire/internal/hpack.h"

namespace curtail::wire::internal {

struct HttpFields {
  uint32_t bytes = 0;     // as RFC 9113 6.5.2 counts: names, values, 32 a field
  uint16_t pseudo = 0;    // which pseudo-header fields there were, a bit each
  int16_t status = 0;     // three digits, or 0
  bool too_long = false;  // more bytes than allowed: nothing behind them was looked at
  bool bad_http = false;  // breaks a rule: likewise
  bool past_pseudo = false;
  bool has_length = false;
  int64_t content_length = 0;

  static constexpr uint16_t Bit(Field field) {
    return static_cast<uint16_t>(1u << static_cast<unsigned>(field));
  }

  // Counts the next field. False: nobody looks at it.
  [[gnu::always_inline]] bool Count(const HeaderField& field, uint32_t max_bytes) {
    constexpr size_t kOverhead = 32;
    if (too_long || bad_http) return false;
    bytes += static_cast<uint32_t>(field.name.size() + field.value.size() + kOverhead);
    if (bytes > max_bytes) {
      too_long = true;
      return false;
    }
    if (!field.valid) bad_http = true;
    return field.valid;
  }
  void CountPseudo(Field field) {
    if (past_pseudo || (pseudo & Bit(field)) != 0) bad_http = true;
    pseudo |= Bit(field);
  }
  void OnStatus(std::string_view value) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (value.size() != 3 || value[0] == '0' || !std::all_of(value.begin(), value.end(), is_digit)) return;
    status = static_cast<int16_t>((value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0'));
  }
  void OnContentLength(std::string_view value);
  // Counts the next field and applies the rules to it. False: nobody looks at it.
  bool Take(const HeaderField& field, uint32_t max_bytes);

  // True if these may begin a request, as far as they were looked at.
  bool IsRequest(bool end_stream) const {
    constexpr uint16_t kNeeded = Bit(Field::kMethod) | Bit(Field::kScheme) | Bit(Field::kPath);
    if (bad_http || (end_stream && content_length > 0)) return false;
    return too_long || (pseudo & (kNeeded | Bit(Field::kStatus))) == kNeeded;
  }
  // True if these may begin a reply, as far as they were looked at.
  bool IsReply() const { return !bad_http && (too_long || (pseudo == Bit(Field::kStatus) && status != 0)); }
  bool IsTrailers(bool end_stream) const { return !bad_http && pseudo == 0 && end_stream; }
};

}  // namespace curtail::wire::internal
