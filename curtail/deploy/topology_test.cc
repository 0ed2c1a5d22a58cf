// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "curtail/base/rng.h"
#include "curtail/deploy/instance_command.h"
#include "curtail/deploy/topology_testing.h"

namespace curtail::deploy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::StartsWith;

TEST(TopologyTest, OrdersServicesBeforeTheirCallers) {
  const Topology t = Parsed(kStores);
  ASSERT_EQ(t.services.size(), 3u);
  EXPECT_EQ(t.services[0].name, "store");
  EXPECT_EQ(t.services[1].name, "leaf");
  EXPECT_EQ(t.services[2].name, "mid-tier");
  EXPECT_EQ(t.entry().name, "mid-tier");
  EXPECT_EQ(t.services[1].instances(), 4);
  EXPECT_THAT(t.services[1].cpus, ElementsAre("0", "0-1"));
  EXPECT_EQ(t.services[0].memory_mib, 80);
}

TEST(TopologyTest, CommandsHaveTheFlagsThatTheirRunDoesNotHave) {
  Topology t = Parsed(kStores);
  ServiceSpec& leaf = t.services[1];
  leaf.run = {"kv", "--config=FIB1", "--fence", "strict"};
  leaf.calls.clear();
  InstanceSetup setup;
  setup.config = "SIB1";
  setup.listen = "h:1";
  setup.flags = {{"--fence", "on"}, {"--balancer", "first", "?"}, {.name = "--health-checks"}};
  setup.memory_only = true;
  EXPECT_THAT(*CommandOf(t, leaf, 0, {}, setup),
              ElementsAre("kv", "--config=FIB1", "--fence", "strict", "--listen", "h:1", "?--balancer",
                          "first", "--health-checks", "--memory"));
  setup.joined = true;
  EXPECT_THAT(*CommandOf(t, leaf, 0, {}, setup),
              ElementsAre("kv", "--config=FIB1", "--fence", "strict", "--listen=h:1", "?--balancer=first",
                          "--health-checks", "--memory"));
  EXPECT_FALSE(leaf.Says("--conf"));
}

TEST(TopologyTest, CommandsNameWhomTheyCall) {
  const Topology t = Parsed(kStores);
  const Addresses addresses = {{"store", {"unix:/s0", "unix:/s1", "unix:/s2", "unix:/s3"}},
                               {"leaf", {"h:1", "h:2", "h:3", "h:4"}}};
  InstanceSetup setup;
  setup.listen = "unix:/run/x.sock";
  EXPECT_THAT(*CommandOf(t, t.services[0], 0, {}, setup),
              ElementsAre("memcached", "-s", "/run/x.sock", "-m", "64"));
  setup.config = "SIB1";
  // Instance 2 is replica 0 of shard 1; a value with a space stays one argument.
  EXPECT_THAT(*CommandOf(t, t.services[1], 2, addresses, setup),
              ElementsAre("kv", "--service", "leaf", "--data", "a b", "--shard", "1/2", "--store", "unix:/s2",
                          "--config", "SIB1", "--listen", "unix:/run/x.sock"));
  EXPECT_THAT(*CommandOf(t, t.services[2], 0, addresses, {}),
              ElementsAre("kv", "--service", "mid-tier", "--replicas", "2", "--leaf", "h:1", "--leaf", "h:2",
                          "--leaf", "h:3", "--leaf", "h:4"));
  EXPECT_THAT(*PrepareCommand(t, "h:9"), ElementsAre("kv", "load", "--target", "h:9"));
}

TEST(TopologyTest, NamesTellShardAndReplica) {
  const Topology t = Parsed(kStores);
  EXPECT_EQ(InstanceName(t.services[1], 3), "leaf-1.1");
  EXPECT_EQ(InstanceName(t.services[2], 0), "mid-tier");
}

