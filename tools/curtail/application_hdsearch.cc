// SPDX-License-Identifier: Apache-2.0
//
// application_hdsearch.cc - image search: the mid-tier looks candidates up in its hash tables, the leaves compare
// them.
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "application.h"
#include "apps/hdsearch/workload.h"

namespace curtail::tool {
namespace {

class HdSearch final : public Application {
 public:
  HdSearch(const ApplicationOptions& options, std::unique_ptr<Workload> workload)
      : options_(options), workload_(std::move(workload)) {}

  std::string_view name() const override { return "hdsearch"; }
  std::string_view service() const override { return "curtail.hdsearch.Search"; }
  std::string description() const override {
    return absl::StrCat("HDSearch over ", options_.data, ": a mid-tier with the hash tables, ",
                        options_.leaves, " leaves (", options_.leaf_config, ") with the vectors, ",
                        options_.k, " neighbours a query");
  }
  const Workload& workload() const override { return *workload_; }
  int leaves() const override { return options_.leaves; }

  std::vector<std::string> LeafCommand(int index) const override {
    std::vector<std::string> argv = Common("leaf", options_.leaf_config);
    argv.insert(argv.end(), {"--shard", absl::StrCat(index, "/", options_.leaves)});
    return argv;
  }
  std::vector<std::string> MidTierCommand(const MidTierSetup& setup,
                                          const std::vector<std::string>& leaves) const override {
    std::vector<std::string> argv = Common("mid-tier", setup.config);
    const auto add = [&argv](const char* flag, const std::string& value) {
      if (!value.empty()) argv.insert(argv.end(), {flag, value});
    };
    add("--policy", setup.policy);
    add("--profile", setup.profile);
    add("--admin", setup.admin);
    if (setup.any_machine) argv.push_back("--any-machine");
    if (setup.slo > Nanos(0)) add("--slo", absl::StrCat(static_cast<double>(setup.slo.count()) / 1e6));
    for (const std::string& leaf : leaves) add("--leaf", leaf);
    return argv;
  }
  std::string_view ready_prefix() const override { return "ready "; }

 private:
  std::vector<std::string> Common(const std::string& service, const std::string& config) const {
    return {options_.program, "--service", service,       "--config", config,    "--data",
            options_.data,    "--listen",  "127.0.0.1:0", "--quiet",  "--drain", "1"};
  }

  const ApplicationOptions options_;
  const std::unique_ptr<Workload> workload_;
};

// The hdsearch executable that belongs to this one: beside it, or where the build puts it.
absl::StatusOr<std::string> FindProgram() {
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

}  // namespace

absl::StatusOr<std::unique_ptr<Application>> MakeHdSearch(const ApplicationOptions& given) {
  ApplicationOptions options = given;
  if (options.program.empty()) {
    absl::StatusOr<std::string> found = FindProgram();
    if (!found.ok()) return found.status();
    options.program = *std::move(found);
  }
  hdsearch::WorkloadOptions wanted;
  wanted.data = options.data;
  wanted.queries = options.queries;
  wanted.count = options.count;
  wanted.k = options.k;
  wanted.judged = options.judged;
  wanted.quiet = true;
  absl::StatusOr<std::unique_ptr<Workload>> workload = hdsearch::MakeWorkload(wanted);
  if (!workload.ok()) return workload.status();
  return std::make_unique<HdSearch>(options, *std::move(workload));
}

}  // namespace curtail::tool
