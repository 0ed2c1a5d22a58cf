// SPDX-License-Identifier: Apache-2.0
//
// service.h - an application whose mid-tier is measured under each threading model.
//
// A service only says which commands start its tiers and what to send; tiers.h runs the processes and sweep.h
// measures. A new service is one file that implements this, and a line in MakeService().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/workload.h"

namespace curtail::models {

struct ServiceOptions {
  std::string program;  // the executable of the tiers; empty: where the build puts it
  std::string data;     // hdsearch: the corpus
  std::string leaf_config = "SIB1";
  int leaves = 4;
};

// A TestedService is immutable; const methods may be called from any thread.
class TestedService {
 public:
  virtual ~TestedService() = default;

  // As --service takes it.
  virtual std::string_view name() const = 0;
  // What is measured, for the report: one sentence without a full stop.
  virtual std::string description() const = 0;
  virtual const Workload& workload() const = 0;

  // argv of leaf number `index`, and of a mid-tier over leaves at `leaves`. Both run until they are told to
  // end.
  virtual std::vector<std::string> LeafCommand(int index) const = 0;
  virtual std::vector<std::string> MidTierCommand(const std::string& config,
                                                  const std::vector<std::string>& leaves) const = 0;
  // Each prints a line on standard output once it serves: this, then its address.
  virtual std::string_view ready_prefix() const = 0;
};

// Errors: NOT_FOUND (the program, the data), INVALID_ARGUMENT (the data).
absl::StatusOr<std::unique_ptr<TestedService>> MakeFanout(const ServiceOptions& options);
absl::StatusOr<std::unique_ptr<TestedService>> MakeHdSearch(const ServiceOptions& options);

}  // namespace curtail::models
