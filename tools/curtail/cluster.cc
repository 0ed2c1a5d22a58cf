// SPDX-License-Identifier: Apache-2.0
#include "cluster.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace curtail::tool {
namespace {

constexpr Nanos kStopGrace = std::chrono::seconds(3);

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Cluster::Launch(const ClusterOptions& options, std::string name,
                                                         std::vector<std::string> flags) {
  ProcessOptions process;
  process.log_path = absl::StrCat(options.log_folder, "/", absl::StrReplaceAll(name, {{" ", "-"}}), ".log");
  process.name = std::move(name);
  process.argv = {options.hdsearch, "--data",  options.data, "--listen",
                  "127.0.0.1:0",    "--quiet", "--drain",    "1"};
  process.argv.insert(process.argv.end(), flags.begin(), flags.end());
  return Process::Spawn(std::move(process));
}

absl::Status Cluster::AwaitReady(const ClusterOptions& options, const std::atomic<bool>& stop,
                                 std::vector<Member>& members) {
  const Deadline deadline = Deadline::In(options.start_timeout);
  for (Member& member : members) {
    absl::StatusOr<std::string> address = member.process->AwaitLine("ready ", deadline, &stop);
    if (!address.ok()) return address.status();
    member.address = *std::move(address);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(const ClusterOptions& options,
                                                        const std::atomic<bool>& stop) {
  std::unique_ptr<Cluster> cluster(new Cluster());
  for (int i = 0; i < options.leaves; ++i) {
    auto leaf =
        Launch(options, absl::StrCat("leaf ", i),
               {"--service", "leaf", "--config", "SIB1", "--shard", absl::StrCat(i, "/", options.leaves)});
    if (!leaf.ok()) return leaf.status();
    cluster->leaves_.push_back({*std::move(leaf), {}});
  }
  if (absl::Status ready = AwaitReady(options, stop, cluster->leaves_); !ready.ok()) return ready;
  // One after the other: each loads the corpus with all CPUs, and a polling one would slow the rest down.
  for (const std::string& config : options.configs) {
    std::vector<std::string> flags = {"--service", "mid-tier", "--config", config};
    for (const Member& leaf : cluster->leaves_) flags.insert(flags.end(), {"--leaf", leaf.address});
    auto mid_tier = Launch(options, absl::StrCat("mid-tier ", config), std::move(flags));
    if (!mid_tier.ok()) return mid_tier.status();
    std::vector<Member> one;
    one.push_back({*std::move(mid_tier), {}});
    if (absl::Status ready = AwaitReady(options, stop, one); !ready.ok()) return ready;
    one.front().process->Pause();
    cluster->mid_tiers_.push_back(std::move(one.front()));
  }
  return cluster;
}

Cluster::~Cluster() {
  for (std::vector<Member>* members : {&mid_tiers_, &leaves_}) {
    for (Member& member : *members) {
      if (!member.process->Running()) continue;
      member.process->Resume();
      kill(member.process->pid(), SIGTERM);  // all at once, so that their grace runs together
    }
  }
  for (std::vector<Member>* members : {&mid_tiers_, &leaves_}) {
    for (Member& member : *members) member.process->Terminate(kStopGrace);
  }
}

void Cluster::Activate(size_t index) {
  for (size_t i = 0; i < mid_tiers_.size(); ++i) {
    if (i != index) mid_tiers_[i].process->Pause();
  }
  mid_tiers_[index].process->Resume();
}

absl::Status Cluster::Check() {
  for (std::vector<Member>* members : {&leaves_, &mid_tiers_}) {
    for (Member& member : *members) {
      if (!member.process->Running()) {
        return absl::AbortedError(
            absl::StrCat(member.process->name(), " has ended", member.process->LogTail()));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FindHdSearch() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::string looked;
  for (const char* place : {"hdsearch", "../apps/hdsearch/hdsearch", "../../apps/hdsearch/hdsearch"}) {
    const std::string path = (folder / place).lexically_normal();
    if (access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, error)) return path;
    absl::StrAppend(&looked, looked.empty() ? "" : ", ", path);
  }
  return absl::NotFoundError(absl::StrCat("the hdsearch program is missing; looked at ", looked));
}

}  // namespace curtail::tool
