// SPDX-License-Identifier: Apache-2.0
//
// kubectl.h - the user's kubectl, which knows the way to the cluster and who the user is there.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/deploy/process/process.h"

namespace curtail::tool {

// A Kubectl runs commands in one namespace. Thread-compatible.
class Kubectl {
 public:
  // The one of PATH. An empty `name_space` is the one that kubectl itself would take. Errors: FAILED_PRECONDITION without
  // a kubectl.
  static absl::StatusOr<Kubectl> Find(const std::string& name_space);

  // The standard output of a command. Errors: FAILED_PRECONDITION with the last of what kubectl said; NOT_FOUND if that is
  // that a thing is not there; DEADLINE_EXCEEDED; CANCELLED when `stop` (may be null) was set.
  absl::StatusOr<std::string> Run(std::vector<std::string> words, Nanos timeout,
                                  const std::atomic<bool>* stop) const;
  // Starts one that goes on. The caller reads its output.
  absl::StatusOr<std::unique_ptr<deploy::Process>> Start(std::vector<std::string> words) const;

  // " in the namespace search"; empty where kubectl chooses.
  std::string Where() const;
  const std::string& name_space() const { return name_space_; }

 private:
  Kubectl(std::string program, std::string name_space)
      : program_(std::move(program)), name_space_(std::move(name_space)) {}

  std::string program_;
  std::string name_space_;
};

// The end of `all`, kubectl's standard error, without the lines of its own log.
std::string KubectlSaid(std::string_view all);

// A private file that is removed with this object.
class ScratchFile {
 public:
  explicit ScratchFile(std::string_view content = "");
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  // Empty if it could not be made.
  const std::string& path() const { return path_; }
  std::string Content() const;

 private:
  std::string path_;
};

}  // namespace curtail::tool
