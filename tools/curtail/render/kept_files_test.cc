// SPDX-License-Identifier: Apache-2.0
//
// Compares what is rendered with the files in testdata/. CURTAIL_REWRITE=1 in the environment writes them again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "apps/shipped/application.h"
#include "tools/curtail/render/helm_testing.h"
#include "tools/curtail/render/render_testing.h"

namespace curtail::tool {
namespace {

const std::filesystem::path kTestdata = CURTAIL_RENDER_TESTDATA;

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> FilesBelow(const std::filesystem::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.insert(entry.path().lexically_relative(folder));
  }
  return files;
}

void ExpectAsKept(const std::string& folder, const std::vector<RenderedFile>& files) {
  std::set<std::string> names;
  for (const RenderedFile& file : files) {
    names.insert(file.path);
    const std::filesystem::path path = kTestdata / folder / file.path;
    const std::string text = absl::StrReplaceAll(file.text, {{CURTAIL_VERSION, "VERSION"}});
    if (std::getenv("CURTAIL_REWRITE") != nullptr) {
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << text;
    }
    EXPECT_EQ(text, Read(path)) << path << "; CURTAIL_REWRITE=1 writes it again";
  }
  EXPECT_EQ(names, FilesBelow(kTestdata / folder));
}

// Plain manifests are the kept templates with these values filled in.
void ExpectAsTheChart(const std::vector<RenderedFile>& manifests, const std::string& values) {
  YAML::Node known;
  known["Values"] = YAML::Load(values);
  known["Release"] = YAML::Load("{Name: shop, Service: curtail}");
  const std::filesystem::path templates = kTestdata / "helm" / "templates";
  std::set<std::string> names;
  for (const RenderedFile& file : manifests) {
    names.insert(file.path);
    EXPECT_EQ(file.text, FillInTemplate(Read(templates / file.path), known)) << file.path;
  }
  EXPECT_EQ(names, FilesBelow(templates));
}

TEST(RenderedFiles, ChartIsAsKept) { ExpectAsKept("helm", HelmChart(PlanOf(kShop))); }

TEST(RenderedFiles, PlainManifestsAreTheKeptChart) {
  ExpectAsTheChart(PlainManifests(PlanOf(kShop)), Read(kTestdata / "helm" / "values.yaml"));
}

// All that the chart leaves out by default is there, and what it has by default is not.
TEST(RenderedFiles, PlainManifestsWithOtherValuesAreTheKeptChart) {
  Plan plan = PlanOf(kShop, {.image = "shop", .image_pull_secrets = {"one", "two"}, .tls_secret = "tls"});
  const auto set = [&](const std::string& path, Yaml value) {
    Yaml* at = &plan.values;
    for (const std::string& key : std::vector<std::string>(absl::StrSplit(path, '.'))) at = at->Find(key);
    *at = std::move(value);
  };
  set("services.cache.enabled", false);
  set("services.pay.enabled", false);
  set("services.leaf.config", "");
  set("services.leaf.policy", "online");
  set("services.cartStore.config", "FIB1");
  set("services.frontEnd.policy", "");
  set("fence", "on");
  set("tracing.to", "otlp=http://[fd00::1]:4318/traces");
  set("balancer", "");
  set("healthChecks", false);
  set("retries", 0);
  set("maxConnectionAgeSeconds", 0);
  set("autoscaling.enabled", false);
  set("podDisruptionBudget.enabled", false);
  set("serviceMonitor.enabled", true);
  set("serviceMonitor.labels", Yaml::Map({{"release", "prometheus"}}));
  set("storage.className", "fast");
  ExpectAsTheChart(PlainManifests(plan), plan.values.Write());
  set("networkPolicy.enabled", false);
  set("dashboard.enabled", false);
  set("prepare.enabled", false);
  set("autoscaling.enabled", true);
  set("autoscaling.queueWaitMs", 2);
  set("autoscaling.p99Ms", 50);
  set("tracing.to", "zipkin=http://collector:9411");
  ExpectAsTheChart(PlainManifests(plan), plan.values.Write());
}

TEST(RenderedFiles, ComposeFileIsAsKept) { ExpectAsKept("compose", ComposeFile(PlanOf(kShop))); }

// An application as it is shipped, so that whoever changes its topology sees what becomes of it on a cluster.
TEST(RenderedFiles, ManifestsOfHdsearchAreAsKept) {
  absl::StatusOr<deploy::Topology> topology = apps::LoadTopology("hdsearch");
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
