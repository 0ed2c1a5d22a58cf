// SPDX-License-Identifier: Apache-2.0
//
// fanout.cc - the null fan-out: a mid-tier that calls its leaves and does nothing else. Its tiers are
// those of bench/peers.
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fanout.curtail.h"
#include "fanout.h"

namespace curtail::models {
namespace {

constexpr size_t kPayloadBytes = 64;
constexpr int kLeaves = 4;

std::string NullMessage() {
  bench::Blob blob;
  blob.set_payload(std::string(kPayloadBytes, '\0'));
  return blob.SerializeAsString();
}

absl::StatusOr<std::string> FindProgram() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::string path = (folder / "../peers/peers").lexically_normal();
  if (access(path.c_str(), X_OK) == 0) return path;
  return absl::NotFoundError(
      absl::StrCat("the peers program is missing at ", path, "; build it, or name it with --program"));
}

// A server of bench/peers is no curtail service: it takes other flags, and prints only its address.
tool::ServiceSpec Service(std::string name, std::vector<std::string> run) {
  tool::ServiceSpec service;
  service.name = std::move(name);
  service.run = std::move(run);
  service.common_flags = false;
  service.ready_prefixes = {""};
  return service;
}

}  // namespace

absl::StatusOr<std::unique_ptr<tool::Application>> MakeFanout(const tool::ApplicationOptions& options) {
  std::string program = options.program;
  if (program.empty()) {
    absl::StatusOr<std::string> found = FindProgram();
    if (!found.ok()) return found.status();
    program = *std::move(found);
  }
  // The stack of a leaf is the mid-tier's; a leaf only parses it.
  tool::ServiceSpec leaf =
      Service("leaf", {program, "--role", "leaf", "--stack", "curtail-SIB1", "--leaf-config", "${config}"});
  leaf.shards = options.leaves > 0 ? options.leaves : kLeaves;
  leaf.config = options.leaf_config.empty() ? "SIB1" : options.leaf_config;
  tool::ServiceSpec mid_tier =
      Service("mid-tier", {program, "--role", "mid", "--stack", "curtail-${config}"});
  mid_tier.calls = {{.service = "leaf", .flag = "--leaf"}};
  mid_tier.entry = true;

  auto application = std::make_unique<tool::Application>();
  application->name = "fanout";
  application->service = "curtail.bench.Mid";
  application->description =
      absl::StrCat("Null fan-out: a mid-tier calls ", leaf.shards, " leaves (", leaf.config, ") at once, ",
                   kPayloadBytes, " bytes each way, no work");
  application->workload =
      std::make_shared<FixedWorkload>(std::string(bench::Mid::kQuery.path), NullMessage());
  application->topology.application = "fanout";
  application->topology.services = {std::move(leaf), std::move(mid_tier)};
  return application;
}

}  // namespace curtail::models