TEST(TopologyTest, SetAndScaleChangeIt) {
  Topology t = Parsed(kStores);
  EXPECT_TRUE(t.Set("size", "128").ok());
  EXPECT_TRUE(t.Set("mid-tier.policy", "online").ok());
  EXPECT_EQ(t.entry().config, "") << "a policy takes the config's place";
  EXPECT_THAT(t.Set("colour", "red").message(), HasSubstr("there are data, size"));
  EXPECT_THAT(t.Set("leaf.shards", "0").message(), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(t.Set("leaf.config", "XYZ").message(), HasSubstr("leaf.config"));
  EXPECT_THAT(t.Set("tree.shards", "2").message(), HasSubstr("no service tree; there are "));
  ASSERT_TRUE(t.Scale().ok());
  EXPECT_EQ(t.variables.at("size"), "512");
  EXPECT_EQ(t.Find("leaf")->instances(), 32);
}

TEST(TopologyTest, AServiceWithoutReplicasIsNotThere) {
  Topology t = Parsed(kStores);
  ASSERT_TRUE(t.Set("store.replicas", "0").ok());
  ASSERT_TRUE(t.LeaveOutAbsent().ok());
  EXPECT_EQ(t.Find("store"), nullptr);
  EXPECT_TRUE(t.Find("leaf")->calls.empty());
  EXPECT_TRUE(t.Check().ok()) << t.Check();
  EXPECT_EQ(t.Settings()["store.shards"], "2") << "commands may name it";
  EXPECT_EQ(t.Settings()["store.replicas"], "0");
  ASSERT_TRUE(t.Set("mid-tier.replicas", "0").ok());
  EXPECT_THAT(t.LeaveOutAbsent().message(), HasSubstr("mid-tier is what clients call"));
}

TEST(TopologyTest, ServersAreAllStoresThatHaveNoReplica) {
  Topology t = Parsed(R"(
application: own
services:
  a-sql: {run: "sql ${address}", protocol: sql, replicas: 0}
  b-sql: {run: "sql ${address}", protocol: sql, replicas: 0}
  cache: {run: "memcached ${address}", protocol: memcached, replicas: 2}
  back: {run: back, replicas: 0}
  front: {run: front, stores: [a-sql, b-sql, cache], calls: [back], entry: true}
)");
  ASSERT_TRUE(t.BringIn("servers").ok());
  EXPECT_EQ(t.Find("a-sql")->replicas, 1);
  EXPECT_EQ(t.Find("b-sql")->replicas, 1);
  EXPECT_EQ(t.Find("cache")->replicas, 2);
  EXPECT_EQ(t.Find("back")->replicas, 0) << "not a store";
  EXPECT_THAT(t.BringIn("server").message(), HasSubstr("own has the stores a-sql, b-sql, cache"));
}

TEST(TopologyTest, AStoreWhoseReplicasCallEachOtherIsAStore) {
  Topology t = Parsed(R"(
application: own
services:
  sql: {run: "sql --socket ${address} --replicas ${sql.address}", failover: "sql --failover ${sql.address}",
        protocol: sql, calls: [sql], replicas: 0}
  front: {run: front, stores: [sql], entry: true}
)");
  ASSERT_TRUE(t.BringIn("sql").ok());
  ASSERT_TRUE(t.Set("sql.replicas", "2").ok());
  const Addresses addresses = {{"sql", {"unix:/a", "unix:/b"}}};
  EXPECT_THAT(*CommandOf(t, *t.Find("sql"), 1, addresses, {.listen = "unix:/b"}),
              ElementsAre("sql", "--socket", "/b", "--replicas", "unix:/a,unix:/b"));
  EXPECT_THAT(*CommandOf(t, *t.Find("sql"), 1, addresses, {.listen = "unix:/b", .failover = true}),
              ElementsAre("sql", "--failover", "unix:/a,unix:/b"));
  EXPECT_THAT(*CommandOf(t, t.entry(), 0, addresses, {}),
              ElementsAre("front", "--store", "sql=unix:/a,unix:/b"));
  ASSERT_TRUE(t.Set("sql.replicas", "0").ok());
  ASSERT_TRUE(t.LeaveOutAbsent().ok());
  EXPECT_EQ(t.Find("sql"), nullptr);
}

TEST(TopologyTest, EachOfItsOwnNeedsAsMany) {
  Topology t = Parsed(kStores);
  ASSERT_TRUE(t.Set("leaf.shards", "3").ok());
  EXPECT_THAT(CommandOf(t, *t.Find("leaf"), 0, {}, {}).status().message(), HasSubstr("6 and 4"));
}

TEST(TopologyTest, WhatIsSetMustFitTogether) {
  Topology t = Parsed(kStores);
  EXPECT_FALSE(t.Set("leaf.entry", "true").ok()) << "one entry, and no other";
  EXPECT_FALSE(t.Set("mid-tier.entry", "false").ok());
  // In either order; only the whole must fit.
  ASSERT_TRUE(t.Set("mid-tier.listen", "h:1").ok());
  EXPECT_TRUE(t.Check().ok()) << t.Check();
  ASSERT_TRUE(t.Set("mid-tier.shards", "2").ok());
  EXPECT_THAT(t.Check().message(), HasSubstr("listen has 1 addresses for 2"));
  EXPECT_FALSE(CommandOf(t, t.entry(), 1, {}, {}).ok());
}

TEST(TopologyTest, TakesWhatRunsAlready) {
  Topology t = Parsed(kStores);
  EXPECT_THAT(t.Use("store=h:1").message(), HasSubstr("4 instances, and 1"));
  EXPECT_THAT(t.Use("store=h:1,,h:3,h:4").message(), HasSubstr("--use: address \"\" has no port"));
  EXPECT_THAT(t.Use("store=127.0.0.1,h:2,h:3,h:4").message(),
              HasSubstr("--use: address \"127.0.0.1\" has no port"));
  EXPECT_THAT(t.Use("store").message(), HasSubstr("--use: 'store' names no address; write SERVICE=ADDRESS"));
  EXPECT_THAT(t.Use("shop=h:1").message(), HasSubstr("--use: "));
  EXPECT_THAT(t.Use("shop=h:1").message(), HasSubstr(" has no service shop"));
  EXPECT_THAT(t.Wrap("shop=perf").message(), HasSubstr(" has no service shop"));
  EXPECT_THAT(t.Link("shop>store=delay=1ms").message(), HasSubstr(" has no service shop"));
  ASSERT_TRUE(t.Use("store=h:1,h:2,h:3,unix:/x").ok());
  EXPECT_THAT(t.Find("store")->external, ElementsAre("h:1", "h:2", "h:3", "unix:/x"));
}

constexpr char kCircle[] = R"(application: net
services:
  cache: {run: "memcached -s ${address}", protocol: memcached, shards: 2}
  user: {run: net --service user --salt 7, calls: [post, user]}
  front: {run: net --service front, calls: [user, post], entry: true, config: FIB1}
  post: {run: "net --service post --shard ${instance}/2 --salt 7", calls: [user], own: [cache], shards: 2}
)";

