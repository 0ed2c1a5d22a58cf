// SPDX-License-Identifier: Apache-2.0
//
// Channels to several servers, of which some stop, come back, are added and removed. Property: no call is lost, in any
// form and under any model, as long as one server is up and those that stop let their requests end.
#include "curtail/rpc/client/servers/many_servers_testing.h"

#include <gmock/gmock.h>
#include <pthread.h>

#include <atomic>
#include <thread>

#include "curtail/rpc/client/resolver/target.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/mid_tier_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;

ChannelOptions Balanced(std::string balancer) {
  ChannelOptions options;
  options.balancer = std::move(balancer);
  options.initial_backoff = milliseconds(1);
  options.max_backoff = milliseconds(5);
  options.min_resolve_interval = Nanos::zero();
  return options;
}

// Asks until the server of that name answers, as it does from then on.
void AwaitAnswerOf(Channel& channel, const std::string& name) {
  const Deadline end = Deadline::In(kMaxTestWait);
  while (Ask(channel).value_or("none") != name && !end.Expired()) BetweenLooks();
  EXPECT_EQ(Ask(channel).value_or("none"), name);
}

std::function<bool(const Counts&)> AllOf(std::vector<std::string> names) {
  return [names](const Counts& counts) {
    return std::all_of(names.begin(), names.end(),
                       [&](const std::string& name) { return counts.contains(name); });
  };
}
std::function<bool(const Counts&)> Total(int n) {
  return [n](const Counts& counts) {
    int sum = 0;
    for (const auto& [name, count] : counts) sum += count;
    return sum >= n;
  };
}

TEST(ManyServers, PickFirstUsesOneUntilItStops) {
  ManyServers servers(3);
  Client client;
  Channel channel(&client, servers.Target(), Balanced("pick_first"));
  EXPECT_THAT(CallUntil([&] { return Ask(channel); }, Total(20)),
              testing::ElementsAre(testing::Pair("0", 20)));
  servers.Stop(0);
  EXPECT_THAT(CallUntil([&] { return Ask(channel); }, Total(20)),
              testing::ElementsAre(testing::Pair("1", 20)));
  servers.Stop(1);
  EXPECT_THAT(CallUntil([&] { return Ask(channel); }, Total(20)),
              testing::ElementsAre(testing::Pair("2", 20)));
  servers.Stop(2);
  const absl::Status status = Ask(channel).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr(servers.Target()));
  servers.Start(1);
  AwaitAnswerOf(channel, "1");
}

TEST(ManyServers, RoundRobinGivesEachTheSame) {
  ManyServers servers(3);
  Client client;
  Channel channel(&client, servers.Target(), Balanced("round_robin"));
  CallUntil([&] { return Ask(channel); }, AllOf({"0", "1", "2"}));
  // Connected to all by now, or very soon.
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Ask(channel).ok());
  EXPECT_THAT(CallUntil([&] { return Ask(channel); }, Total(30)),
              testing::ElementsAre(testing::Pair("0", 10), testing::Pair("1", 10), testing::Pair("2", 10)));
}

TEST(ManyServers, LeastRequestLeavesAServerThatHangsAlone) {
  ManyServers servers(3);
  Client client;
  Channel channel(&client, servers.Target(), Balanced("least_request"));
  CallUntil([&] { return Ask(channel); }, AllOf({"0", "1", "2"}));
  std::string slow;
  std::thread hanging([&] { slow = Ask(channel, "hang").value_or("failed"); });
  ASSERT_TRUE(servers.gate().AwaitArrivals(1));
  const Counts counts = CallUntil([&] { return Ask(channel); }, Total(900));
  servers.gate().Open();
  hanging.join();
  // Only when both choices are it, one time in nine.
  const auto found = counts.find(slow);
  EXPECT_LE(found == counts.end() ? 0 : found->second, 200) << slow;
}

TEST(ManyServers, RingHashKeepsTheServerOfAKey) {
  ManyServers servers(3);
  Client client;
  ChannelOptions options = Balanced("ring_hash");
  options.hash_key = "x-user";
  Channel channel(&client, servers.Target(), options);
  std::map<std::string, std::string> owners;
  Counts counts;
  for (int i = 0; i < 40; ++i) {
    const std::string key = Join("user-", i);
    owners[key] = Ask(channel, "", key).value_or("failed");
    ++counts[owners[key]];
    EXPECT_EQ(Ask(channel, "", key).value_or("failed"), owners[key]);
  }
  EXPECT_EQ(counts.size(), 3u);
  servers.Stop(1);
  for (const auto& [key, owner] : owners) {
    const std::string now = Ask(channel, "", key).value_or("failed");
    if (owner == "1") {
      EXPECT_NE(now, "1");
    } else {
      EXPECT_EQ(now, owner);
    }
  }
}

