// SPDX-License-Identifier: Apache-2.0
//
// Server and client together, over real sockets, under each synchronous model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/server.h"
#include "google/protobuf/wrappers.pb.h"

namespace curtail {
namespace {

using google::protobuf::StringValue;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr Nanos kMaxTestWait = seconds(20);

constexpr Method<StringValue, StringValue> kEcho{"/test.Echo/Echo"};
constexpr Method<StringValue, StringValue> kHang{"/test.Echo/Hang"};
constexpr Method<StringValue, StringValue> kThrow{"/test.Echo/Throw"};
constexpr Method<StringValue, StringValue> kForward{"/test.Echo/Forward"};

// A gate that handlers wait at until the test opens it, so that no test sleeps to get its timing right.
class Gate {
 public:
  void Open() {
    std::lock_guard lock(mu_);
    open_ = true;
    cv_.notify_all();
  }
  bool Pass() {
    std::unique_lock lock(mu_);
    ++arrived_;
    cv_.notify_all();
    return cv_.wait_for(lock, kMaxTestWait, [this] { return open_; });
  }
  bool AwaitArrivals(int n) {
    std::unique_lock lock(mu_);
    return cv_.wait_for(lock, kMaxTestWait, [&] { return arrived_ >= n; });
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  bool open_ = false;
  int arrived_ = 0;
};

// Echo answers; Hang waits at a gate or for cancellation; Forward fans out to `leaves`.
class EchoService final : public Service {
 public:
  EchoService(Gate* gate, std::vector<Channel*> leaves, std::atomic<int>* cancelled)
      : gate_(gate), leaves_(std::move(leaves)), cancelled_(cancelled) {}

  std::string_view FullName() const override { return "test.Echo"; }
  std::vector<MethodHandler> Handlers() override {
    using internal::UnaryHandler;
    return {{.name = "Echo",
             .handler = UnaryHandler<StringValue, StringValue>(
                 [](Context& ctx, const StringValue& in, StringValue* out) -> absl::Status {
                   if (in.value() == "fail") return absl::NotFoundError("no such thing: \xc3\xa9 100%");
                   if (in.value() == "meta") {
                     out->set_value(std::string(ctx.metadata().Find("x-key").value_or("none")));
                     ctx.AddTrailingMetadata("x-trail", "t");
                     return absl::OkStatus();
                   }
                   out->set_value(in.value());
                   return absl::OkStatus();
                 })},
            {.name = "Throw",
             .handler = UnaryHandler<StringValue, StringValue>(
                 [](Context&, const StringValue& in, StringValue*) -> absl::Status {
                   if (in.value() == "int") throw 1;
                   throw std::runtime_error("thrown");
                 })},
            {.name = "Hang",
             .handler = UnaryHandler<StringValue, StringValue>(
                 [this](Context& ctx, const StringValue& in, StringValue* out) -> absl::Status {
                   gate_->Pass();
                   if (ctx.cancelled() && cancelled_ != nullptr) ++*cancelled_;
                   out->set_value(in.value());
                   return absl::OkStatus();
                 })},
            {.name = "Forward",
             .handler = UnaryHandler<StringValue, StringValue>(
                 [this](Context& ctx, const StringValue& in, StringValue* out) {
                   return Forward(ctx, in, out);
                 })}};
  }

 private:
  absl::Status Forward(Context& ctx, const StringValue& in, StringValue* out) {
    const Method<StringValue, StringValue>& method = in.value() == "hang" ? kHang : kEcho;
    const auto replies =
        ctx.FanOut(std::span<Channel* const>(leaves_), method, std::vector(leaves_.size(), in));
    std::string joined;
    for (const auto& reply : replies) {
      if (!reply.ok()) {
        if (absl::IsCancelled(reply.status()) && cancelled_ != nullptr) ++*cancelled_;
        return reply.status();
      }
      joined += reply->value() + ";";
    }
    out->set_value(joined);
    return absl::OkStatus();
  }

  Gate* const gate_;
  const std::vector<Channel*> leaves_;
  std::atomic<int>* const cancelled_;
};

StringValue Text(std::string text) {
  StringValue value;
  value.set_value(std::move(text));
  return value;
}

class RpcBase {
 protected:
  std::unique_ptr<Server> StartServer(std::string config, std::vector<Channel*> leaves = {},
                                      std::string listen = "127.0.0.1:0") {
    ServerOptions options;
    options.listen = {std::move(listen)};
    options.config = *Config::Parse(config);
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, std::move(leaves), &cancelled_));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  absl::Status Call(Channel& channel, const Method<StringValue, StringValue>& method, const std::string& text,
                    std::string* answer = nullptr, Nanos timeout = kMaxTestWait) {
    Context ctx(timeout);
    StringValue reply;
    const StringValue request = Text(text);
    const absl::Status status = channel.Call(ctx, method.path, request, &reply);
    if (answer != nullptr) *answer = reply.value();
    return status;
  }