TEST(TopologyTest, ServicesMayCallEachOtherInACircle) {
  const Topology t = Parsed(kCircle);
  ASSERT_EQ(t.services.size(), 4u);
  EXPECT_EQ(t.services[0].name, "cache");
  EXPECT_EQ(t.services[1].name, "user");  // the first of the circle in the file
  EXPECT_EQ(t.services[3].name, "front");
}

TEST(TopologyTest, ListsOfPeersAndStoresBecomeFlagsOfTheHost) {
  const Topology t = Parsed(kCircle);
  const Addresses addresses = {{"user", {"u:1"}}, {"post", {"p:1", "p:2"}}, {"cache", {"c:1", "c:2"}}};
  EXPECT_THAT(*CommandOf(t, t.entry(), 0, addresses, {}),
              ElementsAre("net", "--service", "front", "--peer", "user=u:1", "--peer", "post=p:1,p:2"));
  EXPECT_THAT(*CommandOf(t, *t.Find("post"), 1, addresses, {}),
              ElementsAre("net", "--service", "post", "--shard", "1/2", "--salt", "7", "--peer", "user=u:1",
                          "--store", "cache=c:2"));
}

TEST(TopologyTest, AMonolithIsOneProcessAndItsStores) {
  Topology t = Parsed(kCircle);
  ASSERT_TRUE(t.MakeMonolith().ok());
  ASSERT_EQ(t.services.size(), 2u);
  const Addresses addresses = {{"cache", {"c:1", "c:2"}}};
  EXPECT_THAT(*CommandOf(t, t.entry(), 0, addresses, {.config = "FIB1"}),
              ElementsAre("net", "--monolith", "--salt", "7", "--instances", "post=2", "--outside", "front",
                          "--store", "cache=c:1,c:2", "--config", "FIB1"))
      << "others call the entry only";
  Topology balanced = Parsed(R"(application: x
services:
  a: {run: x --service a, calls: [store, b], entry: true}
  b: {run: x --service b}
  balancer: {run: "gateway ${a.address} ${b.target} --listen ${address}", protocol: http, calls: [a, b]}
  store: {run: "memcached -s ${address}", protocol: memcached}
)");
  ASSERT_TRUE(balanced.MakeMonolith().ok());
  std::vector<std::string> order;
  for (const ServiceSpec& service : balanced.services) order.push_back(service.name);
  EXPECT_THAT(order, ElementsAre("store", "a", "balancer"));
  EXPECT_THAT(
      *CommandOf(balanced, *balanced.Find("balancer"), 0, {{"a", {"a:1"}}, {"balancer", {"h:1"}}}, {}),
      ElementsAre("gateway", "a:1", "a:1", "--listen", testing::_))
      << "what it calls is in the one process";
  EXPECT_THAT(balanced.entry().run, ElementsAre("x", "--monolith", "--outside", "a", "--outside", "b"));
  Topology two = Parsed("application: x\nservices:\n  a: {run: a, calls: [b], entry: true}\n  b: {run: b}\n");
  EXPECT_THAT(std::string(two.MakeMonolith().message()), HasSubstr("b is another program"));
}

