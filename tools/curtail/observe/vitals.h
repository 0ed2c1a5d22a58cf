// SPDX-License-Identifier: Apache-2.0
//
// vitals.h - the load, latency and resources of each service of an application that is up, between two looks at it.
//
// Numbers of calls come from the HTTP admin sockets of curtail services, those of resources from /proc. Thread-compatible.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/observe/metrics_reader.h"

namespace curtail::tool {

// Of one method, or of several together: calls so far.
struct CallCounts {
  double calls = 0;
  double errors = 0;   // of these
  double seconds = 0;  // sum of their times
  CumulatedBuckets durations;
};

// A process as one look found it.
struct ProcessVitals {
  ProcessState process;
  std::string error;     // why its pages could not be read; empty: they were, or it has none
  bool counted = false;  // it is a curtail service, and was read: the next fields are known
  CallCounts calls;      // of the application's own methods
  std::map<std::string, CallCounts> edges;  // that its handlers made, by the target of their channel
  std::string config;
  double queued = 0, begun = 0, queue_wait_s = 0;
  // By /proc; absent: it has no process here.
  std::optional<int> threads;
  double cpu_s = 0, resident_mib = 0;
  TimePoint at;

  bool ready() const;
};

// All processes of an application.
struct ApplicationVitals {
  std::string application;
  int64_t started_unix_ms = 0;
  std::vector<ProcessVitals> processes;
};

// Looks at an application; takes 500 ms at most, or until `stop`. Errors: those of ReadUpState().
absl::StatusOr<ApplicationVitals> LookAt(const std::string& application, const std::atomic<bool>& stop);
// The part that comes of the text of /metrics.
void ReadCounts(const std::string& metrics, ProcessVitals* into);

// A service between two looks. What is unknown is absent: a process that was not there at both says nothing of rates.
struct ServiceVitals {
  std::string name;
  int processes = 0, ready = 0;
  int restarts = 0;
  std::vector<std::string> problems;  // of those that are not ready, or were not some seconds ago
  std::optional<double> calls_per_s, errors_per_s;
  std::optional<double> p50_s, p99_s, mean_s;  // of the calls that ended meanwhile
  std::string config;                          // the configs in force; empty: none is known
  std::optional<double> queued, queue_wait_s;  // requests ready to run; the mean wait of those that began
  std::optional<double> threads, cpus, resident_mib;
};

// By name.
std::vector<ServiceVitals> Compare(const ApplicationVitals& before, const ApplicationVitals& now);

// The calls of one service to another between two looks, absent where nothing is known of them.
struct EdgeVitals {
  std::string caller;
  std::string callee;  // a target that is no process of the application by its own name
  std::optional<double> calls_per_s, errors_per_s;
  std::optional<double> p50_s, p99_s;  // of the calls that ended meanwhile
};

// By caller and callee, those that there have been so far.
std::vector<EdgeVitals> CompareEdges(const ApplicationVitals& before, const ApplicationVitals& now);

}  // namespace curtail::tool
