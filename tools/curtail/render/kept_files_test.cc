// SPDX-License-Identifier: Apache-2.0
//
// Compares what is rendered with the files in testdata/. CURTAIL_REWRITE=1 in the environment writes these anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "tools/curtail/deploy/application.h"
#include "tools/curtail/render/render_testing.h"

namespace curtail::tool {
namespace {

void ExpectAsKept(const std::string& folder, const std::vector<RenderedFile>& files) {
  for (const RenderedFile& file : files) {
    const std::filesystem::path path = std::filesystem::path(CURTAIL_RENDER_TESTDATA) / folder / file.path;
    const std::string text = absl::StrReplaceAll(file.text, {{CURTAIL_VERSION, "VERSION"}});
    if (std::getenv("CURTAIL_REWRITE") != nullptr) {
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << text;
    }
    std::ifstream in(path);
    const std::string kept{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(text, kept) << path << "; CURTAIL_REWRITE=1 writes it anew";
  }
}

TEST(RenderedFiles, PlainManifestsAreAsKept) { ExpectAsKept("kubernetes", PlainManifests(PlanOf(kShop))); }
TEST(RenderedFiles, ChartIsAsKept) { ExpectAsKept("helm", HelmChart(PlanOf(kShop))); }
TEST(RenderedFiles, ComposeFileIsAsKept) { ExpectAsKept("compose", ComposeFile(PlanOf(kShop))); }

// An application as it is shipped, so that whoever changes its topology sees what becomes of it on a cluster.
TEST(RenderedFiles, ManifestsOfHdsearchAreAsKept) {
  absl::StatusOr<Topology> topology = LoadTopology("hdsearch");
  ASSERT_TRUE(topology.ok()) << topology.status();
  const absl::StatusOr<Plan> plan =
      MakePlan(*std::move(topology), {.image = "registry.example/hdsearch:1.2"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectAsKept("hdsearch", PlainManifests(*plan));
}

TEST(RenderedFiles, JobOfALoadTestIsAsKept) {
  ExpectAsKept("job", {{"load.yaml", LoadJobOf(PlanOf(kShop))}});
}

}  // namespace
}  // namespace curtail::tool