TEST(ManyServers, WrongOptionsAreNamed) {
  Client client;
  Channel channel(&client, "127.0.0.1:1", {.balancer = "robin"});
  const absl::Status status = Ask(channel).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("there is no balancer \"robin\""));
}

TEST(ManyServers, AnEmptyListIsUnavailableUntilThereIsOne) {
  ManyServers servers(1);
  Client client;
  const auto resolver = std::make_shared<ListResolver>();
  ChannelOptions options = Balanced("round_robin");
  options.resolver = resolver;
  Channel channel(&client, "search", options);
  const absl::Status status = Ask(channel).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("the list is empty"));
  resolver->Set(servers.Addresses({0}));
  AwaitAnswerOf(channel, "0");
}

// Property: the resolver is asked again after a failure, and not on the way of a call.
TEST(ManyServers, AFailureHasTheResolverAskedAgain) {
  ManyServers servers(2);
  Client client;
  const auto resolver = std::make_shared<ListResolver>();
  resolver->Set(servers.Addresses({0}));
  ChannelOptions options = Balanced("pick_first");
  options.resolver = resolver;
  Channel channel(&client, "search", options);
  EXPECT_EQ(Ask(channel).value_or("none"), "0");
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Ask(channel).ok());
  EXPECT_EQ(resolver->asked(), 1);
  resolver->Set(servers.Addresses({1}));
  servers.Stop(0);
  AwaitAnswerOf(channel, "1");
}

// Property: an answer that grows old is asked for again without a failure, also after one that failed.
TEST(ManyServers, AnAnswerThatGrowsOldIsAskedForAgain) {
  ManyServers servers(2);
  Client client;
  const auto resolver = std::make_shared<ListResolver>(std::chrono::milliseconds(1));
  ChannelOptions options = Balanced("round_robin");
  options.resolver = resolver;
  options.min_resolve_interval = std::chrono::hours(1);
  options.initial_backoff = std::chrono::milliseconds(1);
  Channel channel(&client, "search", options);
  EXPECT_FALSE(Ask(channel).ok());
  resolver->Set(servers.Addresses({0}));
  AwaitAnswerOf(channel, "0");
  resolver->Set(servers.Addresses({1}));
  AwaitAnswerOf(channel, "1");
  resolver->Set({});
  const Deadline end = Deadline::In(kMaxTestWait);
  for (const int asked = resolver->asked(); resolver->asked() < asked + 2 && !end.Expired();) BetweenLooks();
  EXPECT_EQ(Ask(channel).value_or("none"), "1") << "a failed answer takes nothing away";
  resolver->Set(servers.Addresses({0}));
  AwaitAnswerOf(channel, "0");
}

// Property: a name of several that fails takes no server from the list, and is asked for again without a failure of a call.
TEST(ManyServers, ANameOfSeveralThatFailsKeepsItsServersAndIsAskedAgain) {
  ManyServers servers(2);
  Client client;
  auto early = std::make_unique<ListResolver>(), late = std::make_unique<ListResolver>();
  ListResolver& zero = *early;
  ListResolver& one = *late;
  zero.Set(servers.Addresses({0}));
  std::vector<std::unique_ptr<Resolver>> each;
  each.push_back(std::move(early));
  each.push_back(std::move(late));
  ChannelOptions options = Balanced("round_robin");
  options.resolver = internal::Together(std::move(each));
  Channel channel(&client, "search", options);
  EXPECT_EQ(Ask(channel).value_or("none"), "0");
  one.Set(servers.Addresses({1}));
  CallUntil([&] { return Ask(channel); }, AllOf({"0", "1"}));
  // The name of a server is gone while it restarts.
  zero.Set({});
  servers.Stop(0);
  const int before = zero.asked();
  CallUntil([&] { return Ask(channel); }, [&](const Counts&) { return zero.asked() > before + 1; });
  servers.Start(0);
  CallUntil([&] { return Ask(channel); }, AllOf({"0", "1"}));
}

