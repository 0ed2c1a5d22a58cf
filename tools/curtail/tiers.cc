// SPDX-License-Identifier: Apache-2.0
#include "tiers.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace curtail::tool {
namespace {

constexpr Nanos kStartTimeout = std::chrono::seconds(60);
constexpr Nanos kStopGrace = std::chrono::seconds(3);

}  // namespace

LogFolder::LogFolder() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "curtail-XXXXXX").string();
  if (!error && mkdtemp(name.data()) != nullptr) path_ = name;
}

LogFolder::~LogFolder() {
  std::error_code error;
  if (!kept_ && !path_.empty()) std::filesystem::remove_all(path_, error);
}

absl::Status MidTier::Check() {
  if (process_->Running()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(process_->name(), " has ended", process_->LogTail()));
}

absl::StatusOr<std::unique_ptr<Process>> Tiers::Launch(std::string name,
                                                       std::vector<std::string> argv) const {
  ProcessOptions options;
  options.log_path =
      absl::StrCat(logs_.path(), "/", absl::StrReplaceAll(name, {{" ", "-"}, {"/", "-"}}), ".log");
  options.name = std::move(name);
  options.argv = std::move(argv);
  return Process::Spawn(std::move(options));
}

absl::StatusOr<std::string> Tiers::AwaitAddress(Process& process) const {
  return process.AwaitLine(application_.ready_prefix(), Deadline::In(kStartTimeout), &stop_);
}

absl::StatusOr<std::unique_ptr<Tiers>> Tiers::Start(const Application& application, const LogFolder& logs,
                                                    const std::atomic<bool>& stop) {
  std::unique_ptr<Tiers> tiers(new Tiers(application, logs, stop));
  for (int i = 0; i < application.leaves(); ++i) {
    auto leaf = tiers->Launch(absl::StrCat("leaf ", i), application.LeafCommand(i));
    if (!leaf.ok()) return leaf.status();
    tiers->leaves_.push_back(*std::move(leaf));
  }
  for (const auto& leaf : tiers->leaves_) {
    absl::StatusOr<std::string> address = tiers->AwaitAddress(*leaf);
    if (!address.ok()) return address.status();
    tiers->addresses_.push_back(*std::move(address));
  }
  return tiers;
}

absl::StatusOr<std::unique_ptr<MidTier>> Tiers::StartMidTier(MidTierSetup setup, bool admin) {
  const int number = ++mid_tiers_;
  if (admin) setup.admin = absl::StrCat("unix:", logs_.path(), "/admin-", number);
  const std::string& under = setup.policy.empty() ? setup.config : setup.policy;
  auto process =
      Launch(absl::StrCat("mid-tier ", number, " ", under), application_.MidTierCommand(setup, addresses_));
  if (!process.ok()) return process.status();
  absl::StatusOr<std::string> address = AwaitAddress(**process);
  if (address.ok()) {
    return std::make_unique<MidTier>(*std::move(process), *std::move(address), std::move(setup.admin));
  }
  const bool ended = address.status().code() == absl::StatusCode::kAborted;
  if (ended && WIFEXITED((*process)->Terminate(kStopGrace))) {
    return absl::UnimplementedError(address.status().message());
  }
  return address.status();
}

absl::Status Tiers::CheckLeaves() {
  for (const auto& leaf : leaves_) {
    if (!leaf->Running())
      return absl::AbortedError(absl::StrCat(leaf->name(), " has ended", leaf->LogTail()));
  }
  return absl::OkStatus();
}

}  // namespace curtail::tool