TEST(TopologyTest, AFenceIsForCurtailServicesWithoutOneOfTheirOwn) {
  Topology t = Parsed(R"(application: shop
services:
  web: {run: shop --service web, calls: [cart, stock, cache], entry: true}
  cart: {run: shop --service cart --fence on}
  stock: {run: shop --service stock --fence=off}
  cache: {run: "memcached -s ${address}", protocol: memcached}
)");
  ASSERT_TRUE(t.Fence("strict").ok());
  EXPECT_THAT(t.Find("web")->run, ElementsAre("shop", "--service", "web", "--fence", "strict"));
  EXPECT_THAT(t.Find("cart")->run, ElementsAre("shop", "--service", "cart", "--fence", "on"));
  EXPECT_THAT(t.Find("stock")->run, ElementsAre("shop", "--service", "stock", "--fence=off"));
  EXPECT_THAT(t.Find("cache")->run, ElementsAre("memcached", "-s", "${address}"));
  EXPECT_EQ(t.Fence("yes").code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(t.TraceTo("memory").ok());
  EXPECT_THAT(t.Find("stock")->run,
              ElementsAre("shop", "--service", "stock", "--fence=off", "--trace-to", "memory"));
  EXPECT_EQ(t.TraceTo("jaeger=http://a").code(), absl::StatusCode::kInvalidArgument);
}

constexpr char kForeign[] = R"(application: shop
services:
  web: {run: "node web.js ${host} ${port} ${cart.address}", calls: [cart, stock], entry: true}
  cart: {run: cart, hosted: false, listen: "h:1"}
  stock: {run: "stock --at ${address}", protocol: tcp, shards: 2}
  price: {run: price --service price, calls: [cart]}
)";