TEST(ManyServers, TheResolverIsNotAskedMoreOftenThanAllowed) {
  ManyServers servers(2);
  Client client;
  const auto resolver = std::make_shared<ListResolver>();
  resolver->Set(servers.Addresses({0, 1}));
  ChannelOptions options = Balanced("pick_first");
  options.resolver = resolver;
  options.min_resolve_interval = std::chrono::hours(1);
  Channel channel(&client, "search", options);
  EXPECT_EQ(Ask(channel).value_or("none"), "0");
  servers.Stop(0);
  EXPECT_EQ(Ask(channel).value_or("none"), "1");
  channel.impl().LookUp();
  EXPECT_EQ(resolver->asked(), 1);
}

TEST(ManyServers, ACallInFlightOnARemovedServerEndsNormallyThenItsConnectionCloses) {
  ManyServers servers(2);
  Client client;
  const auto resolver = std::make_shared<ListResolver>();
  resolver->Set(servers.Addresses({0}));
  ChannelOptions options = Balanced("round_robin");
  options.resolver = resolver;
  Channel channel(&client, "search", options);
  absl::StatusOr<std::string> slow;
  std::thread hanging([&] { slow = Ask(channel, "hang"); });
  ASSERT_TRUE(servers.gate().AwaitArrivals(1));
  resolver->Set(servers.Addresses({1}));
  channel.impl().LookUp();
  EXPECT_THAT(CallUntil([&] { return Ask(channel); }, Total(20)),
              testing::ElementsAre(testing::Pair("1", 20)));
  EXPECT_EQ(servers[0].Sample().connections, 1u);
  servers.gate().Open();
  hanging.join();
  EXPECT_EQ(slow.value_or("failed"), "0");
  for (const Deadline end = Deadline::In(kMaxTestWait);
       servers[0].Sample().connections > 0 && !end.Expired();)
    BetweenLooks();
  EXPECT_EQ(servers[0].Sample().connections, 0u);
}

// Event-driven calls, a few at once; each must succeed.
class EventDriven final : private Completion {
 public:
  EventDriven(Client* client, Channel* channel) : client_(client), channel_(channel) {}
  Counts Run(int calls) {
    counts_.clear();
    left_ = calls;
    for (int i = 0; i < 8; ++i) Start();
    for (const Deadline end = Deadline::In(kMaxTestWait); open_ > 0 && !end.Expired();) client_->Poll(end);
    EXPECT_EQ(open_, 0);
    return counts_;
  }

 private:
  void Start() {
    if (left_-- <= 0) return;
    ++open_;
    channel_->Start(kWho.path, Deadline::In(kMaxTestWait), {}, Text("").SerializeAsString(), this);
  }
  void Done(absl::Status&& status, std::string&& reply) override {
    --open_;
    EXPECT_TRUE(status.ok()) << status;
    StringValue value;
    if (status.ok() && value.ParseFromString(reply)) ++counts_[value.value()];
    Start();
  }

  Client* const client_;
  Channel* const channel_;
  Counts counts_;
  int left_ = 0;
  int open_ = 0;
};

TEST(ManyServers, EventDrivenCallsFollowTheListAndLoseNone) {
  ManyServers servers(3);
  Client client;
  const auto resolver = std::make_shared<ListResolver>();
  resolver->Set(servers.Addresses({0, 1}));
  ChannelOptions options = Balanced("round_robin");
  options.resolver = resolver;
  Channel channel(&client, "search", options);
  EventDriven calls(&client, &channel);
  EXPECT_EQ(calls.Run(500).size(), 2u);
  resolver->Set(servers.Addresses({1, 2}));
  channel.impl().LookUp();
  const Counts counts = calls.Run(500);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_FALSE(counts.contains("0"));
  servers.Stop(1);
  calls.Run(500);
  EXPECT_THAT(calls.Run(500), testing::ElementsAre(testing::Pair("2", 500)));
  servers.Start(1);
  for (const Deadline end = Deadline::In(kMaxTestWait); !calls.Run(50).contains("1");)
    ASSERT_FALSE(end.Expired());
}

