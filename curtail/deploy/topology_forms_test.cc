// SPDX-License-Identifier: Apache-2.0
//
// Services by another program, and several in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_join.h"
#include "curtail/deploy/instance_command.h"
#include "curtail/deploy/topology.h"
#include "curtail/deploy/topology_file.h"
#include "curtail/deploy/topology_testing.h"

namespace curtail::deploy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kVariants[] = R"(application: shop
services:
  cart:
    run: shop --service cart
    config: SIB1
    memory_mib: 20
    scales: true
    variants:
      java: {run: "java -jar cart.jar --port ${port}", needs: java-is-not-here, memory_mib: 200}
      shell: {run: "sh cart ${address}", needs: [sh, /bin/sh]}
      other: {run: other-cart}
  web: {run: shop --service web, calls: [cart], entry: true}
)";

TEST(VariantsTest, ReplacesTheCommandAndKeepsTheRest) {
  Topology t = Parsed(kVariants);
  ASSERT_TRUE(t.TakeVariant("cart=shell").ok());
  ASSERT_TRUE(t.Check().ok()) << t.Check();
  const ServiceSpec& cart = *t.Find("cart");
  EXPECT_EQ(cart.variant, "shell");
  EXPECT_THAT(cart.run, ElementsAre("sh", "cart", "${address}"));
  EXPECT_EQ(cart.memory_mib, 20) << "the service's own";
  EXPECT_FALSE(cart.IsHosted());
  EXPECT_EQ(cart.config, "") << "which this program would not understand";
  EXPECT_FALSE(cart.scales);

  Topology hosted = Parsed(kVariants);
  ASSERT_TRUE(hosted.TakeVariant("cart=other").ok());
  EXPECT_TRUE(hosted.Find("cart")->IsHosted());
  EXPECT_EQ(hosted.Find("cart")->config, "SIB1");
  EXPECT_TRUE(hosted.Find("cart")->scales);
}

TEST(VariantsTest, TakesTheFirstWhoseToolsAreThere) {
  Topology t = Parsed(kVariants);
  ASSERT_TRUE(t.TakeVariants().ok());
  EXPECT_EQ(t.Find("cart")->variant, "shell");
  EXPECT_EQ(t.Find("web")->variant, "");
  EXPECT_THAT(t.left_out, ElementsAre("cart does not run as java: java-is-not-here is missing"));

  Topology chosen = Parsed(kVariants);
  ASSERT_TRUE(chosen.TakeVariant("cart=other").ok());
  ASSERT_TRUE(chosen.TakeVariants().ok());
  EXPECT_EQ(chosen.Find("cart")->variant, "other");

  Topology none = Parsed(kStores);
  EXPECT_THAT(none.TakeVariants().message(), HasSubstr("kv has no service with variants"));
  EXPECT_THAT(none.TakeVariant(none.services.front().name + "=java").message(),
              HasSubstr(none.services.front().name + " has no variants; leave the flag out"));
}

TEST(VariantsTest, SaysHowToBuildAProgramThatIsMissing) {
  constexpr char kBuilt[] = R"(application: shop
services:
  cart:
    run: shop --service cart
    entry: true
    variants:
      java: {run: shop-java-is-not-built --service cart, needs: sh, build: make shop-java}
      shell: {run: sh cart.sh, build: make sh}
)";
  Topology t = Parsed(kBuilt);
  const absl::Status refused = t.TakeVariant("cart=java");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(),
              HasSubstr("cart=java: shop-java-is-not-built is not built; build it: make shop-java"));
  ASSERT_TRUE(t.TakeVariants().ok());
  EXPECT_EQ(t.Find("cart")->variant, "shell") << "the first that is there";
  EXPECT_THAT(t.left_out, ElementsAre("cart does not run as java: shop-java-is-not-built is not built; "
                                      "build it: make shop-java"));
}

TEST(VariantsTest, RefusesWithTheLine) {
  const auto problem = [](std::string_view variants) {
    return Problem("application: a\nservices:\n  s:\n    run: s\n    entry: true\n    variants:\n" +
                   std::string(variants));
  };
  EXPECT_THAT(problem("      - java\n"),
              HasSubstr("t.yaml:7: variants must be a map; write NAME: and its keys below"));
  EXPECT_THAT(problem("      java: 3\n"), HasSubstr("t.yaml:7: variant java has no keys"));
  EXPECT_THAT(problem("      Java: {run: x}\n"), HasSubstr("t.yaml:7: 'Java' is not a name"));
  EXPECT_THAT(problem("      java: {needs: x}\n"),
              HasSubstr("t.yaml:7: variant java needs run: its command"));
  EXPECT_THAT(problem("      java:\n        run: x\n        needs: ./x\n"),
              HasSubstr("t.yaml:9: needs: './x' is not a name or an absolute path"));
  EXPECT_THAT(problem("      java:\n        run: x\n        shards: 2\n"),
              HasSubstr("t.yaml:9: 'shards' is not a key of a variant; there are run, needs"));
  EXPECT_THAT(problem("      java: {run: x, memory_mib: -1}\n"), HasSubstr("t.yaml:7: memory_mib must be"));
  EXPECT_THAT(problem("      java: {run: x}\n      java: {run: y}\n"), HasSubstr("t.yaml:"));
}

