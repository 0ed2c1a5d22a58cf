// SPDX-License-Identifier: Apache-2.0
//
// application.h - an application of several tiers that the command can start on this machine and send load to.
//
// An Application only says which commands start its tiers and what to send; tiers.h runs the processes. A new one is
// one file that implements this, and a line in MakeApplication().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/load/workload.h"

namespace curtail::tool {

struct ApplicationOptions {
  std::string program;  // the executable of the tiers; empty: where the build or the installation puts it
  std::string data = "fashion-mnist";  // hdsearch: the corpus, see hdsearch --help
  std::string queries;                 // hdsearch: those of the corpus when empty
  size_t count = 2000;                 // different requests at most
  size_t k = 10;                       // hdsearch: neighbours asked for
  // How many replies are judged, such as for recall. Judging takes CPU from the servers, which share it.
  size_t judged = 0;
  std::string leaf_config = "SIB1";
  int leaves = 4;
};

// Under which config or policy a mid-tier serves.
struct MidTierSetup {
  std::string config = "SIB1";  // at the start
  // The rest empty: that config for good.
  std::string policy;
  std::string profile;  // a file
  bool any_machine = false;
  Nanos slo{0};       // zero: the server's default
  std::string admin;  // address; empty: none
};

// An Application is immutable; const methods may be called from any thread.
class Application {
 public:
  virtual ~Application() = default;

  // As the commands take it.
  virtual std::string_view name() const = 0;
  // The full gRPC name of the service of its mid-tier, as profiles have it: "curtail.hdsearch.Search".
  virtual std::string_view service() const = 0;
  // For reports: one sentence without a full stop.
  virtual std::string description() const = 0;
  virtual const Workload& workload() const = 0;
  virtual int leaves() const = 0;

  // argv of leaf number `index`, and of a mid-tier over leaves at `leaves`. Both run until they are told to
  // end.
  virtual std::vector<std::string> LeafCommand(int index) const = 0;
  virtual std::vector<std::string> MidTierCommand(const MidTierSetup& setup,
                                                  const std::vector<std::string>& leaves) const = 0;
  // Each prints a line on standard output once it serves: this, then its address.
  virtual std::string_view ready_prefix() const = 0;
};

// Whether there is an application of this name, so that an address is not taken for one.
bool IsApplication(std::string_view name);
// Errors: NOT_FOUND (the name, the program, the data), INVALID_ARGUMENT (the data).
absl::StatusOr<std::unique_ptr<Application>> MakeApplication(std::string_view name,
                                                             const ApplicationOptions& options);

// The ones that there are.
absl::StatusOr<std::unique_ptr<Application>> MakeHdSearch(const ApplicationOptions& options);

}  // namespace curtail::tool
