// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a document of spans, and spans whose fields are any bytes. Properties: parts are never negative and add up.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "curtail/base/strings.h"
#include "curtail/observe/trace/trace_analysis.h"

namespace {

using curtail::Join;
using namespace curtail::observe;

void Require(bool holds) {
  if (!holds) std::abort();
}

void Check(const TraceRecords& records) {
  const TraceAnalysis analysis = AnalyzeTraces(records, 0);
  for (const TierTimes& tier : analysis.tiers) {
    int64_t sum = 0;
    for (const int64_t part : tier.parts) Require(part >= 0), sum += part;
    Require(sum == tier.total);
  }
  for (const EdgeTimes& edge : analysis.edges) {
    for (const int64_t part : {edge.serialize, edge.network, edge.inside, edge.remote}) Require(part >= 0);
    Require(edge.serialize + edge.network + edge.inside + edge.remote == edge.total);
  }
  for (const RequestClass& of : analysis.classes) {
    int64_t sum = 0;
    for (const auto& [step, time] : of.path) Require(time >= 0), sum += time;
    Require(sum == of.total);
  }
}

// Takes bytes as small numbers, so that ids meet.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  unsigned Next() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  std::string Id() {
    static constexpr char kDigits[] = "0123456789abcdef";
    return Join("\"000000000000000", std::string(1, kDigits[Next() % 16]), "\"");
  }

 private:
  std::string_view bytes_;
};

std::string Method(Bytes& bytes) { return Join("\"/s.", bytes.Next() % 4, "/m\""); }

std::string Call(Bytes& bytes) {
  const unsigned total = bytes.Next(), send = total == 0 ? 0 : bytes.Next() % total;
  return Join("{\"id\":", bytes.Id(), ",\"parent\":", bytes.Id(), ",\"method\":", Method(bytes),
              ",\"target\":\"s.", bytes.Next() % 4, "\",\"status\":\"OK\",\"start_ns\":", bytes.Next(),
              ",\"total_ns\":", total, ",\"send_ns\":", send, "}");
}

std::string Span(Bytes& bytes) {
  const unsigned queue = bytes.Next(), entry = bytes.Next(), handler = bytes.Next() * 4, reply = bytes.Next();
  std::string calls;
  for (unsigned count = bytes.Next() % 5; count > 0; --count)
    calls += Join(calls.empty() ? "" : ",", Call(bytes));
  return Join(
      "{\"trace\":\"00000000000000000000000000000001\",\"id\":", bytes.Id(), ",\"parent\":", bytes.Id(),
      ",\"method\":", Method(bytes), ",\"status\":\"OK\",\"start_unix_us\":", bytes.Next(),
      ",\"queue_ns\":", queue, ",\"entry_ns\":", entry, ",\"handler_ns\":", handler, ",\"reply_ns\":", reply,
      ",\"total_ns\":", queue + entry + handler + reply, ",\"calls_left_out\":0,\"calls\":[", calls, "]}");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TraceRecords as_it_is;
  if (as_it_is.Add(text).ok()) Check(as_it_is);
  TraceRecords made;
  Bytes bytes(text);
  for (int documents = 0; documents < 24 && !bytes.empty(); ++documents) {
    const std::string service = Join("tier", bytes.Next() % 4);
    Require(made.Add(Join("{\"spans\":[", Span(bytes), "]}"), service).ok());
  }
  Check(made);
  return 0;
}