// Front calls text and user; text calls count; user and post call each other.
constexpr char kToy[] = R"(application: toy
services:
  cache: {run: "memcached -s ${address}", protocol: memcached, memory_mib: 20}
  count: {run: "toy --service count --data ${data}", scales: true}
  text: {run: "toy --service text --data ${data} --carts ${count.replicas}", calls: [count, user], config: SDB1-4}
  user: {run: toy --service=user --quiet --forms=on, calls: [post]}
  post: {run: toy --service post, calls: [user], stores: [cache]}
  shard: {run: toy --service shard, shards: 2}
  other: {run: other --service other}
  front: {run: toy --service front --hedge-after 3, calls: [text, user, count, shard], entry: true}
variables: {data: /d}
)";

std::string CommandText(const Topology& t, std::string_view service) {
  Addresses addresses;
  for (const ServiceSpec& s : t.services)
    addresses[s.name].assign(static_cast<size_t>(s.instances()), "@" + s.name);
  const auto argv = CommandOf(t, *t.Find(service), 0, addresses, {});
  EXPECT_TRUE(argv.ok()) << argv.status();
  std::string text;
  if (argv.ok()) {
    for (const std::string& word : *argv) text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

TEST(GroupTest, IsOneProcessWithWhatItsServicesHave) {
  Topology t = Parsed(kToy);
  ASSERT_TRUE(t.Group("text,count").ok());
  EXPECT_EQ(t.Find("text"), nullptr);
  EXPECT_EQ(t.services.size(), 7u);
  EXPECT_EQ(t.Find("text+count")->config, "SDB1-4");
  EXPECT_FALSE(t.Find("text+count")->ScalesWhileServing());
  EXPECT_EQ(CommandText(t, "text+count"), "toy --service text,count --data /d --carts 1 --peer user=@user");
  EXPECT_EQ(CommandText(t, "front"),
            "toy --service front --hedge-after 3 --peer text=@text+count --peer user=@user "
            "--peer count=@text+count --peer shard=@shard,@shard");
}

TEST(GroupTest, CallsAnotherGroupByTheNamesOfItsServices) {
  Topology t = Parsed(kToy);
  ASSERT_TRUE(t.Group("text,count").ok());
  ASSERT_TRUE(t.Group("post,user,front").ok());
  EXPECT_EQ(t.entry().name, "post+user+front");
  EXPECT_EQ(CommandText(t, "text+count"),
            "toy --service text,count --data /d --carts 1 --peer user=@post+user+front");
  EXPECT_EQ(
      CommandText(t, "post+user+front"),
      "toy --service post,user,front --quiet --forms=on --hedge-after 3 --outside user --outside front "
      "--store cache=@cache --peer text=@text+count --peer count=@text+count --peer shard=@shard,@shard")
      << "clients do not reach `post`";
}

TEST(GroupTest, ALinkLeadsToOneOfItsServices) {
  Topology t = Parsed(kToy);
  ASSERT_TRUE(t.Group("text,count").ok());
  ASSERT_TRUE(t.Link("front>count=delay=5ms").ok());
  ASSERT_TRUE(t.Link("text+count>user=delay=9ms").ok());
  ASSERT_TRUE(t.InsertRelays().ok());
  EXPECT_THAT(CommandText(t, "front"),
              HasSubstr("--peer text=@text+count --peer user=@user --peer count=@front-to-count"));
  EXPECT_THAT(CommandText(t, "text+count"), HasSubstr("--peer user=@text-count-to-user"));
  EXPECT_THAT(CommandText(t, "front-to-count"), HasSubstr("--to @text+count --link delay=5ms"));
}

TEST(LinkTest, ItsEndDoesNotScaleWhileItServes) {
  Topology t = Parsed(kVariants);
  ASSERT_TRUE(t.Link("web>cart=delay=1ms").ok());
  ASSERT_TRUE(t.InsertRelays().ok());
  EXPECT_FALSE(t.Find("cart")->ScalesWhileServing()) << "callers know the relays of its instances alone";
}

TEST(GroupTest, AreThoseOfTheTopologyUnlessTheCommandLineHasOthers) {
  const std::string yaml = std::string(kToy) + "groups: [[text, count], [user, post]]\n";
  const auto changed = [&](TopologyChanges changes, absl::StatusCode code = absl::StatusCode::kOk) {
    Topology t = Parsed(yaml);
    const absl::Status status = Change(changes, &t);
    EXPECT_EQ(status.code(), code) << status;
    if (!status.ok()) t.title = std::string(status.message());
    return t;
  };
  const Topology own = changed({});
  EXPECT_NE(own.Find("text+count"), nullptr);
  EXPECT_NE(own.Find("user+post"), nullptr);
  EXPECT_NE(changed({.groups = {"text,user"}}).Find("count"), nullptr);
  EXPECT_EQ(changed({.groups = {kNoGroups}}).services.size(), 8u);
  EXPECT_EQ(changed(ServicesAlone({})).services.size(), 8u);
  EXPECT_THAT(changed({.set = {"count.replicas=2"}}, absl::StatusCode::kFailedPrecondition).title,
              HasSubstr("count has 2 instances, and a process has one of each service\nIt is a group of the "
                        "topology; --group none"));
  const std::string head = "application: a\nservices:\n  s: {run: s, entry: true}\n";
  EXPECT_THAT(Problem(head + "groups: s\n"), HasSubstr("t.yaml:4: groups must be a list of lists"));
  EXPECT_THAT(Problem(head + "groups: [[s, t]]\n"), HasSubstr("t.yaml:4: groups: there is no service t"));
}

TEST(GroupTest, RefusesWhatCannotBeOneProcess) {
  const auto problem = [](const std::string& services, const std::function<void(Topology&)>& change = {}) {
    Topology t = Parsed(kToy);
    if (change) change(t);
    return std::string(t.Group(services).message());
  };
  const auto set = [](const char* name, const char* value) {
    return [name, value](Topology& t) { EXPECT_TRUE(t.Set(name, value).ok()) << name; };
  };
  EXPECT_THAT(problem("text"), HasSubstr("--group text: write two services or more"));
  EXPECT_THAT(problem("text,cart"), HasSubstr("toy has no service cart; there are "));
  EXPECT_THAT(problem("text,text"), HasSubstr("it names text twice"));
  EXPECT_THAT(problem("text,cache"), HasSubstr("cannot be one process: cache is not a curtail service"));
  EXPECT_THAT(problem("text,shard"), HasSubstr("shard has 2 instances"));
  EXPECT_THAT(problem("text,count", set("count.replicas", "3")), HasSubstr("count has 3 instances"));
  EXPECT_THAT(problem("text,other"), HasSubstr("other is another program than text: other"));
  EXPECT_THAT(problem("text,count", set("count.config", "SIB1")),
              HasSubstr("the config or policy of count differs"));
  EXPECT_THAT(problem("text,count", [](Topology& t) { EXPECT_TRUE(t.Use("count=h:1").ok()); }),
              HasSubstr("count runs elsewhere already"));
  EXPECT_THAT(problem("text,count", set("count.run", "toy --service count --data x")),
              HasSubstr("they have --data ${data} and x"));
  EXPECT_THAT(problem("text,count", set("count.run", "toy count")), HasSubstr("has the word count"));
  EXPECT_THAT(problem("text,count", set("count.run", "toy")),
              HasSubstr("the command of count has no --service"));
  EXPECT_THAT(problem("text,count", set("count.cpu", "0.5")), HasSubstr("some have a limit of `cpu`"));
  EXPECT_THAT(problem("front,text", [](Topology& t) { EXPECT_TRUE(t.Link("text>user=delay=1ms").ok()); }),
              HasSubstr("not all that call user have the same link to it"));
  Topology twice = Parsed(kToy);
  ASSERT_TRUE(twice.Group("text,count").ok());
  const std::string taken(twice.Group("count,user").message());
  EXPECT_THAT(taken, HasSubstr("toy has no service count; there are "));
  EXPECT_THAT(taken, HasSubstr("text+count"));
}

TEST(MonolithTest, HasEachFlagOnceWithItsValue) {
  Topology t = Parsed(
      "application: x\nservices:\n  a: {run: p --service a --verbose --data D, calls: [b], entry: true}\n"
      "  b: {run: p --service=b --verbose --limit 5 --data=E --set c --set d}\n");
  ASSERT_TRUE(t.MakeMonolith().ok());
  EXPECT_EQ(absl::StrJoin(t.entry().run, " "),
            "p --monolith --verbose --limit 5 --data=E --set c --set d --outside a");
}

TEST(MonolithTest, HasTheCpuTimeOfAllItsServices) {
  Topology t = Parsed(
      "application: x\nservices:\n  a: {run: p --service a, calls: [b], cpu: 0.5, entry: true}\n"
      "  b: {run: p --service b, shards: 2, cpu: 0.25}\n  s: {run: 's ${address}', protocol: redis, cpu: "
      "0.1}\n");
  ASSERT_TRUE(t.MakeMonolith().ok());
  EXPECT_EQ(t.entry().cpu, 1.0);
}

}  // namespace
}  // namespace curtail::deploy
