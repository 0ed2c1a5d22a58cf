// SPDX-License-Identifier: Apache-2.0
//
// trace_parent.h - W3C's traceparent, as a client sends it along with a call.
//
// It has a place of its own in a request's head. It differs from call to call, and a session that
// knows its form sends it in a tenth of the time of an entry of the metadata. The peer receives an
// entry like any other.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace curtail::wire {

// A TraceParent is a value type.
struct TraceParent {
  static constexpr std::string_view kKey = "traceparent";
  static constexpr size_t kBytes = 55;  // of version 00

  std::string_view view() const { return {text.data(), text.size()}; }

  // REQUIRES, if it is set: digits in lower case and dashes.
  std::array<char, kBytes> text;
  bool set = false;
};

}  // namespace curtail::wire