  Gate gate_;
  std::atomic<int> cancelled_{0};
};

class RpcTest : public RpcBase, public testing::TestWithParam<const char*> {};

TEST_P(RpcTest, AnswersACall) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  std::string answer;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Call(channel, kEcho, Join("hello ", i), &answer).ok());
    ASSERT_EQ(answer, Join("hello ", i));
  }
  EXPECT_TRUE(server->Drain(Deadline::In(seconds(5))).ok());
}

TEST_P(RpcTest, CarriesErrors) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  const absl::Status failed = Call(channel, kEcho, "fail");
  EXPECT_EQ(failed.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(failed), "no such thing: \xc3\xa9 100%");
  EXPECT_EQ(Call(channel, {"/test.Echo/Nope"}, "").code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Call(channel, {"/test.Nope/Echo"}, "").code(), absl::StatusCode::kUnimplemented);
  const absl::Status thrown = Call(channel, kThrow, "");
  EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(thrown)), HasSubstr("thrown"));
  EXPECT_EQ(Call(channel, kThrow, "int").code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(Call(channel, kEcho, "still here").ok());
}

TEST_P(RpcTest, FansOutToLeaves) {
  Client client;
  auto a = StartServer("SIB1");
  auto b = StartServer("SDB1-2");
  Channel leaf_a(&client, a->addresses()[0]);
  Channel leaf_b(&client, b->addresses()[0]);
  auto mid = StartServer(GetParam(), {&leaf_a, &leaf_b, &leaf_a, &leaf_b});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  std::string answer;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Call(channel, kForward, "x", &answer).ok());
    ASSERT_EQ(answer, "x;x;x;x;");
  }
}

TEST_P(RpcTest, ManyThreadsFanOutAtOnceStress) {
  Client client({.lanes = 2});
  auto a = StartServer("SIB2");
  auto b = StartServer("SDB2-3");
  Channel leaf_a(&client, a->addresses()[0]);
  Channel leaf_b(&client, b->addresses()[0]);
  auto mid = StartServer(GetParam(), {&leaf_a, &leaf_b});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  constexpr int kThreads = 8;
  constexpr int kCalls = 200;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        std::string answer;
        const std::string text = Join(t, "/", i);
        if (Call(channel, kForward, text, &answer).ok() && answer == text + ";" + text + ";") ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kCalls);
}

TEST_P(RpcTest, DeadlineEndsACallAndTheHandlerLearnsOfIt) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  const absl::Status status = Call(channel, kHang, "", nullptr, milliseconds(50));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  gate_.Open();
  EXPECT_TRUE(Call(channel, kEcho, "next").ok());
}

TEST_P(RpcTest, DeadlineOfTheParentEndsItsChildren) {
  Client client;
  auto leaf = StartServer("SDB1-4");
  Channel channel_leaf(&client, leaf->addresses()[0]);
  auto mid = StartServer(GetParam(), {&channel_leaf});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  const absl::Status status = Call(channel, kForward, "hang", nullptr, milliseconds(100));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  gate_.Open();
  EXPECT_TRUE(Call(channel, kForward, "x").ok());
}