TEST(TopologyTest, OtherProgramsAreToldAddressesOnly) {
  const Topology t = Parsed(kForeign);
  EXPECT_FALSE(t.entry().IsHosted()) << "it is told its port";
  EXPECT_FALSE(t.Find("cart")->IsHosted());
  EXPECT_TRUE(t.Find("price")->IsHosted());
  EXPECT_TRUE(t.entry().TakesPort());
  EXPECT_TRUE(t.Find("stock")->TakesPort());
  const Addresses addresses = {{"cart", {"h:1"}}, {"stock", {"s:1", "s:2"}}};
  InstanceSetup setup;
  setup.listen = "[::1]:80";
  setup.admin = "unix:/a";
  EXPECT_THAT(*CommandOf(t, t.entry(), 0, addresses, setup),
              ElementsAre("node", "web.js", "[::1]", "80", "h:1"));
  EXPECT_THAT(*CommandOf(t, *t.Find("cart"), 0, {}, setup), ElementsAre("cart"));
  EXPECT_THAT(*CommandOf(t, *t.Find("price"), 0, addresses, {}),
              ElementsAre("price", "--service", "price", "--peer", "cart=h:1"));
  setup.listen = "unix:/s";
  EXPECT_THAT(*CommandOf(t, *t.Find("stock"), 0, {}, setup), ElementsAre("stock", "--at", "/s"));
  EXPECT_THAT(CommandOf(t, t.entry(), 0, addresses, setup).status().message(),
              HasSubstr("there is no ${host}"));
  Topology whole = t;
  EXPECT_THAT(whole.MakeMonolith().message(), HasSubstr("web is not a curtail service"));
}

TEST(TopologyTest, OtherProgramsAreAskedForNothingOfCurtail) {
  const std::string begin = "application: x\nservices:\n  a: {entry: true, ";
  EXPECT_THAT(Problem(begin + "run: a, hosted: false}\n"),
              HasSubstr("a has no address; give the key listen, or put ${address}"));
  EXPECT_THAT(Problem(begin + "run: a, protocol: tcp}\n"), HasSubstr("a has no address"));
  EXPECT_THAT(Problem(begin + "run: 'a ${port}', config: SIB1}\n"),
              HasSubstr("a: config is for curtail services"));
  EXPECT_THAT(Problem(begin + "run: 'a ${port}', policy: online}\n"), HasSubstr("a: policy is for"));
  Parsed(begin + "run: 'a ${port} ${config}', config: SIB1}\n");
  EXPECT_THAT(Problem(begin + "run: a, hosted: perhaps}\n"), HasSubstr("hosted must be true or false"));
}

