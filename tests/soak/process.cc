// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/process/process_usage.h"

namespace curtail::soak {

Held HeldBy(pid_t pid) {
  Held held;
  held.resident_mib = deploy::ResidentMib(pid);
  std::error_code error;
  const std::filesystem::directory_iterator descriptors(absl::StrCat("/proc/", pid, "/fd"), error);
  if (!error) held.descriptors = static_cast<int>(std::distance(begin(descriptors), end(descriptors)));
  return held;
}

ServerProcess::ServerProcess(std::string name, std::vector<std::string> arguments, std::string log)
    : name_(std::move(name)), log_(std::move(log)), arguments_(std::move(arguments)) {}

absl::Status ServerProcess::Start() {
  absl::Status started = TryStart();
  for (const Deadline until = Deadline::In(kMaxTestWait); !started.ok() && !until.Expired();) {
    poll(nullptr, 0, 50);  // nothing tells when the port is free
    started = TryStart();
  }
  if (started.ok()) return started;
  return absl::UnavailableError(absl::StrCat(name_, " does not start: ", started.message()));
}

absl::Status ServerProcess::TryStart() {
  auto process = deploy::Process::Spawn({.name = name_, .argv = arguments_, .log_path = log_});
  if (!process.ok()) return process.status();
  absl::StatusOr<std::string> address =
      (*process)->AwaitLine("listening on ", Deadline::In(kMaxTestWait), nullptr);
  if (!address.ok()) return address.status();
  process_ = *std::move(process);
  address_ = *std::move(address);
  // From now on at this port.
  std::replace_if(
      arguments_.begin(), arguments_.end(), [](const std::string& a) { return a.ends_with(":0"); }, address_);
  return absl::OkStatus();
}

void ServerProcess::Kill() {
  if (process_ != nullptr) process_->Kill();
}

absl::Status ServerProcess::CheckRuns() {
  if (process_->Running()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name_, " ", process_->HowItEnded(), process_->LogTail()));
}

}  // namespace curtail::soak