// A mid-tier that asks the servers twice for each request, and clients that call it meanwhile.
class ManyServersTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    resolver_->Set(servers_.Addresses({0, 1, 2}));
    ChannelOptions options = Balanced("round_robin");
    options.resolver = resolver_;
    channel_ = std::make_unique<Channel>(&client_, "search", options);
    both_ = {channel_.get(), channel_.get()};
    ServerOptions server;
    server.config = *Config::Parse(GetParam());
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<OneMethod>(internal::CoroutineMethod<StringValue, StringValue>(
        "Run", [this](Context& ctx, const StringValue& in, StringValue* out) { return Run(ctx, in, out); })));
    auto mid = Server::Start(std::move(server), std::move(services));
    ASSERT_TRUE(mid.ok()) << mid.status();
    mid_ = *std::move(mid);
    front_ = std::make_unique<Channel>(&front_client_, mid_->addresses()[0]);
  }
  void TearDown() override {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    EXPECT_TRUE(mid_->Drain(Deadline::In(kMaxTestWait)).ok());
  }

  Coroutine Run(Context& ctx, const StringValue& in, StringValue* out) {
    const auto replies = co_await broadcast(ctx, std::span<Channel* const>(both_), kWho, in);
    for (const auto& reply : replies) {
      if (!reply.ok()) co_return reply.status();
    }
    // The one, then the other: with two servers each would always be the same.
    out->set_value(replies[requests_++ % 2]->value());
    co_return absl::OkStatus();
  }
  absl::StatusOr<std::string> Front() {
    Context ctx(kMaxTestWait);
    StringValue reply;
    const absl::Status status = front_->Call(ctx, kRun.path, Text(""), &reply);
    if (!status.ok()) return status;
    return reply.value();
  }
  // Calls from some threads until the end of the test.
  void KeepCalling() {
    for (int i = 0; i < 3; ++i) {
      threads_.emplace_back([this] {
        while (!stop_) {
          const absl::StatusOr<std::string> who = Front();
          EXPECT_TRUE(who.ok()) << who.status();
          if (!who.ok()) return;
        }
      });
    }
  }
  void ListIs(const std::vector<size_t>& which) {
    resolver_->Set(servers_.Addresses(which));
    channel_->impl().LookUp();
  }
  void AwaitNoConnections(size_t i) {
    for (const Deadline end = Deadline::In(kMaxTestWait);
         servers_[i].Sample().connections > 0 && !end.Expired();)
      EXPECT_TRUE(Front().ok());
    EXPECT_EQ(servers_[i].Sample().connections, 0u);
  }

  ManyServers servers_{3};
  const std::shared_ptr<ListResolver> resolver_ = std::make_shared<ListResolver>();
  Client client_;
  std::unique_ptr<Channel> channel_;
  std::vector<Channel*> both_;
  std::atomic<size_t> requests_{0};
  std::unique_ptr<Server> mid_;
  Client front_client_;
  std::unique_ptr<Channel> front_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};
INSTANTIATE_TEST_SUITE_P(Models, ManyServersTest, testing::Values("SIB1", "SDB1-4", "FIB1", "ADB1-2-2"),
                         ModelName);

TEST_P(ManyServersTest, NoCallIsLostWhenAServerStopsAndComesBack) {
  const auto front = [this] { return Front(); };
  CallUntil(front, AllOf({"0", "1", "2"}));
  KeepCalling();
  servers_.Stop(1);
  EXPECT_FALSE(CallUntil(front, Total(50)).contains("1"));
  servers_.Start(1);
  CallUntil(front, AllOf({"1"}));
}

TEST_P(ManyServersTest, NoCallIsLostWhenServersAreAddedAndRemoved) {
  const auto front = [this] { return Front(); };
  ListIs({0});
  CallUntil(front, AllOf({"0"}));
  KeepCalling();
  ListIs({0, 1, 2});
  CallUntil(front, AllOf({"0", "1", "2"}));
  ListIs({2});
  EXPECT_FALSE(CallUntil(front, AllOf({"2"})).contains("1"));
  ListIs({1, 2});
  CallUntil(front, AllOf({"1", "2"}));
}

TEST_P(ManyServersTest, ConnectionsToARemovedServerClose) {
  CallUntil([this] { return Front(); }, AllOf({"0", "1", "2"}));
  ListIs({0, 2});
  // SDB has as many places as threads that call; each lets go at its next call.
  AwaitNoConnections(1);
}

// While there is one, no thread can be started: its stack would be larger than the address space.
class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 48);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoNewThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(ManyServers, NamesAreLookedUpOnceThereIsAThreadForIt) {
  ManyServers servers(2);
  const auto resolver = std::make_shared<ListResolver>();
  resolver->Set(servers.Addresses({0}));
  Client client;
  ChannelOptions options = Balanced("pick_first");
  options.resolver = resolver;
  Channel channel(&client, "names", options);
  EXPECT_EQ(Ask(channel).value_or("none"), "0");
  servers.Stop(0);
  {
    const NoNewThreads none;
    EXPECT_FALSE(Ask(channel).ok());
  }
  EXPECT_EQ(resolver->asked(), 1);
  resolver->Set(servers.Addresses({1}));
  AwaitAnswerOf(channel, "1");
}

}  // namespace
}  // namespace curtail