TEST(TopologyTest, SaysWhereItIsWrong) {
  EXPECT_THAT(Problem("application: x\nservices:\n  a:\n    run: a\n    colour: red\n"),
              HasSubstr("t.yaml:5: 'colour' is not a key of a service; there are run, "));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {rum: a}\n"),
              HasSubstr("t.yaml:3: 'rum' is not a key of a service; did you mean \"run\"? There are run, "));
  EXPECT_EQ(Problem("application: x\nservices:\n  a:\n\t run: a\n"),
            "t.yaml:4: a tab indents this line; YAML takes spaces alone");
  EXPECT_EQ(Problem("application: x\nservices:\n   a: {run: a}\n  b: {run: b}\n"),
            "t.yaml:4: no line above is indented like this one; align it with the keys beside it");
  EXPECT_EQ(Problem("application: x\nservices:\n  a: {run: a, calls: bank}\n  bank: {run: b}\n"),
            "t.yaml:3: calls must be a list: calls: [bank]");
  EXPECT_EQ(
      Problem("application: x\nservices:\n  a: {run: a, calls: [bakn]}\n  bank: {run: b, entry: true}\n"),
      "t.yaml:3: a calls bakn, which is not a service of this topology; did you mean \"bank\"?");
  EXPECT_EQ(
      Problem(
          "application: x\nservices:\n  b: {run: b}\n  a:\n    run: a\n    calls:\n      - b\n      - b\n"),
      "t.yaml:8: calls has b twice; name it once");
  EXPECT_EQ(Problem("application: x\nservices:\n  a: {run: a, stores: [b, b], entry: true}\n"),
            "t.yaml:3: stores has b twice; name it once");
  EXPECT_EQ(Problem("application: x\nvariables:\n  data: d\n  data: e\n"),
            "t.yaml:4: variables has data twice; name it once");
  EXPECT_EQ(Problem("application: x\nservices:\n  a: {run: a, calls: {b: --b, b: --c}}\n"),
            "t.yaml:3: calls has b twice; name it once");
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {run: a, shards: many, entry: true}\n"),
              HasSubstr("t.yaml:3: shards must be a number from 1 to 1024, not \"many\""));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {run: a}\n"), HasSubstr("no service has entry: true"));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {run: a, entry: true}\n  b: {run: b, entry: true}\n"),
              HasSubstr("t.yaml:4: a and b both have entry: true; only one service may"));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {shards: 1}\n"),
              HasSubstr("t.yaml:3: service a needs run: its command"));
  EXPECT_THAT(
      Problem("application: x\nservices:\n  a: {run: a, cpu: -1}\n"),
      HasSubstr("t.yaml:3: cpu must be at least 0.01 and at most 1024 CPUs, or 0 for no limit, not -1"));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {run: a, memory_mib: 9999999999}\n"),
              HasSubstr("t.yaml:3: memory_mib must be from 0 to 1000000000, not 9999999999"));
  EXPECT_THAT(Problem("application: " + std::string(70, 'a') + "\n"),
              HasSubstr("t.yaml:1: application has 70 characters; 40 are allowed"));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {run: a, listen: 7000}\n"),
              HasSubstr("t.yaml:3: listen: address \"7000\" has no "));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {run: a, listen: 'x:y'}\n"),
              HasSubstr("t.yaml:3: listen: "));
  EXPECT_THAT(Problem("services: {}\n"), HasSubstr("the key application is missing"));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {run: a, calls: {b: --b}, entry: true}\n"),
              HasSubstr("a calls b, which is not a service of this topology"));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {run: a, config: SIB1, policy: fm, entry: true}\n"),
              HasSubstr("not both"));
  EXPECT_THAT(Problem("application: x\nservices:\n  a: {run: a, shards: 2, entry: true}\n  a-1: {run: b}\n"),
              HasSubstr("would be called a-1"));
  EXPECT_THAT(Problem("application: X Y\n"), HasSubstr("is not a name"));
  EXPECT_THAT(Problem("application: [\n"), HasSubstr("t.yaml:"));
  EXPECT_THAT(Problem("- 1\n"), HasSubstr("application and services"));
  EXPECT_THAT(Problem(std::string(2u << 20, 'a')), HasSubstr("1 MiB"));
}

TEST(TopologyTest, VariablesExpandToAMebibyteAtMost) {
  std::string run;
  for (int i = 0; i < 2000; ++i) run += "${a}";
  const Topology t = Parsed("application: x\nvariables: {a: " + std::string(1000, 'v') +
                            "}\nservices:\n  a: {run: 'a " + run + "', entry: true}\n");
  EXPECT_THAT(CommandOf(t, t.entry(), 0, {}, {}).status().message(),
              HasSubstr("has more than 1048576 bytes"));
}

