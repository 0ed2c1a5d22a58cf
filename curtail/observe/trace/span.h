// SPDX-License-Identifier: Apache-2.0
//
// span.h - one call of a server, with its times and those of the calls that it made, as exporters see it.
//
// A Span is plain data of a fixed size: its parts hold no memory of their own, and it outlives what it tells of.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "curtail/base/clock.h"
#include "curtail/observe/trace/trace_context.h"

namespace curtail::observe {

// Text of at most n bytes; more is cut off.
template <size_t n>
class SpanText {
 public:
  static constexpr size_t kMost = n;

  void Assign(std::string_view text) {
    const size_t size = std::min(text.size(), n);
    size_ = static_cast<uint8_t>(size);
    char* const to = bytes_.data();
    const char* const from = text.data();
    // Steps of a size that the compiler knows, the last of which overlaps the one before.
    if (size >= kStep) [[likely]] {
      for (size_t at = 0; at + kStep < size; at += kStep) std::memcpy(to + at, from + at, kStep);
      std::memcpy(to + size - kStep, from + size - kStep, kStep);
    } else if (size > 0) {
      std::memcpy(to, from, size);
    }
  }
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  static constexpr size_t kStep = 16;
  static_assert(n >= kStep && n <= UINT8_MAX);
  uint8_t size_ = 0;
  std::array<char, n> bytes_;
};

using SpanPath = SpanText<95>;
using SpanAddress = SpanText<47>;

// Why a call became a span.
enum class SpanReason : uint8_t {
  kSampled,  // its caller or the server had chosen it before it ran
  kError,    // its status is not OK
  kSlow,     // it took longer than the rule allows
};

// A call that another one made. Times are zero where the caller has not read the clock.
struct ChildSpan {
  SpanPath path;
  SpanAddress target;   // of its channel
  uint64_t id = 0;      // the callee's parent
  uint64_t parent = 0;  // the caller, or the call within its process that made it
  TimePoint called;
  TimePoint sent;  // the request was serialized, and handed to its connection
  TimePoint answered;
  int code = 0;  // gRPC's
};

// One call of a server. The times ascend; those that were not read equal the one before.
struct Span {
  static constexpr size_t kMostChildren = 24;

  enum class Kind : uint8_t {
    kServer,     // a call that was served, and the calls that it made
    kCallsOnly,  // calls of a program that serves nobody: collectors get those alone
  };

  // For its Recycler.
  bool Recycle() { return true; }

  Kind kind = Kind::kServer;
  TraceId trace;
  uint64_t id = 0;
  uint64_t parent = 0;  // 0: the trace begins here
  SpanReason reason = SpanReason::kSampled;
  uint32_t method = 0;  // of the server's
  SpanPath path;
  SpanAddress peer;
  TimePoint arrived;   // the request was there whole
  TimePoint dequeued;  // a thread took it from the queue
  TimePoint began;     // its handler was about to run
  TimePoint replied;   // the handler had ended, and its reply was on its way to the connection
  TimePoint over;      // the reply was handed to the kernel
  int code = 0;        // gRPC's
  uint32_t child_count = 0;
  uint32_t children_left_out = 0;  // made, but not kept
  std::array<ChildSpan, kMostChildren> children;
};

}  // namespace curtail::observe
