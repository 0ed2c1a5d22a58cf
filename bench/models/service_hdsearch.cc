// SPDX-License-Identifier: Apache-2.0
//
// service_hdsearch.cc - image search: the mid-tier looks candidates up in its hash tables, the leaves compare
// them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/hdsearch/workload.h"
#include "cluster.h"
#include "service.h"

namespace curtail::models {
namespace {

constexpr size_t kNeighbours = 10;
constexpr size_t kQueries = 2000;

class HdSearch final : public TestedService {
 public:
  HdSearch(const ServiceOptions& options, std::unique_ptr<Workload> workload)
      : options_(options), workload_(std::move(workload)) {}

  std::string_view name() const override { return "hdsearch"; }
  std::string description() const override {
    return absl::StrCat("HDSearch over ", options_.data, ": a mid-tier with the hash tables, ",
                        options_.leaves, " leaves (", options_.leaf_config, ") with the vectors, ",
                        kNeighbours, " neighbours a query");
  }
  const Workload& workload() const override { return *workload_; }

  std::vector<std::string> LeafCommand(int index) const override {
    std::vector<std::string> argv = Common("leaf", options_.leaf_config);
    argv.insert(argv.end(), {"--shard", absl::StrCat(index, "/", options_.leaves)});
    return argv;
  }
  std::vector<std::string> MidTierCommand(const std::string& config,
                                          const std::vector<std::string>& leaves) const override {
    std::vector<std::string> argv = Common("mid-tier", config);
    for (const std::string& leaf : leaves) argv.insert(argv.end(), {"--leaf", leaf});
    return argv;
  }
  std::string_view ready_prefix() const override { return "ready "; }

 private:
  std::vector<std::string> Common(const std::string& service, const std::string& config) const {
    return {options_.program, "--service", service,       "--config", config,    "--data",
            options_.data,    "--listen",  "127.0.0.1:0", "--quiet",  "--drain", "1"};
  }

  const ServiceOptions options_;
  const std::unique_ptr<Workload> workload_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TestedService>> MakeHdSearch(const ServiceOptions& given) {
  ServiceOptions options = given;
  if (options.program.empty()) {
    absl::StatusOr<std::string> found = tool::FindHdSearch();
    if (!found.ok()) return found.status();
    options.program = *std::move(found);
  }
  hdsearch::WorkloadOptions wanted;
  wanted.data = options.data;
  wanted.count = kQueries;
  wanted.k = kNeighbours;
  wanted.judged = 0;  // judging takes CPU from the servers, which share it; `curtail demo` judges
  wanted.quiet = true;
  absl::StatusOr<std::unique_ptr<Workload>> workload = hdsearch::MakeWorkload(wanted);
  if (!workload.ok()) return workload.status();
  return std::make_unique<HdSearch>(options, *std::move(workload));
}

}  // namespace curtail::models