TEST(TopologyTest, UnknownVariablesAreNamedWithTheirLine) {
  const auto with = [](const std::string& keys) {
    return absl::StrCat("application: x\nservices:\n  a:\n    entry: true\n", keys);
  };
  EXPECT_THAT(Problem(with("    run: 'a ${sise}'\n")),
              StartsWith("t.yaml:5: '${sise}': there is no ${sise}"));
  EXPECT_THAT(Problem(with("    run: a\n    failover: '${sise}'\n    listen: h:1\n")),
              StartsWith("t.yaml:6: "));
  EXPECT_THAT(Problem(with("    run: 'a ${size'\n")), StartsWith("t.yaml:5: '${size' has a ${ without a }"));
  EXPECT_THAT(Problem(with("    run: a\nprepare: a ${entrance}\n")),
              StartsWith("t.yaml:6: '${entrance}': there is no ${entrance}"));
  const Topology t = Parsed(with("    run: a\nprepare: a ${entry}\n"));
  EXPECT_THAT(*PrepareCommand(t, "h:9"), ElementsAre("a", "h:9"));
}

TEST(TopologyTest, ErrorsNameTheLineOfTheirEntry) {
  const std::string begin = "application: x\nservices:\n  a:\n    run: a\n    entry: true\n";
  EXPECT_EQ(Problem(begin + "    calls:\n      b: --b\n      c: --c\n  b: {run: b}\n"),
            "t.yaml:8: a calls c, which is not a service of this topology");
  EXPECT_EQ(Problem(begin + "    stores:\n    - b\n    - c\n  b: {run: b}\n"),
            "t.yaml:8: a calls c, which is not a service of this topology");
  EXPECT_EQ(Problem(begin + "  b: {run: b}\n  a: {run: c}\n"), "t.yaml:7: two services are called a");
  EXPECT_THAT(Problem(begin + "    colours:\n      red: 1\n"),
              StartsWith("t.yaml:6: 'colours' is not a key"));
  EXPECT_EQ(Problem(begin + "  b: {run: b,\n    calls: [a]\n  c:\n    run: c # }\n"),
            "t.yaml:6: a { or [ is not closed");
}

TEST(TopologyTest, TakesMergeKeysAndExtensions) {
  const Topology t = Parsed(R"(
x-common: &common {config: SIB1, memory_mib: 8, x-note: mine}
application: x
services:
  a:
    <<: [*common, {replicas: 2, memory_mib: 9}]
    run: a
    entry: true
    config: FIB1
  b: {<<: *common, run: b, x-owner: me}
)");
  EXPECT_EQ(t.entry().config, "FIB1") << "its own key goes first";
  EXPECT_EQ(t.entry().replicas, 2);
  EXPECT_EQ(t.entry().memory_mib, 8) << "the first map goes first";
  EXPECT_EQ(t.Find("b")->config, "SIB1");
  std::string many = "application: x\nx-0: &a0 {x: 1}\n";
  for (int i = 1; i < 7; ++i)
    many += absl::Substitute("x-$0: &a$0 {<<: [*a$1,*a$1,*a$1,*a$1,*a$1,*a$1,*a$1,*a$1]}\n", i, i - 1);
  EXPECT_THAT(Problem(many + "variables: *a6\nservices: {a: {run: a}}\n"), HasSubstr("too many merges (<<)"));
  EXPECT_EQ(Problem("application: x\nservices:\n  a:\n    <<: 3\n    run: a\n"),
            "t.yaml:4: << takes a map, or a list of maps, such as *anchor");
}

TEST(TopologyTest, CommandsAreTextsOrLists) {
  const Topology t = Parsed(
      "\xEF\xBB\xBF"
      R"(application: x
services:
  a: {run: [./a, --motto, two words, "${instance}"], entry: true}
  b: {run: "./b --motto 'two words' --empty \"\" --set=\"a b\"c"}
)");
  EXPECT_THAT(t.entry().run, ElementsAre("./a", "--motto", "two words", "${instance}"));
  EXPECT_THAT(t.Find("b")->run, ElementsAre("./b", "--motto", "two words", "--empty", "", "--set=a bc"));
  EXPECT_EQ(Problem("application: x\nservices:\n  a: {run: a 'b}\n"), "t.yaml:3: run: a ' is not closed");
}

