// SPDX-License-Identifier: Apache-2.0
//
// Parts of what is rendered; kept_files_test.cc has all of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "apps/shipped/application.h"
#include "apps/shipped/shipped_applications.h"
#include "tools/curtail/render/render_testing.h"

namespace curtail::tool {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

std::string Problem(const std::string& yaml) {
  absl::StatusOr<deploy::Topology> topology = deploy::Topology::Parse(yaml, "t.yaml");
  EXPECT_TRUE(topology.ok()) << topology.status();
  const absl::StatusOr<Plan> plan = MakePlan(*std::move(topology), {});
  EXPECT_FALSE(plan.ok());
  return std::string(plan.status().message());
}

TEST(Render, PodsRunTheCommandsOfTheTopology) {
  auto objects = ObjectsOf(PlainManifests(PlanOf(kShop)));
  EXPECT_THAT(ArgsOf(objects["Deployment shop-leaf-1"]),
              AllOf(Contains("1/2"), Contains("cache=shop-cache-1:8080"), Contains("--listen=0.0.0.0:8080"),
                    Contains("--config=SDB1-8")));
  EXPECT_THAT(
      ArgsOf(objects["Deployment shop-front-end"]),
      AllOf(Contains("leaf=dns:///shop-leaf-0:8080,dns:///shop-leaf-1:8080"), Contains("--policy=online"),
            Contains("--balancer=round_robin"), Contains("--health-checks"), Contains("--retries=2"),
            Contains("--secret=/run/secrets/curtail/tokens"), Not(Contains("--fence="))));
  EXPECT_THAT(
      ArgsOf(objects["StatefulSet shop-cart-store"]),
      AllOf(Contains("/data"), Contains("{{ two words }} $HOME"), Not(Contains(HasSubstr("--balancer")))));
  EXPECT_THAT(ArgsOf(objects["Deployment shop-pay"]),
              ElementsAre("pay.js", "--port", "8080", "--carts", "shop-cart-store:8080"));
  EXPECT_THAT(ArgsOf(objects["Deployment shop-cache-0"]),
              ElementsAre("-l", "0.0.0.0", "-p", "8080", "-m", "64", "-u", "curtail"));
  EXPECT_THAT(ArgsOf(objects["Job shop-prepare"]), Contains("shop-front-end:8080"));
}

TEST(Render, WhatPreparesHasTheSecretsThatTheTopologySays) {
  const std::string yaml = absl::StrCat(kShop, "prepare_secrets: {tokens: --secret}\n");
  for (const bool with : {false, true}) {
    const Plan plan = PlanOf(with ? yaml : kShop);
    YAML::Node job = ObjectsOf(PlainManifests(plan))["Job shop-prepare"];
    const std::vector<std::string> args = ArgsOf(job);
    EXPECT_EQ(std::ranges::count(args, "--secret=/run/secrets/curtail/tokens"), with ? 1 : 0);
    const YAML::Node pod = job["spec"]["template"]["spec"];
    const auto names = [](const YAML::Node& list) {
      std::vector<std::string> all;
      for (const YAML::Node& one : list) all.push_back(one["name"].as<std::string>());
      return all;
    };
    for (const YAML::Node& list : {pod["volumes"], pod["containers"][0]["volumeMounts"]})
      EXPECT_EQ(std::ranges::count(names(list), "secrets"), with ? 1 : 0);
    const YAML::Node compose = YAML::Load(ComposeFile(plan).front().text);
    EXPECT_EQ(compose["services"]["shop-prepare"]["secrets"].IsDefined(), with);
    EXPECT_EQ(compose["secrets"]["tokens"]["file"].as<std::string>(), "./tokens");
  }
}

TEST(Render, ScalesOnlyServicesThatSaySo) {
  const auto objects = ObjectsOf(PlainManifests(PlanOf(kShop)));
  std::vector<std::string> scaled;
  for (const auto& [name, object] : objects) {
    if (name.starts_with("HorizontalPodAutoscaler")) scaled.push_back(name);
  }
  EXPECT_THAT(scaled,
              ElementsAre("HorizontalPodAutoscaler shop-front-end", "HorizontalPodAutoscaler shop-gateway"));
  EXPECT_EQ(objects.at("Deployment shop-leaf-0")["spec"]["strategy"]["type"].as<std::string>(), "Recreate");
}

// A caller asks for names every 5 s, and gets answers that may be 30 s old.
TEST(Render, AnOldPodStaysUntilCallersKnowItsSuccessor) {
  const auto objects = ObjectsOf(PlainManifests(PlanOf(kShop)));
  const YAML::Node front_end = objects.at("Deployment shop-front-end");
  EXPECT_THAT(ArgsOf(front_end), Contains("--resolve-interval=5"));
  EXPECT_EQ(front_end["spec"]["minReadySeconds"].as<int>(), 35);
  EXPECT_EQ(front_end["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"].as<int>(), 0);
}

// By what a pod may use, not by the little that it asks for; a gateway has one thread.
TEST(Render, AutoscalersAimBelowTheLimit) {
  auto objects = ObjectsOf(PlainManifests(PlanOf(kShop)));
  const auto of = [&](const std::string& name) {
    const YAML::Node target =
        objects[absl::StrCat("HorizontalPodAutoscaler ", name)]["spec"]["metrics"][0]["resource"]["target"];
    const YAML::Node container =
        objects[absl::StrCat("Deployment ", name)]["spec"]["template"]["spec"]["containers"][0];
    return absl::StrCat(target["type"].as<std::string>(), " ", target["averageValue"].as<std::string>(),
                        " of ", container["resources"]["limits"]["cpu"].as<std::string>());
  };
  EXPECT_EQ(of("shop-front-end"), "AverageValue 1400m of 2");
  EXPECT_EQ(of("shop-gateway"), "AverageValue 700m of 1");
}

// A gateway has none of these metrics.
TEST(Render, OnlyCurtailServicesScaleByWaits) {
  Plan plan = PlanOf(kShop);
  Yaml* const autoscaling = plan.values.Find("autoscaling");
  *autoscaling->Find("queueWaitMs") = 2;
  *autoscaling->Find("p99Ms") = 50;
  const auto objects = ObjectsOf(PlainManifests(plan));
  const auto types = [&](const std::string& service) {
    std::vector<std::string> all;
    for (const YAML::Node& metric : objects.at("HorizontalPodAutoscaler " + service)["spec"]["metrics"])
      all.push_back(metric["type"].as<std::string>());
    return all;
  };
  EXPECT_THAT(types("shop-front-end"), ElementsAre("Resource", "Pods", "Pods"));
  EXPECT_THAT(types("shop-gateway"), ElementsAre("Resource"));
}

// Clients of HTTP know one address. A gateway serves on until no new connection comes to it, and then drains.
TEST(Render, AGatewayIsReplacedWithoutALoss) {
  auto objects = ObjectsOf(PlainManifests(PlanOf(kShop)));
  const YAML::Node gateway = objects["Deployment shop-gateway"]["spec"];
  EXPECT_THAT(ArgsOf(objects["Deployment shop-gateway"]),
              AllOf(Contains("--linger=10s"), Contains("--allow-host=shop-gateway")));
  EXPECT_EQ(gateway["strategy"]["type"].as<std::string>(), "RollingUpdate");
  EXPECT_EQ(gateway["strategy"]["rollingUpdate"]["maxUnavailable"].as<int>(), 0);
  EXPECT_EQ(gateway["template"]["spec"]["terminationGracePeriodSeconds"].as<int>(), 10 + 10 + 30 + 5);
  EXPECT_TRUE(gateway["template"]["spec"]["containers"][0]["readinessProbe"].IsDefined());
  EXPECT_FALSE(objects["Service shop-gateway"]["spec"]["clusterIP"].IsDefined()) << "it has an address";
}

// The flags of a gateway are durations, those of a curtail service numbers. A request that begins before the drain may take
// 10 s to come whole, and then its call.
TEST(Render, NoProcessIsKilledWhileItEnds) {
  const auto grace = [](const std::string& flags, const std::string& variables = "") {
    const Plan plan = PlanOf(absl::StrCat("application: a\n", variables, R"(services:
  front:
    run: a --service front
    entry: true
  gateway:
    run: curtail-gateway ${front.address} --listen ${host}:${port})",
                                          flags, "\n    protocol: http\n    calls: [front]\n"));
    const YAML::Node pod =
        ObjectsOf(PlainManifests(plan)).at("Deployment a-gateway")["spec"]["template"]["spec"];
    const YAML::Node container = YAML::Load(ComposeFile(plan).front().text)["services"]["a-gateway"];
    const int seconds = pod["terminationGracePeriodSeconds"].as<int>();
    EXPECT_EQ(container["stop_grace_period"].as<std::string>(), absl::StrCat(seconds, "s"));
    return seconds;
  };
  EXPECT_EQ(grace(""), 10 + 10 + 30 + 5);
  EXPECT_EQ(grace(" --linger 60s"), 60 + 10 + 30 + 5);
  EXPECT_EQ(grace(" --linger=0 --timeout=1m"), 10 + 60 + 5);
  EXPECT_EQ(grace(" --linger 90500ms --drain 2m"), 91 + 120 + 5);
  EXPECT_EQ(grace(" --drain=500ms --timeout=2s"), 10 + 10 + 2 + 5);
  EXPECT_EQ(grace(" --drain ${long}", "variables: {long: 1m30s}\n"), 10 + 90 + 5);
  for (const char* refused : {"60", "1e9h", "inf", "-5s", "soon"})
    EXPECT_EQ(grace(absl::StrCat(" --drain ", refused)), 10 + 10 + 30 + 5) << refused;
}

