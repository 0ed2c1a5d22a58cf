// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/tiers.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "curtail/deploy/find_program.h"

namespace curtail::deploy {
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

absl::Status MidTier::End(Nanos grace) {
  if (absl::Status status = Check(); !status.ok()) return status;
  const int status = process_->Terminate(grace);
  if (WIFEXITED(status)) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(process_->name(), " did not end by itself", process_->LogTail()));
}

absl::StatusOr<std::unique_ptr<Process>> Tiers::Launch(std::string name, const MidTierSetup& setup) const {
  const ServiceSpec& entry = topology_.entry();
  InstanceSetup instance;
  instance.config = setup.config;
  instance.policy = setup.policy;
  instance.profile = setup.profile;
  instance.listen = "127.0.0.1:0";
  instance.admin = setup.admin;
  instance.more_flags = {"--drain", "1"};
  if (!setup.fence.empty()) instance.more_flags.insert(instance.more_flags.end(), {"--fence", setup.fence});
  if (setup.any_machine) instance.more_flags.push_back("--any-machine");
  if (setup.slo > Nanos(0)) {
    const double slo_ms = static_cast<double>(setup.slo.count()) / 1e6;
    instance.more_flags.insert(instance.more_flags.end(), {"--slo", absl::StrCat(slo_ms)});
  }
  if (setup.cpu_weight) {
    const std::string weight = absl::StrCat(*setup.cpu_weight);
    instance.more_flags.insert(instance.more_flags.end(), {"--cpu-weight", weight});
  }
  absl::StatusOr<std::vector<std::string>> argv =
      CommandOf(topology_, entry, 0, behind_->addresses(), instance);
  if (!argv.ok()) return argv.status();
  absl::StatusOr<std::string> program = FindProgram(argv->front());
  if (!program.ok()) return program.status();
  argv->front() = *std::move(program);
  argv->insert(argv->begin(), setup.wrapper.begin(), setup.wrapper.end());
  ProcessOptions options;
  options.log_path =
      absl::StrCat(logs_.path(), "/", absl::StrReplaceAll(name, {{" ", "-"}, {"/", "-"}}), ".log");
  options.name = std::move(name);
  options.argv = *std::move(argv);
  return Process::Spawn(std::move(options));
}

absl::StatusOr<std::unique_ptr<Tiers>> Tiers::Start(const Topology& topology, const LogFolder& logs,
                                                    const std::atomic<bool>& stop) {
  std::unique_ptr<Tiers> tiers(new Tiers(topology, logs, stop));
  DeploymentOptions options;
  options.folder = logs.path();
  options.without_entry = true;
  options.start_timeout = kStartTimeout;
  absl::StatusOr<std::unique_ptr<Deployment>> behind = Deployment::Start(topology, std::move(options), stop);
  if (!behind.ok()) return behind.status();
  tiers->behind_ = *std::move(behind);
  return tiers;
}

absl::StatusOr<std::unique_ptr<MidTier>> Tiers::StartMidTier(MidTierSetup setup, bool admin) {
  const int number = ++mid_tiers_;
  if (admin) setup.admin = absl::StrCat("unix:", logs_.path(), "/admin-", number);
  const std::string& under = setup.policy.empty() ? setup.config : setup.policy;
  auto process = Launch(absl::StrCat("mid-tier ", number, " ", under), setup);
  if (!process.ok()) return process.status();
  absl::StatusOr<std::string> address =
      (*process)->AwaitAnyLine(topology_.entry().ready_prefixes, Deadline::In(kStartTimeout), &stop_);
  if (address.ok()) {
    if (!prepared_) {
      absl::Status prepared = Prepare(topology_, *address, logs_.path(), stop_);
      if (!prepared.ok()) return prepared;
      prepared_ = true;
    }
    return std::make_unique<MidTier>(*std::move(process), *std::move(address), std::move(setup.admin));
  }
  const bool ended = address.status().code() == absl::StatusCode::kAborted;
  if (ended && WIFEXITED((*process)->Terminate(kStopGrace))) {
    return absl::UnimplementedError(address.status().message());
  }
  return address.status();
}

}  // namespace curtail::deploy
