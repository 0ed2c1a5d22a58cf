// SPDX-License-Identifier: Apache-2.0
//
// The tables and the overlay of a made-up provisioning, and its JSON, which tests/schema checks by its schema.
#include "tools/curtail/provision/provision_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/base/schema_testing.h"
#include "nlohmann/json.hpp"

namespace curtail::tool {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ProvisionReport Report() {
  ProvisionReport report{.application = "shop", .qos = "p99<50ms"};
  report.options.cpus = 2;
  report.options.instances = {{"front", 1}, {"cart", 2}, {"cache", 1}};
  report.start = {{"front", {.cpu = 0.02, .config = "auto"}},
                  {"cart", {.cpu = 0.02, .config = "SDB1-4"}},
                  {"cache", {.cpu = 0.02, .config = ""}}};
  report.kept = report.start;
  report.kept.at("front") = {.cpu = 0.04, .config = "FIB2"};
  ProvisionRound first{.highest_per_s = 120, .refused_per_s = 132, .cpus = 0.08};
  first.saturated = {{"front", Lever::kCpu, 0.62, "out of CPU time in 62 % of periods"}};
  first.steps = {{"front", Lever::kCpu, report.start.at("front"), {.cpu = 0.04, .config = "auto"}, "..."}};
  first.verdict = StepVerdict::kHelps;
  first.pairs = 4, first.good_before = 0.71, first.good_after = 0.99;
  first.gain = Interval{0.2, 0.36};
  ProvisionRound second{.highest_per_s = 200, .refused_per_s = 220, .cpus = 0.1};
  second.saturated = {{"cart", Lever::kThreads, 0.8, "calls wait 9.10 ms for a thread, 80 % of their time"}};
  second.steps = {
      {"cart", Lever::kThreads, report.start.at("cart"), {.cpu = 0.02, .config = "SDB1-8"}, "..."}};
  second.verdict = StepVerdict::kCannotTell;
  second.pairs = 8, second.good_before = 0.9, second.good_after = 0.91;
  second.gain = Interval{-0.02, 0.04};
  report.rounds = {first, second};
  report.highest_per_s = 200;
  report.equal = report.start;
  report.equal_per_s = 130;
  report.end = ProvisionEnd::kNoStepHelps;
  report.reason = "more for cart cannot be told to help, and it is saturated first";
  report.at_highest = {{.name = "front", .cpus = 0.031}, {.name = "cart", .cpus = 0.01}};
  return report;
}

deploy::Topology Shop() {
  return *deploy::Topology::Parse(
      "application: shop\nservices:\n  front: {run: shop, calls: [cart], stores: [cache], entry: true}\n"
      "  cart: {run: shop, config: SDB1-4, shards: 2}\n  cache: {run: 'c ${address}', protocol: redis}\n",
      "shop.yaml");
}

TEST(ProvisionReport, SaysWhatWasTriedAndWhatItCameTo) {
  const std::string text = ProvisionText(Report());
  EXPECT_THAT(text, HasSubstr("front: out of CPU time in 62 % of periods"));
  EXPECT_THAT(text, HasSubstr("front cpu 0.02 -> 0.04"));
  EXPECT_THAT(text, HasSubstr("71.0 % -> 99.0 %"));
  EXPECT_THAT(text, HasSubstr("cart SDB1-4 -> SDB1-8"));
  EXPECT_THAT(text, HasSubstr("cannot tell"));
  EXPECT_THAT(text, HasSubstr("ended: more for cart"));
  EXPECT_THAT(text,
              HasSubstr("equal shares   120/s within p99<50ms, 0.08 CPUs\nprovisioned    200/s, 0.10 CPUs\n"
                        "the same CPUs in equal shares  130/s\n"));
  EXPECT_THAT(RoundText(Report(), 0),
              HasSubstr("round 1: 120/s within QoS, 132/s not; saturated first: front"));
  EXPECT_THAT(RoundText(Report(), 1), HasSubstr("cannot tell: good requests 90.0 % -> 91.0 %, in 8 pairs"));
}

TEST(ProvisionReport, TheOverlayHasWhatDiffersAndCanBeRead) {
  deploy::Topology shop = Shop();
  const std::string yaml = OverlayYaml(Report(), shop, "curtail provision shop");
  EXPECT_THAT(yaml, HasSubstr("# Written by: curtail provision shop\n# 200/s within p99<50ms"));
  EXPECT_THAT(yaml, HasSubstr("  front: {cpu: 0.04, config: FIB2}\n"));
  EXPECT_THAT(yaml, HasSubstr("  cart: {cpu: 0.02}\n")) << "it has its own config";
  EXPECT_THAT(yaml, HasSubstr("  cache: {cpu: 0.02}\n"));
  const absl::Status laid = shop.Overlay(yaml, "shop-provisioned.yaml");
  ASSERT_TRUE(laid.ok()) << laid;
  EXPECT_EQ(shop.Find("front")->cpu, 0.04);
  EXPECT_EQ(shop.Find("front")->config, "FIB2");

  ProvisionReport threads = Report();
  threads.kept = {{"front", {.config = "auto"}}, {"cart", {.config = "SDB1-4"}}, {"cache", {}}};
  const std::string none = OverlayYaml(threads, Shop(), "curtail provision shop");
  EXPECT_THAT(none, HasSubstr("services: {}\n"));
  EXPECT_TRUE(shop.Overlay(none, "none.yaml").ok());
}

TEST(ProvisionReport, TheJsonIsAsItsSchemaSays) {
  ReportOrigin origin{
      .curtail_version = "1.0", .started = "2026-01-31T12:00:00Z", .command = "curtail provision shop"};
  origin.machine = Machine{.cpus = 2, .cpu_model = "model", .kernel = "Linux", .load_average_before = 0.5};
  const std::string text = ProvisionJson(Report(), origin);
  KeepForSchemaTest("provision", text);
  const json document = json::parse(text);
  EXPECT_EQ(document["rounds"][0]["steps"][0]["to"]["cpu"], 0.04);
  EXPECT_EQ(document["rounds"][1]["verdict"], "cannot tell");
  EXPECT_EQ(document["shares"]["cache"]["config"], nullptr);
  EXPECT_EQ(document["end"], "no_step_helps");

  ProvisionReport threads = Report();
  for (Allocation* shares : {&threads.start, &threads.kept}) {
    for (auto& [name, share] : *shares) share.cpu = 0;
  }
  threads.equal.clear();
  threads.equal_per_s.reset();
  KeepForSchemaTest("provision-threads", ProvisionJson(threads, {}));
  ProvisionReport nothing{.application = "shop", .qos = "p99<50ms"};
  nothing.end = ProvisionEnd::kInterrupted;
  KeepForSchemaTest("provision-nothing", ProvisionJson(nothing, {}));
}

}  // namespace
}  // namespace curtail::tool
