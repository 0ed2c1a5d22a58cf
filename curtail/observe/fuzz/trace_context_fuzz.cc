// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the metadata of a trace: lines "key: value" whose keys are one letter. Properties: the context that a child
// call carries is read again as the same trace, without errors, and may be sent.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "curtail/observe/trace/trace_context.h"

namespace {

using curtail::observe::ReadTraceContext;
using curtail::observe::TraceChoice;
using curtail::observe::TraceContext;
using curtail::observe::TraceErrors;
using curtail::wire::Metadata;

constexpr std::string_view kKeys[] = {"traceparent", "tracestate",   "b3",         "x-b3-traceid",
                                      "x-b3-spanid", "x-b3-sampled", "x-b3-flags", "x-other"};

void Require(bool holds) {
  if (!holds) std::abort();
}

// Text that is nearly well formed is rare in random bytes.
constexpr std::string_view kNearly[] = {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                        "a=1,b@c=2", "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
                                        "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"};

void Check(const Metadata& received) {
  TraceErrors errors;
  const TraceContext context = ReadTraceContext(received, &errors);
  if (!context.valid()) return;
  Require(context.span != 0);
  Metadata carried;
  AddTraceContext(context, 0x1234, context.choice == TraceChoice::kYes, received, &carried, nullptr);
  Require(curtail::wire::CheckMetadata(carried).ok());
  TraceErrors none;
  const TraceContext again = ReadTraceContext(carried, &none);
  Require(again.trace == context.trace && again.span == 0x1234 && again.b3 == context.b3);
  Require(again.state == context.state && !none.context && !none.state);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Metadata received;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 3) {
    const std::string_view key = kKeys[static_cast<uint8_t>(rest[0]) % std::size(kKeys)];
    const auto form = static_cast<uint8_t>(rest[1]);
    const size_t length = static_cast<uint8_t>(rest[2]);
    rest.remove_prefix(3);
    const std::string_view bytes = rest.substr(0, length);
    std::string value(bytes);
    if (form % 2 == 0) {
      value = kNearly[form / 2 % std::size(kNearly)];
      if (!bytes.empty()) value[static_cast<uint8_t>(bytes[0]) % value.size()] = bytes.back();
    }
    received.AddLowerCase(key, value);
    rest.remove_prefix(bytes.size());
  }
  Check(received);
  return 0;
}
