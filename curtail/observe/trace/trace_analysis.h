// SPDX-License-Identifier: Apache-2.0
//
// trace_analysis.h - where the time of requests goes, by their spans: the parts of each tier and of each edge between
// tiers, the critical path of each class of requests, and the tier that makes the slow ones slow.
//
// A tier is a service, as the spans name it. A call whose callee has no span counts as the tier of its method, or as
// "package.Service": its time is "remote", and that of a call within the process "handler".
//
// Sums hold exactly, in ns: the parts of a tier are its total, those of an edge its total, and those of a critical path
// the durations of its requests. All of it takes time linear in the spans, but for logarithms, and memory of the
// order of the records'.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "curtail/observe/trace/trace_records.h"

namespace curtail::observe {

enum class TracePart : uint8_t {
  kQueue,      // until a thread took the request
  kEntry,      // interceptors
  kHandler,    // of its own: with no call under way, or beside calls that it need not have waited for
  kSerialize,  // of a call's request, and handing it to the connection
  kNetwork,    // between caller and callee: both kernels, the wire, reading the reply, waking the caller
  kRemote,     // within a callee without a span, and the network to it
  kReply,      // to hand the reply to the kernel
  kWait,       // for calls; on a critical path the parts of those stand for it
};
constexpr size_t kTraceParts = 8;
std::string_view TracePartName(TracePart part);

using PartTimes = std::array<int64_t, kTraceParts>;

struct TierTimes {
  TraceName tier = 0;
  uint64_t requests = 0;
  uint64_t failed = 0;
  PartTimes parts{};  // sum up to `total`
  int64_t total = 0;
  int64_t p50 = 0, p99 = 0;  // of one request
};

// The calls from one tier to another.
struct EdgeTimes {
  TraceName caller = 0, callee = 0;
  uint64_t calls = 0;
  uint64_t failed = 0;
  uint64_t seen = 0;  // whose callee's span is there, or is this process
  // Sum up to `total`.
  int64_t serialize = 0, network = 0, inside = 0, remote = 0;
  int64_t total = 0;
};

// A part of a tier on critical paths: for how long they led through it. That of kNetwork is the tier's that is called.
using PathTimes = std::map<std::pair<TraceName, TracePart>, int64_t>;

struct TierGrowth {
  enum class Verdict : uint8_t {
    kSteady,  // it takes as long in slow requests as in others
    kCulprit,
    kWaits,  // it takes longer as those that it calls do
    kGrew,   // it takes longer by itself, too
  };

  TraceName tier = 0;
  // Mean ns, in the other requests and in the slow ones: of one request of the tier, and of that its own part.
  double total_before = 0, total_slow = 0;
  double own_before = 0, own_slow = 0;
  // From the first request on, until the tier's requests first took half as much longer as they do in slow requests; none if they
  // never did.
  std::optional<int64_t> grew_at;
  Verdict verdict = Verdict::kSteady;
};

// The requests of a class that took longer than others, or than they may.
struct SlowRequests {
  int64_t limit = 0;  // slow ones took longer
  uint64_t slow = 0, others = 0;
  TraceName culprit = 0;
  TracePart part = TracePart::kHandler;  // of it that grew most
  int64_t growth = 0;  // of that tier's critical path, mean ns a request; all of it if there are no others
  int64_t whole_growth = 0;       // of the whole request
  std::vector<TierGrowth> tiers;  // from the one that clients call on
  std::vector<std::pair<TraceName, double>>
      instances;  // of the culprit: mean own ns in slow requests, the longest first
};

struct RequestClass {
  TraceName tier = 0, method = 0;
  uint64_t requests = 0;
  uint64_t failed = 0;
  int64_t total = 0;
  int64_t p50 = 0, p99 = 0;
  PathTimes path;                    // sums up to `total`
  int64_t network = 0;               // of the path: serialization, network, replies
  std::optional<SlowRequests> slow;  // absent: too few requests
};

struct TraceAnalysis {
  std::vector<TierTimes> tiers;       // by name
  std::vector<EdgeTimes> edges;       // by name
  std::vector<RequestClass> classes;  // the most frequent first
  uint64_t alone = 0;                 // spans within the application whose caller's is missing
  uint64_t calls_left_out = 0;        // that their spans did not keep
};

// `limit`: requests that take longer are slow; 0: the slowest tenth of each class.
TraceAnalysis AnalyzeTraces(const TraceRecords& records, int64_t limit);

}  // namespace curtail::observe
