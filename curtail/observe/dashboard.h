// SPDX-License-Identifier: Apache-2.0
//
// dashboard.h - the dashboard: pages for a browser, and the document that they show, once a second.
//
// The files are built from web/dashboard and lie in the program, compressed. docs/observe.md describes the dashboard.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "curtail/observe/http_admin.h"

namespace curtail::observe {

// A service of an application and the services that it calls.
struct DashboardService {
  std::string name;
  std::vector<std::string> calls;
  bool entry = false;
};

// A process, or a part of the application that runs elsewhere.
struct DashboardInstance {
  std::string name;
  std::string service;
  std::string state = "ready";  // as in `curtail ps`
  int64_t pid = 0;              // 0: none now
  std::string address;
  int restarts = 0;
  std::string problem;  // why it ended last
  std::string error;    // why the next two are missing; empty: they are not, or were not asked for
  // The bodies of its pages /status.json and /metrics, which a program of another make may have
  // written; empty: none.
  std::string status;
  std::string metrics;
};

// A load generator that calls the application now.
struct DashboardLoad {
  int64_t pid = 0;
  std::string command;   // as it was typed, without secrets
  std::string label;     // "run 2/5"
  double elapsed_s = 0;  // since the start of the run
  double total_s = 0;    // as planned; 0: open
  uint64_t ok = 0;       // since then, as is `failed`
  uint64_t failed = 0;
  uint64_t in_flight = 0;
  // Of the last second; latency is from the intended send time.
  double due_per_s = 0;
  double sent_per_s = 0;
  double p50_us = 0;
  double p99_us = 0;
};

struct DashboardView {
  std::string application;
  uint64_t sample = 0;  // counts samples
  int64_t age_ms = 0;   // of this one
  bool traces = false;  // "/traces" has spans
  std::vector<DashboardService> services;
  std::vector<DashboardInstance> instances;
  std::vector<DashboardLoad> loads;
};

// "/dashboard.json": schema_version and the fields above, as web/dashboard/document.ts has their
// types. `status` is the object that its text holds. It is null, and `error` has the reason, where
// the text is not a status of this version.
std::string DashboardJson(const DashboardView& view);

// "/" for browsers, and the files that it loads. Readers that take no gzip, such as curl, get `index` at "/".
std::vector<HttpAdminPage> DashboardPages(std::string index);

}  // namespace curtail::observe
