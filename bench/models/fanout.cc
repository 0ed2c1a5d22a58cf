// SPDX-License-Identifier: Apache-2.0
//
// fanout.cc - the null fan-out: a mid-tier that calls its leaves and does nothing else. Its tiers are
// those of bench/peers.
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "fanout.curtail.h"
#include "fanout.h"

namespace curtail::models {
namespace {

constexpr size_t kPayloadBytes = 64;

std::string NullMessage() {
  bench::Blob blob;
  blob.set_payload(std::string(kPayloadBytes, '\0'));
  return blob.SerializeAsString();
}

class Fanout final : public tool::Application {
 public:
  explicit Fanout(const tool::ApplicationOptions& options) : options_(options) {}

  std::string_view name() const override { return "fanout"; }
  std::string_view service() const override { return "curtail.bench.Mid"; }
  std::string description() const override {
    return absl::StrCat("Null fan-out: a mid-tier calls ", options_.leaves, " leaves (", options_.leaf_config,
                        ") at once, ", kPayloadBytes, " bytes each way, no work");
  }
  const Workload& workload() const override { return workload_; }
  int leaves() const override { return options_.leaves; }

  std::vector<std::string> LeafCommand(int) const override {
    return {options_.program, "--role",
            "leaf",           "--stack",
            "curtail-SIB1",  // the mid-tier's; a leaf only parses it
            "--leaf-config",  options_.leaf_config};
  }
  std::vector<std::string> MidTierCommand(const tool::MidTierSetup& setup,
                                          const std::vector<std::string>& leaves) const override {
    std::vector<std::string> argv = {options_.program, "--role", "mid", "--stack",
                                     absl::StrCat("curtail-", setup.config)};
    for (const std::string& leaf : leaves) argv.insert(argv.end(), {"--leaf", leaf});
    return argv;
  }
  std::string_view ready_prefix() const override { return {}; }

 private:
  const tool::ApplicationOptions options_;
  const FixedWorkload workload_{std::string(bench::Mid::kQuery.path), NullMessage()};
};

absl::StatusOr<std::string> FindProgram() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::string path = (folder / "../peers/peers").lexically_normal();
  if (access(path.c_str(), X_OK) == 0) return path;
  return absl::NotFoundError(
      absl::StrCat("the peers program is missing at ", path, "; build it, or name it with --program"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<tool::Application>> MakeFanout(const tool::ApplicationOptions& given) {
  tool::ApplicationOptions options = given;
  if (options.program.empty()) {
    absl::StatusOr<std::string> found = FindProgram();
    if (!found.ok()) return found.status();
    options.program = *std::move(found);
  }
  return std::make_unique<Fanout>(options);
}

}  // namespace curtail::models
