// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/render_testing.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace curtail::tool {

const char kShop[] = R"(application: shop
title: 'A shop: carts and searches'
variables: {folder: auto, size: 64, note: "{{ two words }} $HOME"}
services:
  cache:
    run: memcached -s ${address} -m ${size}
    run_at_port: memcached -l ${host} -p ${port} -m ${size} -u ${user}
    protocol: memcached
    memory_mib: 80
    shards: 2
  leaf:
    run: shop --service leaf --shard ${instance}/${leaf.shards} --drain 20
    own: [cache]
    shards: 2
    config: SDB1-8
  cart-store:
    run: shop --service cart-store --data ${folder} --note ${note}
    keeps: folder
    secrets: {tokens: --secret}
  pay:
    run: node pay.js --port ${port} --carts ${cart-store.address}
    calls: [cart-store]
  front-end:
    run: shop --service front-end --fence strict
    calls: [leaf, cart-store, pay]
    policy: online
    secrets: {tokens: --secret}
    scales: true
    entry: true
  gateway:
    run: curtail-gateway ${front-end.address} --listen ${host}:${port}
    protocol: http
    scales: true
    calls: [front-end]
prepare: shop fill --target ${entry} --data ${folder}
)";

Plan PlanOf(const std::string& yaml, RenderOptions options) {
  absl::StatusOr<deploy::Topology> topology = deploy::Topology::Parse(yaml, "t.yaml");
  EXPECT_TRUE(topology.ok()) << topology.status();
  absl::StatusOr<Plan> plan = MakePlan(*std::move(topology), options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

std::map<std::string, YAML::Node> ObjectsOf(const std::vector<RenderedFile>& files) {
  std::map<std::string, YAML::Node> objects;
  for (const RenderedFile& file : files) {
    for (const YAML::Node& node : YAML::LoadAll(file.text)) {
      if (!node.IsMap()) continue;
      const auto name =
          absl::StrCat(node["kind"].as<std::string>(), " ", node["metadata"]["name"].as<std::string>());
      EXPECT_TRUE(objects.emplace(name, node).second) << name << " is there twice";
    }
  }
  return objects;
}

std::vector<std::string> ArgsOf(const YAML::Node& object) {
  return object["spec"]["template"]["spec"]["containers"][0]["args"].as<std::vector<std::string>>();
}

std::string LoadJobOf(const Plan& plan) {
  return LoadJobManifest(plan,
                         {"curtail", "load", "shop", "dns:///shop-front-end:8080", "--rps=100", "--json=-"});
}

}  // namespace curtail::tool
