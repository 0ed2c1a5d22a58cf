// SPDX-License-Identifier: Apache-2.0
//
// Property: work whose deadline has passed is not begun. That is looked at when a request has come, when its turn has
// come, and before each call of a handler. Each place has a counter.
#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "curtail/rpc/in_process.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/stream.h"
#include "curtail/rpc/transport/transport_testing.h"
#include "curtail/wire/session.h"

namespace curtail {
namespace {

constexpr std::string_view kBeforeItCame = "deadline passed before it came";
constexpr std::string_view kBeforeItBegan = "deadline passed before it began";
constexpr std::string_view kCallNotMade = "call not made: its deadline had passed";

uint64_t Refused(Server& server, std::string_view reason) {
  for (const RefusalCount& refusal : server.Sample().refusals) {
    if (refusal.reason == reason) return refusal.times;
  }
  return 0;
}

// The requests of one path class that a fence saw refused because they were late.
uint64_t LateOf(Server& server, std::string_view path_class) {
  const ServerStats stats = server.Sample();
  for (const FenceClassStats& of : stats.fences->classes) {
    if (of.name == path_class) return of.late;
  }
  return 0;
}

void WaitUntil(TimePoint when) {
  while (Now() <= when) BetweenLooks();
}

// A client that waits for its answers however late they are: it cancels no call.
class PatientClient final : wire::Events {
 public:
  explicit PatientClient(const std::string& address) : fd_(Dial(address)) {
    const timeval timeout{.tv_sec = std::chrono::duration_cast<seconds>(kMaxTestWait).count(), .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  }

  // Sends the head of a call.
  wire::StreamId Begin(std::string_view path, Nanos timeout) {
    const auto id = session_.StartCall({.path = std::string(path), .timeout = timeout}, this);
    Began(id);
    return id.value_or(0);
  }
  // Sends the rest of it.
  void End(wire::StreamId id) {
    session_.SendMessage(id, Text("x").SerializeAsString());
    session_.EndRequest(id);
    Flush();
  }
  // Sends a whole call.
  void Send(std::string_view path, Nanos timeout) {
    Began(session_.StartUnaryCall({.path = std::string(path), .timeout = timeout},
                                  Text("x").SerializeAsString(), this));
  }
  // The server has read all that was sent.
  void Settle() {
    const int before = pongs_;
    session_.SendPing(0);
    Flush();
    while (pongs_ == before && Read()) continue;
  }
  // The status of the last call, once all have ended.
  absl::StatusCode Await() {
    while (ended_ < begun_ && Read()) continue;
    return code_;
  }

 private:
  void Began(const absl::StatusOr<wire::StreamId>& id) {
    ASSERT_TRUE(id.ok()) << id.status();
    ++begun_;
    Flush();
  }
  void Flush() {
    std::string bytes;
    while (session_.Pull(&bytes)) continue;
    EXPECT_EQ(send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  bool Read() {
    char bytes[16384];
    const ssize_t n = recv(fd_.get(), bytes, sizeof bytes, 0);
    const bool read = n > 0 && session_.Receive(std::string(bytes, static_cast<size_t>(n))).ok();
    EXPECT_TRUE(read) << "the server closed, or says nothing";
    return read;
  }
  void OnMessage(wire::StreamId, void*, std::string&&) override {}
  void OnRequestEnd(wire::StreamId, void*) override {}
  void* OnRequest(wire::StreamId, wire::RequestHead&&) override { return nullptr; }
  void OnPong(uint64_t) override { ++pongs_; }
  void OnCallEnd(wire::StreamId, void*, absl::Status&& status, wire::Metadata&&) override {
    ++ended_;
    code_ = status.code();
  }
  TimePoint now() override { return Now(); }

  const internal::UniqueFd fd_;
  wire::Session session_{wire::Role::kClient, {}, this};
  int pongs_ = 0;
  size_t begun_ = 0;
  size_t ended_ = 0;
  absl::StatusCode code_ = absl::StatusCode::kUnknown;
};

class LateRequestTest : public RpcBase, public testing::TestWithParam<const char*> {
 protected:
  // One request comes after its deadline. The server may end such a call by itself some 50 ms later. Then the next one
  // shows it.
  void ComeLate(Server& server) {
    PatientClient client(server.addresses()[0]);
    const Deadline end = Deadline::In(kMaxTestWait);
    do {
      const wire::StreamId id = client.Begin(kHang.path, Nanos(1));
      client.Settle();
      client.End(id);
      EXPECT_EQ(client.Await(), absl::StatusCode::kDeadlineExceeded);
    } while (Refused(server, kBeforeItCame) == 0 && !end.Expired());
    EXPECT_EQ(Refused(server, kBeforeItCame), 1u);
    EXPECT_EQ(gate_.arrived(), 0) << "its handler ran";
  }
  // The deadline of one request passes while it is queued behind another.
  void QueueTooLong(Server& server) {
    Client other;
    Channel channel(&other, server.addresses()[0]);
    std::thread first([&] { EXPECT_TRUE(Call(channel, kHang, "").ok()); });
    EXPECT_TRUE(gate_.AwaitArrivals(1));

    PatientClient client(server.addresses()[0]);
    constexpr Nanos kTime = milliseconds(100);
    client.Send(kHang.path, kTime);
    for (const Deadline end = Deadline::In(kMaxTestWait);
         server.Sample().pools.queued == 0 && !end.Expired();)
      BetweenLooks();
    WaitUntil(Now() + kTime);
    gate_.Open();
    EXPECT_EQ(client.Await(), absl::StatusCode::kDeadlineExceeded);
    first.join();
    EXPECT_TRUE(Call(channel, kEcho, "x").ok());
    EXPECT_EQ(Refused(server, kBeforeItBegan), 1u);
    EXPECT_EQ(gate_.arrived(), 1) << "its handler ran";
  }
};
INSTANTIATE_TEST_SUITE_P(Models, LateRequestTest, testing::Values("SIB1", "SDB1-1", "FDB1-1"), ModelName);

TEST_P(LateRequestTest, IsRefusedWhenItComesAfterItsDeadline) { ComeLate(*StartServer(GetParam())); }

TEST_P(LateRequestTest, CountsForItsPathClass) {
  fence_mode_ = FenceMode::kStrict;
  auto server = StartServer(GetParam());
  ComeLate(*server);
  EXPECT_EQ(LateOf(*server, "unknown"), 1u);
  EXPECT_EQ(LateOf(*server, "local"), 0u);
}

// Where requests wait in the server, and not in the socket.
class QueuedRequestTest : public LateRequestTest {};
INSTANTIATE_TEST_SUITE_P(Models, QueuedRequestTest, testing::Values("SDB1-1", "FDB1-1"), ModelName);

TEST_P(QueuedRequestTest, NeverRunsOnceItsDeadlineHasPassed) { QueueTooLong(*StartServer(GetParam())); }

TEST_P(QueuedRequestTest, CountsForItsPathClass) {
  fence_mode_ = FenceMode::kStrict;
  auto server = StartServer(GetParam());
  QueueTooLong(*server);
  EXPECT_EQ(LateOf(*server, "unknown"), 1u);
  EXPECT_EQ(LateOf(*server, "local"), 0u);
}

// D2: the queue leaves it less time than its method's handlers take. Some 300 ms of 1200 are left of the second request, and
// handlers usually take 600.
TEST_P(QueuedRequestTest, NeverRunsIfTooLittleTimeIsLeft) {
  std::atomic<int> ran{0};
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<OneMethod>(internal::StraightLineMethod<StringValue, StringValue>(
      "Run", /*never_waits=*/false, [&](Context&, const StringValue& in, StringValue*) {
        ++ran;
        WaitUntil(Now() + milliseconds(std::stoi(in.value())));
        return absl::OkStatus();
      })));
  ServerOptions options;
  options.config = *Config::Parse(GetParam());
  auto server = Server::Start(std::move(options), std::move(services));
  ASSERT_TRUE(server.ok()) << server.status();
  Client client;
  Channel channel(&client, (*server)->addresses()[0]);
  EXPECT_TRUE(Call(channel, kRun, "600").ok());
  std::thread first([&] { EXPECT_TRUE(Call(channel, kRun, "900").ok()); });
  for (const Deadline end = Deadline::In(kMaxTestWait); ran < 2 && !end.Expired();) BetweenLooks();
  Context ctx(milliseconds(1200));
  StringValue reply;
  const absl::Status status = channel.Call(ctx, kRun.path, Text("0"), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  first.join();
  Context short_time(milliseconds(500));
  EXPECT_TRUE(channel.Call(short_time, kRun.path, Text("0"), &reply).ok()) << "it did not wait in a queue";
  EXPECT_EQ(Refused(**server, kBeforeItBegan), 1u);
  EXPECT_EQ(ran, 3);
}

// The time of a handler is up before it calls. Its service calls no leaf.
class LateCallTest : public MidTier {
 protected:
  static void Late(Context& ctx) { ctx.ShortenDeadline(Deadline::At(TimePoint())); }
  void ExpectNotMade(uint64_t calls) {
    const absl::Status status = Run("x");
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(Refused(*mid_, kCallNotMade), calls);
    EXPECT_EQ(leaf_->Sample().connections, 0u) << "a leaf was called";
  }
};
INSTANTIATE_TEST_SUITE_P(Models, LateCallTest, testing::Values("SIB1", "SDB1-2", "FIB1", "ADB1-2-2"),
                         ModelName);

TEST_P(LateCallTest, OfAStraightLineHandlerIsNotMade) {
  Serve(internal::StraightLineMethod<StringValue, StringValue>(
      "Run", /*never_waits=*/true, [this](Context& ctx, const StringValue& in, StringValue*) {
        Late(ctx);
        return ctx.Broadcast(std::span<Channel* const>(leaves_), kEcho, in)[0].status();
      }));
  ExpectNotMade(2);
}

TEST_P(LateCallTest, OfACoroutineIsNotMade) {
  ServeCoroutine([this](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
    Late(ctx);
    const Results results = co_await fan_out(ctx, leaves_, kEcho, ToBoth(in));
    co_return results[0].status();
  });
  ExpectNotMade(2);
}

TEST_P(LateCallTest, OfAStreamIsNotMade) {
  Serve(internal::StraightLineMethod<StringValue, StringValue>(
      "Run", /*never_waits=*/true, [this](Context& ctx, const StringValue&, StringValue*) {
        Late(ctx);
        return internal::OpenStream(ctx, leaf_channel_, kEcho.path)->Finish();
      }));
  ExpectNotMade(1);
}

TEST_P(LateCallTest, WithinTheProcessIsNotMade) {
  OneMethod service(internal::StraightLineMethod<StringValue, StringValue>(
      "Run", /*never_waits=*/true,
      [](Context&, const StringValue&, StringValue*) { return absl::OkStatus(); }));
  InProcess here("here");
  ASSERT_TRUE(here.Serve(service).ok());
  Channel channel(&client_, &here);
  Serve(internal::StraightLineMethod<StringValue, StringValue>(
      "Run", /*never_waits=*/true, [&](Context& ctx, const StringValue& in, StringValue* out) {
        Late(ctx);
        return channel.Call(ctx, kRun.path, in, out);
      }));
  ExpectNotMade(1);
}

// A leaf that says how much time it has, in nanoseconds. Of less than ten seconds grpc-timeout counts milliseconds.
TEST_P(LateCallTest, AndOneThatIsMadeHasTheTimeThatIsLeft) {
  ServerOptions options;
  options.config = *Config::Parse("SDB1-1");
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<OneMethod>(internal::StraightLineMethod<StringValue, StringValue>(
      "Run", /*never_waits=*/true, [](Context& ctx, const StringValue&, StringValue* out) {
        out->set_value(std::to_string((ctx.deadline().when() - Now()).count()));
        return absl::OkStatus();
      })));
  const auto leaf = *Server::Start(std::move(options), std::move(services));
  Channel channel(&client_, leaf->addresses()[0]);
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    const TimePoint begin = Now();
    WaitUntil(begin + milliseconds(2));
    const Nanos left = ctx.deadline().when() - Now();
    Channel* const to_leaf[] = {&channel};
    const Results replies = co_await broadcast(ctx, to_leaf, kRun, in);
    if (!replies[0].ok()) co_return replies[0].status();
    const Nanos given(std::stoll(replies[0]->value()));
    out->set_value(given > Nanos(0) && given <= left + milliseconds(1) ? "less" : replies[0]->value());
    co_return absl::OkStatus();
  });
  std::string answer;
  const absl::Status status = Run("x", &answer, seconds(9));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "less");
  EXPECT_EQ(Refused(*mid_, kCallNotMade), 0u);
}

}  // namespace
}  // namespace curtail