TEST(Render, PodsLogJson) {
  int pods = 0;
  for (const auto& [name, object] : ObjectsOf(PlainManifests(PlanOf(kShop)))) {
    SCOPED_TRACE(name);
    if (!object["spec"]["template"].IsDefined()) continue;
    ++pods;
    std::map<std::string, std::string> environment;
    for (const YAML::Node& variable : object["spec"]["template"]["spec"]["containers"][0]["env"]) {
      environment[variable["name"].as<std::string>()] =
          variable["value"].IsDefined() ? variable["value"].as<std::string>()
          : variable["valueFrom"]["fieldRef"].IsDefined()
              ? variable["valueFrom"]["fieldRef"]["fieldPath"].as<std::string>()
              : "";
    }
    EXPECT_THAT(environment, Contains(Pair("CURTAIL_LOG_FORMAT", "json")));
    EXPECT_THAT(environment, Contains(Pair("CURTAIL_LOG_INSTANCE", "metadata.name")));
    EXPECT_THAT(
        environment,
        Contains(Pair("CURTAIL_LOG_SERVICE",
                      object["metadata"]["labels"]["app.kubernetes.io/component"].as<std::string>())));
  }
  EXPECT_GT(pods, 8);
}

TEST(Render, TheDashboardReadsEveryService) {
  auto objects = ObjectsOf(PlainManifests(PlanOf(kShop)));
  EXPECT_THAT(
      ArgsOf(objects["Deployment shop-dashboard"]),
      ElementsAre("dashboard", "shop", "--listen=0.0.0.0:9460", "--entry=front-end",
                  "--service=leaf=shop-leaf-0:9464,shop-leaf-1:9464",
                  "--service=cart-store=shop-cart-store:9464", "--service=front-end=shop-front-end:9464",
                  "--calls=leaf=cache", "--calls=pay=cart-store", "--calls=front-end=leaf,cart-store,pay",
                  "--calls=gateway=front-end"));
  EXPECT_EQ(objects["Service shop-dashboard"]["spec"]["ports"][0]["port"].as<int>(), 9460);
  const YAML::Node policy = objects["NetworkPolicy shop-dashboard"]["spec"];
  EXPECT_FALSE(policy["ingress"].IsDefined());
  EXPECT_EQ(policy["egress"][1]["ports"][0]["port"].as<int>(), 9464);
  // One of the topology has the name.
  const auto own = ObjectsOf(PlainManifests(PlanOf(R"(application: a
services:
  dashboard:
    run: a --service dashboard
    entry: true
)")));
  EXPECT_THAT(ArgsOf(own.at("Deployment a-dashboard")), Contains("--listen=0.0.0.0:8080"));
}

TEST(Render, TheDashboardNeedsAnImageWithCurtail) {
  const auto own = ObjectsOf(PlainManifests(PlanOf(kShop, {.image = "shop", .image_has_curtail = false})));
  EXPECT_FALSE(own.contains("Deployment shop-dashboard"));
  auto with = ObjectsOf(PlainManifests(
      PlanOf(kShop, {.image = "shop", .dashboard_image = "curtail:1", .image_has_curtail = false})));
  const YAML::Node pod = with.at("Deployment shop-dashboard")["spec"]["template"]["spec"];
  EXPECT_EQ(pod["containers"][0]["image"].as<std::string>(), "curtail:1");
  const auto compose = ComposeFile(PlanOf(kShop, {.image = "shop", .image_has_curtail = false}));
  EXPECT_THAT(compose.front().text, Not(HasSubstr("shop-dashboard")));
}

TEST(Render, ProgramsAreFoundByName) {
  auto objects = ObjectsOf(PlainManifests(PlanOf(R"(application: a
services:
  front: {run: build/shop --service front, entry: true}
)")));
  const YAML::Node pod = objects.at("Deployment a-front")["spec"]["template"]["spec"];
  EXPECT_EQ(pod["containers"][0]["command"][0].as<std::string>(), "shop");
}

TEST(Render, TheSchemaOfValuesRefusesWhatTheChartHasNot) {
  const auto files = HelmChart(PlanOf(kShop));
  const auto found = std::ranges::find(files, "values.schema.json", &RenderedFile::path);
  ASSERT_NE(found, files.end());
  const YAML::Node schema = YAML::Load(found->text);
  EXPECT_EQ(schema["additionalProperties"].as<bool>(), false);
  const YAML::Node services = schema["properties"]["services"];
  EXPECT_EQ(services["additionalProperties"].as<bool>(), false) << "frnt for front is refused";
  const YAML::Node front = services["properties"]["frontEnd"];
  EXPECT_EQ(front["properties"]["replicas"]["type"].as<std::string>(), "integer");
  EXPECT_EQ(front["properties"]["replicas"]["minimum"].as<int>(), 1);
  EXPECT_FALSE(front["properties"]["resources"]["additionalProperties"].IsDefined()) << "it is Kubernetes's";
}

TEST(Render, RefusesNamesThatClustersRefuse) {
  for (const char* name : {"0leaf", "leaf-", "-leaf", "a--b", "on", "null"}) {
    const std::string service =
        absl::StrCat("application: a\nservices:\n  \"", name, "\": {run: a, entry: true}\n");
    EXPECT_THAT(Problem(service), HasSubstr(absl::StrCat("'", name, "' cannot be a name on a cluster")))
        << name;
    const std::string application =
        absl::StrCat("application: \"", name, "\"\nservices: {a: {run: a, entry: true}}\n");
    EXPECT_THAT(Problem(application), HasSubstr("cannot be a name on a cluster")) << name;
  }
}

// Two instances have different parts of the data, so it is the pods of one that must not share a machine.
TEST(Render, PodsOfAnInstanceLieApart) {
  const auto objects = ObjectsOf(PlainManifests(PlanOf(kShop)));
  const auto spread = [&](const std::string& object) {
    return objects.at(object)["spec"]["template"]["spec"]["topologySpreadConstraints"];
  };
  for (const YAML::Node& constraint : spread("Deployment shop-leaf-1")) {
    EXPECT_EQ(constraint["labelSelector"]["matchLabels"]["curtail-instance"].as<std::string>(), "leaf-1");
    EXPECT_EQ(constraint["matchLabelKeys"][0].as<std::string>(), "pod-template-hash");
  }
  EXPECT_EQ(spread("Deployment shop-leaf-1").size(), 2u);
  EXPECT_FALSE(spread("StatefulSet shop-cart-store")[0]["matchLabelKeys"].IsDefined())
      << "its pods have no such label";
}

// Selectors of workloads cannot be changed, and a release may be installed over one that had no such labels.
TEST(Render, ObjectsSayWhatTheyArePartOf) {
  for (const auto& [name, object] : ObjectsOf(PlainManifests(PlanOf(kShop)))) {
    SCOPED_TRACE(name);
    std::vector<YAML::Node> described = {object["metadata"]["labels"]};
    const YAML::Node pod = object["spec"]["template"];
    if (pod.IsDefined()) described.push_back(pod["metadata"]["labels"]);
    for (const YAML::Node& labels : described) {
      EXPECT_EQ(labels["app.kubernetes.io/instance"].as<std::string>(), "shop");
      EXPECT_EQ(labels["app.kubernetes.io/managed-by"].as<std::string>(), "curtail");
    }
    const YAML::Node selector = object["spec"]["selector"];
    if (!selector.IsDefined()) continue;
    EXPECT_THAT(YAML::Dump(selector), Not(HasSubstr("kubernetes.io/instance")));
  }
}

TEST(Render, PodsPullWithTheSecretsThatAreGiven) {
  const Plan plan = PlanOf(kShop, {.image = "shop", .image_pull_secrets = {"one", "two"}});
  auto objects = ObjectsOf(PlainManifests(plan));
  objects["Job load"] = YAML::Load(LoadJobManifest(plan, {"curtail", "load"}));
  int pods = 0;
  for (const auto& [name, object] : objects) {
    const YAML::Node pod = object["spec"]["template"];
    if (!pod.IsDefined()) continue;
    ++pods;
    const YAML::Node secrets = pod["spec"]["imagePullSecrets"];
    ASSERT_EQ(secrets.size(), 2u) << name;
    EXPECT_EQ(secrets[1]["name"].as<std::string>(), "two");
  }
  EXPECT_GT(pods, 8);
}

TEST(Render, ComposePublishesTheEntryAndHttp) {
  const YAML::Node services = YAML::Load(ComposeFile(PlanOf(kShop)).front().text)["services"];
  std::map<std::string, std::string> ports;
  for (const auto& service : services) {
    if (service.second["ports"].IsDefined())
      ports[service.first.as<std::string>()] = service.second["ports"][0].as<std::string>();
  }
  EXPECT_THAT(ports, ElementsAre(Pair("shop-dashboard", "127.0.0.1:9460:9460"),
                                 Pair("shop-front-end", "127.0.0.1:8080:8080"),
                                 Pair("shop-gateway", "127.0.0.1:8000:8080")));
}

TEST(Render, ComposePublishesEachInstanceOfTheEntryElsewhere) {
  const std::string two =
      absl::StrReplaceAll(kShop, {{"    entry: true\n", "    entry: true\n    replicas: 2\n"}});
  std::set<std::string> ports;
  size_t published = 0;
  for (const auto& service : YAML::Load(ComposeFile(PlanOf(two)).front().text)["services"]) {
    if (!service.second["ports"].IsDefined()) continue;
    ++published;
    ports.insert(
        service.second["ports"][0].as<std::string>().substr(0, std::string("127.0.0.1:8080").size()));
  }
  EXPECT_EQ(published, 4u);
  EXPECT_EQ(ports.size(), published);
}

// The same as on a cluster.
TEST(Render, EveryComposeContainerHasLimits) {
  const Plan plan = PlanOf(kShop);
  const YAML::Node services = YAML::Load(ComposeFile(plan).front().text)["services"];
  std::map<std::string, std::string> limits, pods;
  for (const auto& service : services) {
    const YAML::Node of = service.second["deploy"]["resources"]["limits"];
    ASSERT_TRUE(of.IsDefined()) << service.first;
    limits[service.first.as<std::string>()] =
        absl::StrCat(of["cpus"].as<std::string>(), " ", of["memory"].as<std::string>());
  }
  for (const auto& [name, object] : ObjectsOf(PlainManifests(plan))) {
    if (!object["spec"]["template"].IsDefined()) continue;
    const YAML::Node of = object["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
    pods[object["metadata"]["name"].as<std::string>()] = absl::StrReplaceAll(
        absl::StrCat(of["cpu"].as<std::string>(), " ", of["memory"].as<std::string>()), {{"Mi", "m"}});
  }
  EXPECT_EQ(limits, pods);
  EXPECT_THAT(limits, Contains(Pair("shop-dashboard", "1 256m")));
}

// Compose knows no 500m of a CPU.
TEST(Render, ComposeHasCpusAsNumbers) {
  const Plan plan = PlanOf(R"(application: a
services:
  leaf:
    run: a --service leaf
    cpu: 0.5
  front:
    run: a --service front
    calls: [leaf]
    entry: true
    cpu: 2
)");
  const YAML::Node services = YAML::Load(ComposeFile(plan).front().text)["services"];
  const auto cpus = [&](const char* name) {
    return services[name]["deploy"]["resources"]["limits"]["cpus"].as<std::string>();
  };
  EXPECT_EQ(cpus("a-leaf"), "0.5");
  EXPECT_EQ(cpus("a-front"), "2");
}

TEST(Render, NamesResolveToServices) {
  for (const apps::ShippedApplication& app : apps::ShippedApplications()) {
    SCOPED_TRACE(std::string(app.name));
    const auto objects = ObjectsOf(PlainManifests(PlanOf(std::string(app.topology))));
    int addresses = 0;
    for (const auto& [name, object] : objects) {
      if (!object["spec"]["template"].IsDefined()) continue;
      for (std::string arg : ArgsOf(object)) {
        for (size_t at; (at = arg.find(":8080")) != arg.npos; arg.erase(0, at + 5)) {
          const size_t begin = arg.find_last_of("=,/", at) + 1;
          const std::string host = arg.substr(begin, at - begin);
          if (host == "0.0.0.0") continue;
          ++addresses;
          EXPECT_EQ(objects.count(absl::StrCat("Service ", host)), 1u) << name << ": " << arg;
        }
      }
    }
    EXPECT_GT(addresses, 1);
  }
}

// The command that fills the stores leaves sessions in the folder of data; requests of other applications need nothing.
TEST(Render, ALoadTestIsPreparedWhereItNeedsFiles) {
  const auto prepared = [](const std::string& yaml) {
    return YAML::Load(LoadJobOf(PlanOf(yaml)))["spec"]["template"]["spec"]["initContainers"].IsDefined();
  };
  EXPECT_TRUE(prepared(kShop));
  EXPECT_FALSE(prepared(absl::StrReplaceAll(kShop, {{"${entry} --data ${folder}", "${entry}"}})));
}

// A namespace with a quota takes no pod of which a container does not say what it needs.
TEST(Render, EveryContainerSaysWhatItNeeds) {
  const auto check = [](const YAML::Node& pod) {
    for (const char* list : {"initContainers", "containers"}) {
      for (const YAML::Node& container : pod[list]) {
        SCOPED_TRACE(container["name"].as<std::string>());
        EXPECT_TRUE(container["resources"]["requests"]["cpu"].IsDefined());
        EXPECT_TRUE(container["resources"]["requests"]["memory"].IsDefined());
        EXPECT_TRUE(container["resources"]["limits"]["memory"].IsDefined());
      }
    }
  };
  const Plan plan = PlanOf(kShop);
  for (const auto& [name, object] : ObjectsOf(PlainManifests(plan))) {
    SCOPED_TRACE(name);
    if (object["spec"]["template"].IsDefined()) check(object["spec"]["template"]["spec"]);
  }
  check(YAML::Load(LoadJobOf(plan))["spec"]["template"]["spec"]);
}

TEST(Render, UsesWhatRunsAlready) {
  absl::StatusOr<deploy::Topology> topology = deploy::Topology::Parse(kShop, "t.yaml");
  ASSERT_TRUE(topology.ok());
  ASSERT_TRUE(topology->Use("cache=10.0.0.1:11211,10.0.0.2:11211").ok());
  absl::StatusOr<Plan> plan = MakePlan(*std::move(topology), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto objects = ObjectsOf(PlainManifests(*plan));
  EXPECT_EQ(objects.count("Deployment shop-cache-0"), 0u);
  EXPECT_THAT(ArgsOf(objects["Deployment shop-leaf-1"]), Contains("cache=10.0.0.2:11211"));
}

TEST(Render, ScalesToThePapersSize) {
  for (const apps::ShippedApplication& app : apps::ShippedApplications()) {
    absl::StatusOr<deploy::Topology> topology =
        apps::LoadTopology(std::string(app.name), {.scale = deploy::kPaperScale});
    ASSERT_TRUE(topology.ok()) << topology.status();
    EXPECT_TRUE(MakePlan(*std::move(topology), {}).ok()) << app.name;
  }
}

TEST(Render, RefusesWhatHasNoMeaningOnACluster) {
  const auto with = [](const std::string& keys) {
    return absl::StrCat("application: a\nservices:\n  s:\n    entry: true\n", keys);
  };
  EXPECT_THAT(Problem(with("    run: memcached -s ${address}\n    protocol: memcached\n")),
              HasSubstr("run_at_port"));
  EXPECT_THAT(Problem(with("    run: x\n    profile: p.json\n")), HasSubstr("profile"));
  EXPECT_THAT(Problem(with("    run: x --a «b»\n")), HasSubstr("cannot be rendered"));
  EXPECT_THAT(Problem("application: 9\nservices:\n  s:\n    entry: true\n    run: x\n"),
              HasSubstr("begin with a letter"));
}

}  // namespace
}  // namespace curtail::tool
