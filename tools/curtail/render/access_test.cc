// SPDX-License-Identifier: Apache-2.0
//
// Who reaches a rendered pod, and what it may do: network policies, restrictions, TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/shipped/shipped_applications.h"
#include "tools/curtail/render/render_testing.h"

namespace curtail::tool {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A policy lets in those that call a service, and nobody else but readers of metrics.
TEST(Render, OnlyCallersReachAService) {
  const auto objects = ObjectsOf(PlainManifests(PlanOf(kShop)));
  const YAML::Node leaf = objects.at("NetworkPolicy shop-leaf")["spec"];
  ASSERT_EQ(leaf["ingress"].size(), 2u);
  ASSERT_EQ(leaf["ingress"][0]["from"].size(), 1u);
  EXPECT_EQ(leaf["ingress"][0]["from"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
                .as<std::string>(),
            "front-end");
  EXPECT_EQ(leaf["ingress"][1]["ports"][0]["port"].as<int>(), 9464);
  EXPECT_EQ(leaf["egress"].size(), 2u) << "the name service, and its cache";
}

// Clients call the entry and what speaks HTTP, and may call what no other service does.
TEST(Render, TheOutsideReachesWhatItCalls) {
  const auto is_open = [](const YAML::Node& policy) {
    const YAML::Node first = policy["spec"]["ingress"][0];
    return first.IsDefined() && !first["from"].IsDefined() && first["ports"][0]["port"].as<int>() == 8080;
  };
  const auto objects = ObjectsOf(PlainManifests(PlanOf(kShop)));
  EXPECT_TRUE(is_open(objects.at("NetworkPolicy shop-front-end")));
  EXPECT_TRUE(is_open(objects.at("NetworkPolicy shop-gateway")));
  EXPECT_FALSE(is_open(objects.at("NetworkPolicy shop-pay")));
  const auto more = ObjectsOf(PlainManifests(PlanOf(R"(application: a
services:
  page:
    run: page --port ${port}
    protocol: http
  front:
    run: a --service front
    calls: [page]
    entry: true
  batch:
    run: a --service batch
    calls: [front]
)")));
  EXPECT_TRUE(is_open(more.at("NetworkPolicy a-page"))) << "a browser asks for it as well";
  EXPECT_TRUE(is_open(more.at("NetworkPolicy a-batch"))) << "nobody else could have a use for it";
}

TEST(Render, SpansLeaveByThePortOfTheirCollector) {
  const std::vector<RenderedFile> chart = HelmChart(PlanOf(kShop));
  const auto leaf = std::find_if(chart.begin(), chart.end(),
                                 [](const RenderedFile& file) { return file.path == "templates/leaf.yaml"; });
  ASSERT_NE(leaf, chart.end());
  EXPECT_THAT(leaf->text, HasSubstr("port: {{ .Values.tracing.to | regexFind"));
}

// As the restricted Pod Security Standard asks.
TEST(Render, EveryPodIsRestricted) {
  for (const apps::ShippedApplication& app : apps::ShippedApplications()) {
    SCOPED_TRACE(std::string(app.name));
    int pods = 0;
    for (const auto& [name, object] : ObjectsOf(PlainManifests(PlanOf(std::string(app.topology))))) {
      SCOPED_TRACE(name);
      if (!object["spec"]["template"].IsDefined()) continue;
      const YAML::Node pod = object["spec"]["template"]["spec"];
      ++pods;
      EXPECT_TRUE(pod["securityContext"]["runAsNonRoot"].as<bool>());
      EXPECT_EQ(pod["securityContext"]["seccompProfile"]["type"].as<std::string>(), "RuntimeDefault");
      EXPECT_FALSE(pod["automountServiceAccountToken"].as<bool>());
      const YAML::Node container = pod["containers"][0]["securityContext"];
      EXPECT_FALSE(container["allowPrivilegeEscalation"].as<bool>());
      EXPECT_TRUE(container["readOnlyRootFilesystem"].as<bool>());
      EXPECT_EQ(container["capabilities"]["drop"][0].as<std::string>(), "ALL");
    }
    EXPECT_GT(pods, 1);
  }
}

// The key of the TLS secret that an object's pods get, "all" of them, or "none".
std::string TlsKeyOf(const YAML::Node& object) {
  for (const YAML::Node& volume : object["spec"]["template"]["spec"]["volumes"]) {
    if (volume["name"].as<std::string>() != "tls") continue;
    EXPECT_EQ(volume["secret"]["secretName"].as<std::string>(), "certificate");
    const YAML::Node items = volume["secret"]["items"];
    return items.IsDefined() ? items[0]["key"].as<std::string>() : "all";
  }
  return "none";
}

// The gateway, what fills the stores, and the load call the entry.
TEST(Render, CallersOfTheEntrySpeakTls) {
  const Plan plan = PlanOf(kShop, {.image = "shop", .tls_secret = "certificate"});
  auto objects = ObjectsOf(PlainManifests(plan));
  const YAML::Node load = YAML::Load(LoadJobOf(plan));
  const auto trusts = AllOf(Contains("--tls"), Contains("--ca-file=/run/secrets/tls/ca.crt"));
  EXPECT_THAT(ArgsOf(objects["Deployment shop-front-end"]), Contains("--tls-key=/run/secrets/tls/tls.key"));
  EXPECT_THAT(ArgsOf(objects["Deployment shop-gateway"]), trusts);
  EXPECT_THAT(ArgsOf(objects["Job shop-prepare"]), trusts);
  EXPECT_THAT(ArgsOf(load), AllOf(Contains("--tls"), Contains("--ca=/run/secrets/tls/ca.crt")));
  const YAML::Node before = load["spec"]["template"]["spec"]["initContainers"][0];
  EXPECT_THAT(before["args"].as<std::vector<std::string>>(), trusts);
  EXPECT_EQ(before["volumeMounts"][2]["mountPath"].as<std::string>(), "/run/secrets/tls");
  EXPECT_EQ(TlsKeyOf(objects["Deployment shop-front-end"]), "all");
  EXPECT_EQ(TlsKeyOf(objects["Deployment shop-gateway"]), "ca.crt");
  EXPECT_EQ(TlsKeyOf(objects["Job shop-prepare"]), "ca.crt");
  EXPECT_EQ(TlsKeyOf(load), "ca.crt");
  EXPECT_EQ(TlsKeyOf(objects["Deployment shop-leaf-0"]), "none");
}

TEST(Render, NothingSpeaksTlsWithoutACertificate) {
  const Plan plan = PlanOf(kShop);
  for (const RenderedFile& file : PlainManifests(plan)) EXPECT_THAT(file.text, Not(HasSubstr("tls")));
  EXPECT_THAT(LoadJobOf(plan), Not(HasSubstr("tls")));
}

}  // namespace
}  // namespace curtail::tool