TEST_P(RpcTest, CancellationReachesTheChildren) {
  Client client;
  auto leaf = StartServer("SDB1-4");
  Channel channel_leaf(&client, leaf->addresses()[0]);
  auto mid = StartServer("SDB1-2", {&channel_leaf});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  Context ctx(kMaxTestWait);
  std::thread caller([&] {
    StringValue reply;
    const absl::Status status = channel.Call(ctx, kForward.path, Text("hang"), &reply);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  ctx.Cancel();
  caller.join();
  // The mid-tier's handler ends with its call to the leaf cancelled, although the leaf never answered.
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (cancelled_ == 0 && !deadline.Expired()) std::this_thread::yield();
  EXPECT_GE(cancelled_, 1);
  gate_.Open();
}

TEST_P(RpcTest, MetadataTravelsBothWaysAndToChildren) {
  Client client;
  auto leaf = StartServer("SIB1");
  Channel channel_leaf(&client, leaf->addresses()[0]);
  auto mid = StartServer(GetParam(), {&channel_leaf});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  Context ctx(kMaxTestWait);
  ctx.AddMetadata("x-key", "value");
  StringValue reply;
  ASSERT_TRUE(channel.Call(ctx, kForward.path, Text("meta"), &reply).ok());
  EXPECT_EQ(reply.value(), "value;");
}

TEST_P(RpcTest, BigMessagesPass) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  std::string answer;
  const std::string big(16u << 20, 'b');
  ASSERT_TRUE(Call(channel, kEcho, big, &answer).ok());
  EXPECT_EQ(answer, big);
  EXPECT_EQ(Call(channel, kEcho, std::string(33u << 20, 'b')).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Call(channel, kEcho, "small").ok());
}

TEST_P(RpcTest, ReconnectsAfterTheServerIsBack) {
  auto server = StartServer(GetParam());
  const std::string address = server->addresses()[0];
  Client client;
  Channel channel(&client, address, {.initial_backoff = milliseconds(1), .max_backoff = milliseconds(1)});
  ASSERT_TRUE(Call(channel, kEcho, "one").ok());
  ASSERT_TRUE(server->Drain(Deadline::In(seconds(5))).ok());
  server.reset();
  const absl::Status gone = Call(channel, kEcho, "two");
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable) << gone;
  EXPECT_THAT(std::string(Message(gone)), HasSubstr(address));
  server = StartServer(GetParam(), {}, address);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status back;
  do {
    back = Call(channel, kEcho, "three");
  } while (!back.ok() && !deadline.Expired());
  EXPECT_TRUE(back.ok()) << back;
}

TEST_P(RpcTest, DrainLetsRequestsFinish) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  std::string answer;
  std::thread caller([&] { EXPECT_TRUE(Call(channel, kHang, "done", &answer).ok()); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  std::thread opener([&] { gate_.Open(); });
  EXPECT_TRUE(server->Drain(Deadline::In(seconds(10))).ok());
  caller.join();
  opener.join();
  EXPECT_EQ(answer, "done");
}

TEST_P(RpcTest, DrainIsBoundedByItsDeadline) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  std::thread caller([&] { EXPECT_EQ(Call(channel, kHang, "").code(), absl::StatusCode::kUnavailable); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  const absl::Status drained = server->Drain(Deadline::In(milliseconds(50)));
  EXPECT_EQ(drained.code(), absl::StatusCode::kAborted) << drained;  // the handler ignores its cancellation
  caller.join();
  gate_.Open();
}

TEST_P(RpcTest, ServesUnixSockets) {
  const std::string path = Join("unix:", testing::TempDir(), "/curtail_rpc_test.", getpid());
  auto server = StartServer(GetParam(), {}, path);
  Client client;
  Channel channel(&client, path);
  EXPECT_TRUE(Call(channel, kEcho, "x").ok());
  server.reset();
  EXPECT_NE(access(path.c_str() + 5, F_OK), 0);
}

TEST_P(RpcTest, EventDrivenCallsShareTheChannel) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  struct Count final : Completion {
    void Done(absl::Status&& status, std::string&& reply) override {
      StringValue value;
      ok += status.ok() && value.ParseFromString(reply) && value.value() == "event";
      ++all;
    }
    int ok = 0;
    int all = 0;
  } count;
  constexpr int kCalls = 1000;
  const std::string request = Text("event").SerializeAsString();
  for (int i = 0; i < kCalls; ++i) {
    channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, request, &count);
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (count.all < kCalls && !deadline.Expired()) client.Poll(deadline);
  EXPECT_EQ(count.ok, kCalls);
}

TEST_P(RpcTest, EventDrivenDeadlinesExpire) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  struct Last final : Completion {
    void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
    absl::Status status;
    bool done = false;
  } last;
  channel.Start(kHang.path, Deadline::In(milliseconds(20)), {}, Text("").SerializeAsString(), &last);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!last.done && !deadline.Expired()) client.Poll(deadline);
  EXPECT_EQ(last.status.code(), absl::StatusCode::kDeadlineExceeded) << last.status;
  gate_.Open();
}

