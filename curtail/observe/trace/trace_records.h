// SPDX-License-Identifier: Apache-2.0
//
// trace_records.h - reads spans of several services, as the page /traces has them, and keeps them for trace_analysis.h.
//
// The documents may come from anywhere: what is malformed is refused and counted, and memory is bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/observe/trace/trace_context.h"

namespace curtail::observe {

// Stands for a text of TraceRecords::name().
using TraceName = uint32_t;

// A call that a request made. Times in ns, from the arrival of the request.
struct RecordedCall {
  uint64_t id = 0;
  uint64_t parent = 0;      // the span's id, or that of a call within its process
  TraceName method = 0;     // "/package.Service/Method"
  TraceName service = 0;    // of that, "package.Service"
  bool in_process = false;  // the callee has no span of its own
  bool failed = false;
  int64_t start = 0;
  int64_t total = 0;
  int64_t send = 0;  // of `total`, until it was handed to its connection; 0: unknown
};

// A request of a server. Its four times sum up to `total`; `handler` includes waiting for calls.
struct RecordedSpan {
  TraceId trace;
  uint64_t id = 0;
  uint64_t parent = 0;  // the call that it answers; 0: none
  TraceName service = 0;
  TraceName instance = 0;
  TraceName method = 0;
  bool failed = false;
  int64_t start_unix_us = 0;
  int64_t queue = 0, entry = 0, handler = 0, reply = 0;
  int64_t total = 0;
  uint32_t first_call = 0, calls = 0;  // in TraceRecords::calls()
  uint32_t calls_left_out = 0;
};

// So much is kept, some 60 MiB; raise them for longer recordings.
struct TraceBounds {
  size_t spans = 1u << 17;
  size_t calls = 1u << 19;
  size_t names = 4096;  // further ones are "other"
};

// A TraceRecords grows until its bounds. Thread-compatible.
class TraceRecords {
 public:
  static constexpr size_t kMostCallsOfSpan = 32;
  static constexpr size_t kMostNameBytes = 160;
  static constexpr size_t kMostDocument = 64u << 20;
  static constexpr int64_t kLongest = 3'600'000'000'000;  // an hour

  explicit TraceRecords(TraceBounds bounds = {});

  // Adds the spans of one such document, or of an array of them, that it does not have yet, and leaves out health
  // checks. `service` and `instance`, unless empty, stand for the document's own name. Errors: INVALID_ARGUMENT for text
  // that is not such a document.
  absl::Status Add(std::string_view json, std::string_view service = {}, std::string_view instance = {});

  const std::vector<RecordedSpan>& spans() const { return spans_; }
  // Those of a span lie together.
  const std::vector<RecordedCall>& calls() const { return calls_; }
  const std::string& name(TraceName name) const { return names_[name]; }
  // The number for a text; the one for "other" once there are too many.
  TraceName Name(std::string_view text);
  // Spans that were malformed, and those beyond the bounds.
  uint64_t refused() const { return refused_; }
  uint64_t left_out() const { return left_out_; }

 private:
  class Reader;

  const TraceBounds bounds_;
  std::vector<RecordedSpan> spans_;
  std::vector<RecordedCall> calls_;
  std::vector<std::string> names_;
  std::map<std::string, TraceName, std::less<>> name_of_;
  std::set<std::array<uint64_t, 3>> known_;  // trace and id of each span
  uint64_t refused_ = 0;
  uint64_t left_out_ = 0;
};

// "package.Service" of "/package.Service/Method".
std::string_view ServiceOfPath(std::string_view path);

}  // namespace curtail::observe