constexpr char kTwoServices[] =
    "application: x\nservices:\n  a: {run: a, policy: online, calls: [b], entry: true}\n  b: {run: b}\n";

TEST(TopologyTest, AnOverlayChangesKeysOfServices) {
  Topology t = Parsed(kTwoServices);
  const absl::Status laid = t.Overlay(
      "application: x\nservices:\n  a: {cpu: 0.25, config: FIB2}\n  b:\n    replicas: 2\n    cpu: 1.5\n",
      "o.yaml");
  ASSERT_TRUE(laid.ok()) << laid;
  EXPECT_EQ(t.Find("a")->cpu, 0.25);
  EXPECT_EQ(t.Find("a")->config, "FIB2");
  EXPECT_EQ(t.Find("a")->policy, "") << "a config in place of the policy";
  EXPECT_EQ(t.Find("b")->cpu, 1.5);
  EXPECT_EQ(t.Find("b")->replicas, 2);
  ASSERT_TRUE(t.Overlay("application: x\nservices: {}\n", "o.yaml").ok());
  ASSERT_TRUE(t.Set("a.cpu", "0").ok());
  EXPECT_EQ(t.Find("a")->cpu, 0);
}

TEST(TopologyTest, AMistakeInAnOverlayIsNamedAndChangesNothing) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"application: y\n", "o.yaml:1: the overlay is for y, not for x"},
      {"services:\n  a: {cpu: 2}\n  c: {cpu: 1}\n", "o.yaml:3: x has no service c"},
      {"services:\n  a: {cpu: 2}\n  b: {cpu: none}\n", "o.yaml:3: cpu must be at least 0.01"},
      {"services:\n  a: {cpu: 0.001}\n", "o.yaml:2: cpu must be"},
      {"services:\n  a: {cpu: nan}\n", "o.yaml:2: cpu must be"},
      {"services:\n  a: {entry: false}\n", "o.yaml:2: which service clients call is fixed"},
      {"services:\n  a: {colour: red}\n", "'colour' is not a key of a service"},
      {"services:\n  a: {shards: 1000, replicas: 1000}\n", "more than 1024 instances"},
      {"services:\n  a: red\n", "o.yaml:2: a must have keys"},
      {"services: red\n", "o.yaml:1: services must be"},
      {"variables: {x: 1}\n", "'variables' is not a key of an overlay"},
      {"- a\n", "o.yaml:1: an overlay has the keys"},
      {"a: [\n", "o.yaml:"}};
  for (const auto& [yaml, what] : mistakes) {
    Topology t = Parsed(kTwoServices);
    EXPECT_THAT(t.Overlay(yaml, "o.yaml").message(), HasSubstr(what)) << yaml;
    EXPECT_EQ(t.Find("a")->cpu, 0) << yaml;
  }
}

// Whatever stands in the file, it is an error or a topology whose commands can be made or refused.
TEST(TopologyTest, AnyMutationIsReadOrRefused) {
  const uint64_t seed = 20261122;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Rng rng(seed);
  const std::string original = kStores;
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string yaml = original;
    for (int i = 0; i < 3; ++i) {
      const size_t at = rng.Below(yaml.size());
      if (rng.Below(2) == 0) {
        yaml[at] = static_cast<char>(rng.Below(256));
      } else {
        yaml.erase(at, rng.Below(12));
      }
      if (yaml.empty()) yaml = "a";
    }
    const absl::StatusOr<Topology> t = Topology::Parse(yaml, "t.yaml");
    if (!t.ok()) {
      EXPECT_THAT(t.status().message(), HasSubstr("t.yaml"));
      continue;
    }
    ++read;
    for (const ServiceSpec& s : t->services) CommandOf(*t, s, s.instances() - 1, {}, {}).IgnoreError();
  }
  EXPECT_GT(read, 100) << "most mutations must not simply break the syntax";
}

}  // namespace
}  // namespace curtail::deploy