// A reply that is ready must not wait for a slow request that was received together with it.
TEST_P(RpcTest, ASlowHandlerHoldsNoRepliesBack) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  ASSERT_TRUE(Call(channel, kEcho, "warm").ok());
  struct Flag final : Completion {
    void Done(absl::Status&& s, std::string&&) override { ok = s.ok(), done = true; }
    bool ok = false;
    bool done = false;
  } quick, slow;
  channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, Text("x").SerializeAsString(), &quick);
  channel.Start(kHang.path, Deadline::In(kMaxTestWait), {}, Text("y").SerializeAsString(), &slow);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!quick.done && !deadline.Expired()) client.Poll(deadline);
  EXPECT_TRUE(quick.ok);
  EXPECT_FALSE(slow.done);  // the gate is still shut
  gate_.Open();
  while (!slow.done && !deadline.Expired()) client.Poll(deadline);
  EXPECT_TRUE(slow.ok);
}

// Property: a drain at any moment under load ends every call, with an answer or with an error, and frees what
// it used.
TEST_P(RpcTest, DrainUnderLoadLosesNoCallStress) {
  for (int round = 0; round < 10; ++round) {
    auto server = StartServer(GetParam());
    Client client;
    Channel channel(&client, server->addresses()[0]);
    struct Count final : Completion {
      void Done(absl::Status&&, std::string&&) override { ++done; }
      int done = 0;
    } count;
    constexpr int kCalls = 300;
    for (int i = 0; i < kCalls; ++i) {
      channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, Text("x").SerializeAsString(), &count);
    }
    client.Poll(Deadline::In(milliseconds(0)));
    std::thread drainer([&] { server->Drain(Deadline::In(Nanos(round * 100'000))).IgnoreError(); });
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (count.done < kCalls && !deadline.Expired()) client.Poll(deadline);
    drainer.join();
    ASSERT_EQ(count.done, kCalls);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RpcTest,
                         testing::Values("SIB1", "SIB4", "SIP1", "SIP3", "SDB1-1", "SDB1-8", "SDB2-4",
                                         "SDP1-4"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

class SwitchTest : public RpcBase, public testing::Test {};

// Property: under load, random switches lose, fail and double no request.
TEST_F(SwitchTest, RandomSwitchesHarmNoRequestStress) {
  static constexpr const char* kConfigs[] = {"SIB1",   "SIB4",    "SIP1",   "SIP3",
                                             "SDB1-1", "SDB1-16", "SDB2-8", "SDP1-4"};
  const uint64_t seed = static_cast<uint64_t>(Now().time_since_epoch().count());
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Rng rng(seed);
  Client client;
  auto leaf = StartServer("SIB1");
  Channel leaf_channel(&client, leaf->addresses()[0]);
  auto mid = StartServer("SIB1", {&leaf_channel, &leaf_channel});
  Client front;
  Channel channel(&front, mid->addresses()[0]);
  struct Answer final : Completion {
    void Done(absl::Status&& s, std::string&& reply) override {
      StringValue value;
      good = s.ok() && value.ParseFromString(reply) && value.value() == expected;
      status = std::move(s);
      ++times;
    }
    std::string expected;
    absl::Status status;
    int times = 0;
    bool good = false;
  };
  constexpr int kCalls = 4000;
  constexpr int kInFlight = 16;
  std::vector<Answer> answers(kCalls);
  int switches = 0;
  int begun = 0;
  int done = 0;
  TimePoint next_switch = Now();
  const Deadline deadline = Deadline::In(kMaxTestWait * 3);
  while (done < kCalls && !deadline.Expired()) {
    while (begun < kCalls && begun - done < kInFlight) {
      answers[begun].expected = Join(begun, ";", begun, ";");
      channel.Start(kForward.path, Deadline::In(kMaxTestWait), {}, Text(Join(begun)).SerializeAsString(),
                    &answers[begun]);
      ++begun;
    }
    done += static_cast<int>(front.Poll(Deadline::At(next_switch)));
    if (Now() < next_switch) continue;
    ASSERT_TRUE(mid->SwitchTo(*Config::Parse(kConfigs[rng.Below(std::size(kConfigs))])).ok());
    next_switch = Now() + milliseconds(1) + Nanos(rng.Below(4'000'000));
    ++switches;
  }
  ASSERT_EQ(done, kCalls);
  for (const Answer& answer : answers) {
    ASSERT_TRUE(answer.good) << answer.status;
    ASSERT_EQ(answer.times, 1);
  }
  EXPECT_GT(switches, 1);
}

TEST_F(SwitchTest, OverTheAdminInterface) {
  ServerOptions options;
  options.config = *Config::Parse("SIB1");
  options.admin = "127.0.0.1:0";
  auto server = Server::Start(options, {});
  ASSERT_TRUE(server.ok()) << server.status();
  Client client;
  Channel admin(&client, (*server)->admin_address());
  std::string answer;
  ASSERT_TRUE(Call(admin, {"/curtail.admin.v1.Admin/Switch"}, "SDP1-4", &answer).ok());
  EXPECT_EQ(answer, "SIB1");
  EXPECT_EQ((*server)->config().ToString(), "SDP1-4");
  EXPECT_EQ(Call(admin, {"/curtail.admin.v1.Admin/Switch"}, "XYZ").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Call(admin, {"/curtail.admin.v1.Admin/Switch"}, "SDB1-999").code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(Call(admin, {"/curtail.admin.v1.Admin/GetConfig"}, "", &answer).ok());
  EXPECT_EQ(answer, "SDP1-4");
  // The public port does not have it.
  Channel other(&client, (*server)->addresses()[0]);
  EXPECT_EQ(Call(other, {"/curtail.admin.v1.Admin/Switch"}, "SIB1").code(), absl::StatusCode::kUnimplemented);
}

TEST(Channel, RefusesWhatIsNoAddress) {
  Client client;
  for (const char* target :
       {"", "nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", ":80", "unix:", "::1:80"}) {
    Channel channel(&client, target);
    Context ctx(seconds(1));
    StringValue reply;
    EXPECT_EQ(channel.Call(ctx, "/a.B/C", Text(""), &reply).code(), absl::StatusCode::kInvalidArgument)
        << target;
  }
}

TEST(Channel, BacksOffAfterAFailedAttempt) {
  Client client;
  Channel channel(&client, "127.0.0.1:1", {.initial_backoff = seconds(30)});
  StringValue reply;
  Context first(seconds(5));
  EXPECT_EQ(channel.Call(first, "/a.B/C", Text(""), &reply).code(), absl::StatusCode::kUnavailable);
  Context second(seconds(5));
  const absl::Status status = channel.Call(second, "/a.B/C", Text(""), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("next attempt in"));
}

TEST(Channel, AFailedCallThatIsBegunAgainDoesNotHoldThePoller) {
  Client client;
  Channel channel(&client, "unix:/nonexistent/socket");
  struct Again final : Completion {
    void Done(absl::Status&& status, std::string&&) override {
      ++failures;
      last = std::move(status);
      if (failures < 1'000'000) channel->Start("/a.B/C", Deadline::In(seconds(1)), {}, "", this);
    }
    Channel* channel;
    int failures = 0;
    absl::Status last;
  } again;
  again.channel = &channel;
  channel.Start("/a.B/C", Deadline::In(seconds(1)), {}, "", &again);
  client.Poll(Deadline::In(milliseconds(1)));
  EXPECT_EQ(again.failures, 1);
  EXPECT_EQ(again.last.code(), absl::StatusCode::kUnavailable);
  again.failures = 1'000'000;  // lets the one in flight be the last
  client.Poll(Deadline::In(milliseconds(1)));
}

TEST(Channel, GivesUpConnectingAfterItsTimeout) {
  // A socket that listens with a full backlog answers no further SYN: attempts hang.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::vector<int> fillers;
  for (int i = 0; i < 8; ++i) {
    fillers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    connect(fillers.back(), reinterpret_cast<sockaddr*>(&address), size);
  }
  Client client;
  Channel channel(&client, Join("127.0.0.1:", ntohs(address.sin_port)),
                  {.connect_timeout = milliseconds(50)});
  Context ctx(kMaxTestWait);
  StringValue reply;
  const absl::Status status = channel.Call(ctx, "/a.B/C", Text(""), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("timed out"));
  for (const int fd : fillers) close(fd);
  close(listener);
}

TEST(Server, ReportsAPortInUse) {
  ServerOptions options;
  options.config = *Config::Parse("SIB1");
  auto first = Server::Start(options, {});
  ASSERT_TRUE(first.ok());
  options.listen = (*first)->addresses();
  const auto second = Server::Start(options, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(Message(second.status())), HasSubstr("in use"));
}

TEST(Server, DrainsASilentConnectionAtOnce) {
  ServerOptions options;
  options.config = *Config::Parse("SIB1");
  auto server = Server::Start(options, {});
  ASSERT_TRUE(server.ok());
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string& text = (*server)->addresses()[0];
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(text.substr(text.rfind(':') + 1))));
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(silent, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE((*server)->Drain(Deadline::In(kMaxTestWait)).ok());
  close(silent);
}

TEST(Server, RefusesModelsItDoesNotHave) {
  ServerOptions options;
  options.config = *Config::Parse("FIB1");
  EXPECT_EQ(Server::Start(options, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace curtail
