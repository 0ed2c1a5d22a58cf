// SPDX-License-Identifier: Apache-2.0
//
// live_run.h - loads that run, for the dashboard: each is a file load-PID.json in the run folder of the application that
// it calls, written anew once a second and removed at its end.
//
// The dashboard trusts no file: it reads few and short ones, takes numbers as numbers and text as text, and removes
// those whose process is gone.
#pragma once

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/exec/parker.h"
#include "curtail/load/drive/live.h"
#include "curtail/observe/dashboard.h"

namespace curtail::tool {

std::string ToJson(const observe::DashboardLoad& run);
// All but the pid, which the file's name has. Errors: INVALID_ARGUMENT for anything that ToJson() does not write.
absl::StatusOr<observe::DashboardLoad> ParseLiveRun(std::string_view json);

// A LiveRunFile is there until it is destroyed, written by a thread of its own. Failures to write are silent: the run
// goes on without being shown.
class LiveRunFile {
 public:
  // `run` has the fields that stay; the others are read from `live`, which outlives this. It is written before the
  // constructor returns. Without a `folder` there is no file.
  LiveRunFile(const std::string& folder, observe::DashboardLoad run, const Live* live);
  ~LiveRunFile();
  LiveRunFile(const LiveRunFile&) = delete;
  LiveRunFile& operator=(const LiveRunFile&) = delete;

 private:
  static constexpr uint32_t kDone = Parker::Signal(0);
  void Run();
  void Write();

  const std::string path_;  // empty: none
  observe::DashboardLoad run_;
  const Live* const live_;
  Parker parker_;
  std::thread thread_;
};

// The runs in `folder`, by pid. At most kMostLiveRuns; those of a process that lives but wrote nothing for 10 s are left
// out. Removes files of processes that are gone.
inline constexpr size_t kMostLiveRuns = 16;
std::vector<observe::DashboardLoad> ReadLiveRuns(const std::string& folder);

}  // namespace curtail::tool
