// SPDX-License-Identifier: Apache-2.0
//
// trace_context.h - which trace a call belongs to, as its metadata says it: W3C Trace Context and B3.
//
// Forms read: "traceparent" and "tracestate" (https://www.w3.org/TR/trace-context-2/), "b3", and "x-b3-traceid" with
// its companions (https://github.com/openzipkin/b3-propagation). Forms written: traceparent always, B3 where it came.
//
// All metadata comes from peers: reading takes a time linear in its size, and what is malformed counts as not sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "curtail/wire/metadata.h"
#include "curtail/wire/trace_parent.h"

namespace curtail::observe {

// 128 bits, of which at least one is set in a trace that exists.
struct TraceId {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const TraceId&) const = default;
};

// The caller's choice whether the trace is recorded.
enum class TraceChoice : uint8_t {
  kOpen,  // the receiver chooses
  kNo,
  kYes,
};

// A TraceContext names the place in a trace from which a call comes. A value type.
struct TraceContext {
  // The form in which it came, besides traceparent.
  enum class B3 : uint8_t { kNone, kSingle, kMulti };

  // True if there is a trace.
  bool valid() const { return (trace.high | trace.low) != 0; }

  TraceId trace;
  uint64_t span = 0;  // the caller's; 0: it has none
  TraceChoice choice = TraceChoice::kOpen;
  B3 b3 = B3::kNone;
  bool short_trace = false;  // B3 that came with 64 bits of the trace's id, and leaves so
  bool state = false;        // a tracestate came that may be sent on
  bool random = false;       // the flag that says that the trace's id is random came, and is sent on
};

// The faults that a reading has found, for counters.
struct TraceErrors {
  bool context = false;  // a traceparent or B3, ignored: the call begins a trace of its own
  bool state = false;    // a tracestate, ignored
};

// The context in `metadata`; not valid() if there is none. traceparent goes before B3, and B3 in one entry before that in
// several. A key that comes twice makes its form malformed, but for tracestate.
TraceContext ReadTraceContext(const wire::Metadata& metadata, TraceErrors* errors);

// Adds the entries by which a child call says that it is span `span` of the trace, and chosen or not. tracestate is copied
// from `received`, the metadata that ReadTraceContext() read. The traceparent goes to `parent`; if that is null, to
// `carried`, too. REQUIRES: context.valid().
void AddTraceContext(const TraceContext& context, uint64_t span, bool chosen, const wire::Metadata& received,
                     wire::Metadata* carried, wire::TraceParent* parent);

// True if traceparent is all that AddTraceContext() adds. Then many calls of one request may share a traceparent, but for
// SetSpan().
inline bool IsParentOnly(const TraceContext& context) {
  return !context.state && context.b3 == TraceContext::B3::kNone;
}
void WriteTraceParent(const TraceContext& context, uint64_t span, bool chosen, wire::TraceParent* parent);
// REQUIRES: WriteTraceParent() wrote it.
void SetSpan(uint64_t span, wire::TraceParent* parent);

// True for the keys that ReadTraceContext() looks at.
bool IsTraceKey(std::string_view key);

// 16 digits in lower case.
void WriteHex(uint64_t value, char* to);

}  // namespace curtail::observe
