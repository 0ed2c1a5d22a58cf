// SPDX-License-Identifier: Apache-2.0
//
// Admission by credits over real connections: clients that know credits hold calls back, others are refused.
#include <gmock/gmock.h>

#include <deque>
#include <thread>

#include "curtail/rpc/client/connection/credit_queue.h"
#include "curtail/rpc/mid_tier_testing.h"

namespace curtail {
namespace {

using internal::kCreditsKey;
using internal::kDemandKey;
using testing::HasSubstr;

constexpr uint32_t kFirst = CreditAccount::kFirst;

uint64_t TimesRefused(Server& server, std::string_view reason) {
  for (const RefusalCount& refusal : server.Sample().refusals) {
    if (refusal.reason == reason) return refusal.times;
  }
  return 0;
}

// Event-driven calls of one client. They are in flight together.
class CreditCaller {
 public:
  CreditCaller(const std::string& target, bool credits)
      : channel_(&client_, target, ChannelOptions{.credits = credits}) {}
  ~CreditCaller() { AwaitAll(); }

  void Start(std::string_view path, size_t calls, const std::string& text = "x") {
    for (size_t i = 0; i < calls; ++i) {
      Answer& answer = answers_.emplace_back();
      answer.id =
          channel_.Start(path, Deadline::In(kMaxTestWait), metadata, Text(text).SerializeAsString(), &answer);
    }
  }
  // Cuts all calls short that have not ended.
  void CancelAll() {
    for (Answer& answer : answers_) {
      if (!answer.done) channel_.Cancel(answer.id);
    }
  }
  // Moves bytes until `condition` holds; false: it does not within the longest wait.
  bool PollUntil(const std::function<bool()>& condition) {
    for (const Deadline end = Deadline::In(kMaxTestWait); !condition() && !end.Expired();)
      client_.Poll(Deadline::In(milliseconds(1)));
    return condition();
  }
  bool AwaitAll() {
    return PollUntil([&] { return ended() == answers_.size(); });
  }
  size_t ended() const {
    return Count([](const Answer& a) { return a.done; });
  }
  size_t With(absl::StatusCode code) const {
    return Count([code](const Answer& a) { return a.done && a.status.code() == code; });
  }
  // The first that ended so.
  const ReplyMetadata* MetadataOf(absl::StatusCode code) const {
    for (const Answer& a : answers_) {
      if (a.done && a.status.code() == code) return &a.metadata;
    }
    return nullptr;
  }
  std::string MessageOf(absl::StatusCode code) const {
    for (const Answer& a : answers_) {
      if (a.done && a.status.code() == code) return std::string(Message(a.status));
    }
    return "";
  }

  // The message that the last call was answered with.
  std::string LastReply() const {
    StringValue reply;
    EXPECT_TRUE(reply.ParseFromString(answers_.back().reply));
    return reply.value();
  }
  Metadata metadata;  // of all calls

 private:
  struct Answer final : Completion {
    void OnMetadata(ReplyMetadata&& m) override { metadata = std::move(m); }
    void Done(absl::Status&& s, std::string&& r) override {
      status = std::move(s);
      reply = std::move(r);
      done = true;
    }
    Channel::CallId id{};
    bool done = false;
    absl::Status status;
    std::string reply;
    ReplyMetadata metadata;
  };
  template <class Test>
  size_t Count(Test test) const {
    return static_cast<size_t>(std::count_if(answers_.begin(), answers_.end(), test));
  }

  Client client_;
  Channel channel_;
  std::deque<Answer> answers_;
};

class CreditsTest : public RpcBase, public testing::Test {
 protected:
  // Its clients have left: all credits are back.
  void TearDown() override {
    gate_.Open();
    for (const auto& server : servers_) {
      for (const Deadline end = Deadline::In(kMaxTestWait);
           server->Sample().connections > 0 && !end.Expired();)
        BetweenLooks();
      EXPECT_EQ(server->Sample().connections, 0u);
      ExpectNothingInUse(server.get());
    }
  }

  // Its handlers of kHang wait until the gate opens. Nothing waits too long, and the pool stays as it is.
  Server* Serve(bool credits = true, FenceMode fence = FenceMode::kOff) {
    ServerOptions options;
    options.config = *Config::Parse("SDB1-64");
    options.admission = {.mode = credits ? AdmissionMode::kCredits : AdmissionMode::kOff,
                         .target = 10 * kMaxTestWait,
                         .interval = 10 * kMaxTestWait};
    options.fence.mode = fence;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>(), &cancelled_));
    servers_.push_back(*Server::Start(std::move(options), std::move(services)));
    return servers_.back().get();
  }
  static const std::string& At(Server& server) { return server.addresses()[0]; }

  std::vector<std::unique_ptr<Server>> servers_;
};

TEST_F(CreditsTest, AClientThatKnowsThemHoldsItsCallsBack) {
  Server* const server = Serve();
  CreditCaller caller(At(*server), true);
  caller.Start(kHang.path, 20);
  EXPECT_TRUE(caller.PollUntil([&] { return gate_.arrived() == static_cast<int>(kFirst); }));
  for (int i = 0; i < 20; ++i) caller.PollUntil([&, n = 0]() mutable { return ++n > 2; });
  EXPECT_EQ(server->Sample().open_calls, kFirst) << "the others wait at their client";
  gate_.Open();
  EXPECT_TRUE(caller.AwaitAll());
  EXPECT_EQ(caller.With(absl::StatusCode::kOk), 20u);
  EXPECT_TRUE(caller.MetadataOf(absl::StatusCode::kOk)->trailing.Find(kCreditsKey));
  EXPECT_TRUE(server->Sample().refusals.empty());
}

TEST_F(CreditsTest, AForeignClientSeesOrdinaryGrpc) {
  Server* const server = Serve();
  const uint32_t floor = server->Sample().credits->total;
  CreditCaller caller(At(*server), false);
  caller.Start(kHang.path, floor + 7);
  EXPECT_TRUE(caller.PollUntil([&] { return caller.ended() == 7; }));
  EXPECT_EQ(caller.With(absl::StatusCode::kResourceExhausted), 7u);
  EXPECT_THAT(caller.MessageOf(absl::StatusCode::kResourceExhausted), HasSubstr("no credit"));
  const ReplyMetadata* const refused = caller.MetadataOf(absl::StatusCode::kResourceExhausted);
  ASSERT_NE(refused, nullptr);
  EXPECT_TRUE(refused->trailing.Find("grpc-retry-pushback-ms"));
  EXPECT_FALSE(refused->trailing.Find(kCreditsKey));
  EXPECT_EQ(TimesRefused(*server, "no credit"), 7u);
  gate_.Open();
  EXPECT_TRUE(caller.AwaitAll());
  EXPECT_EQ(caller.With(absl::StatusCode::kOk), floor);
  EXPECT_TRUE(caller.MetadataOf(absl::StatusCode::kOk) == nullptr ||
              !caller.MetadataOf(absl::StatusCode::kOk)->trailing.Find(kCreditsKey));
}

TEST_F(CreditsTest, EachPathClassCountsWhatHadNone) {
  Server* const server = Serve(/*credits=*/true, FenceMode::kStrict);
  CreditCaller caller(At(*server), false);
  caller.Start(kHang.path, server->Sample().credits->total + 3);
  EXPECT_TRUE(caller.PollUntil([&] { return caller.ended() == 3; }));
  const ServerStats stats = server->Sample();
  for (const FenceClassStats& of : stats.fences->classes) {
    EXPECT_EQ(of.no_credit, of.name == "unknown" ? 3u : 0u) << of.name;
  }
  gate_.Open();
  EXPECT_TRUE(caller.AwaitAll());
}

TEST_F(CreditsTest, ClientsOfBothKindsAreServedBesideEachOther) {
  Server* const server = Serve();
  gate_.Open();
  const auto run = [&](bool credits, size_t* ok, size_t* refused) {
    CreditCaller caller(At(*server), credits);
    for (int i = 0; i < 10; ++i) {
      caller.Start(kEcho.path, credits ? 20 : 1);
      EXPECT_TRUE(caller.AwaitAll());
    }
    *ok = caller.With(absl::StatusCode::kOk);
    *refused = caller.With(absl::StatusCode::kResourceExhausted);
  };
  size_t ok[3], refused[3];
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i) threads.emplace_back([&, i] { run(i < 2, &ok[i], &refused[i]); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(ok[0] + ok[1], 380u);
  EXPECT_EQ(ok[0] + ok[1] + refused[0] + refused[1], 400u);
  EXPECT_EQ(ok[2] + refused[2], 10u);
  EXPECT_EQ(TimesRefused(*server, "no credit"), refused[2]) << "clients that know credits keep to them";
}

// Short answers pass long ones, which tell of older credits then (B6).
TEST_F(CreditsTest, AnswersThatPassEachOtherHaveNoRequestRefused) {
  Server* const server = Serve();
  const std::string lengths[] = {"x", std::string(200'000, 'x'), std::string(20'000, 'x')};
  CreditCaller caller(At(*server), true);
  for (int i = 0; i < 20; ++i) {
    for (const std::string& text : lengths) caller.Start(kEcho.path, 10, text);
    EXPECT_TRUE(caller.AwaitAll());
  }
  EXPECT_GE(caller.With(absl::StatusCode::kOk), 500u);
  EXPECT_EQ(TimesRefused(*server, "no credit"), 0u);
}

TEST_F(CreditsTest, ACallWithoutCreditIsRefusedInTimeForItsCaller) {
  Server* const server = Serve();
  CreditCaller caller(At(*server), true);
  caller.Start(kHang.path, kFirst + 3);
  EXPECT_TRUE(caller.PollUntil([&] { return caller.ended() == 3; }));
  EXPECT_EQ(caller.With(absl::StatusCode::kResourceExhausted), 3u);
  EXPECT_THAT(caller.MessageOf(absl::StatusCode::kResourceExhausted), HasSubstr("no credit in time"));
  gate_.Open();
  EXPECT_TRUE(caller.AwaitAll());
  EXPECT_EQ(caller.With(absl::StatusCode::kOk), kFirst);
}

// Its server hears of the time that the wait has left.
TEST_F(CreditsTest, AWaitForACreditTakesItsPartOfTheDeadline) {
  Server* const server = Serve();
  CreditCaller caller(At(*server), true);
  caller.Start(kHang.path, kFirst);
  EXPECT_TRUE(caller.PollUntil([&] { return gate_.arrived() == static_cast<int>(kFirst); }));
  caller.Start(kEcho.path, 1, "left");
  const TimePoint deadline = Now() + kMaxTestWait;  // or sooner
  EXPECT_TRUE(caller.PollUntil([&] { return Now() > deadline - kMaxTestWait + milliseconds(20); }));
  const TimePoint opened = Now();
  gate_.Open();
  ASSERT_TRUE(caller.AwaitAll());
  ASSERT_EQ(caller.With(absl::StatusCode::kOk), kFirst + 1);
  constexpr Nanos kRounding = milliseconds(10);  // of grpc-timeout, which has four digits
  EXPECT_LE(Nanos(std::stoll(caller.LastReply())), deadline - opened + kRounding);
}

// The client's queue counts its open calls, and the server's account those of each connection.
TEST_F(CreditsTest, CallsThatAreCutShortGiveTheirCreditsBack) {
  constexpr size_t kCut = 8;
  for (const bool credits : {true, false}) {
    SCOPED_TRACE(credits ? "a client that knows them" : "a foreign client");
    Server* const server = Serve();
    CreditCaller caller(At(*server), credits);
    const size_t together = credits ? kFirst : std::min<size_t>(server->Sample().credits->total, kCut);
    const int arrived = gate_.arrived();
    size_t cut = 0;
    while (cut < kCut) {
      caller.Start(kHang.path, together);
      cut += together;
      ASSERT_TRUE(caller.PollUntil([&] { return gate_.arrived() == arrived + static_cast<int>(cut); }));
      caller.CancelAll();
      ASSERT_TRUE(caller.AwaitAll());
    }
    EXPECT_EQ(caller.With(absl::StatusCode::kCancelled), cut);
    caller.Start(kEcho.path, together);
    ASSERT_TRUE(caller.AwaitAll());
    EXPECT_EQ(caller.With(absl::StatusCode::kOk), together);
    EXPECT_EQ(TimesRefused(*server, "no credit"), 0u);
  }
}

TEST_F(CreditsTest, TooManyCallsThatWaitAreRefusedAtOnce) {
  Server* const server = Serve();
  CreditCaller caller(At(*server), true);
  caller.Start(kHang.path, kFirst + internal::CreditQueue::kMostWaiting + 2);
  EXPECT_TRUE(caller.PollUntil([&] { return caller.ended() >= 2; }));
  EXPECT_THAT(caller.MessageOf(absl::StatusCode::kResourceExhausted), HasSubstr("too many calls wait"));
  gate_.Open();
  EXPECT_TRUE(caller.AwaitAll());
}

TEST_F(CreditsTest, CallsThatWaitEndWithTheirConnection) {
  Server* const server = Serve();
  CreditCaller caller(At(*server), true);
  caller.Start(kHang.path, kFirst + 3);
  EXPECT_TRUE(gate_.AwaitArrivals(0));
  EXPECT_TRUE(caller.PollUntil([&] { return gate_.arrived() == static_cast<int>(kFirst); }));
  std::thread drains([&] { (void)server->Drain(Deadline::In(milliseconds(1))); });
  EXPECT_TRUE(caller.PollUntil([&] { return caller.ended() >= 3; }));
  gate_.Open();
  drains.join();
  EXPECT_TRUE(caller.AwaitAll());
  EXPECT_GE(caller.With(absl::StatusCode::kUnavailable), 3u);
}

TEST_F(CreditsTest, AServerWithoutThemGetsCallsAsTheyCome) {
  Server* const server = Serve(/*credits=*/false);
  CreditCaller caller(At(*server), true);
  caller.Start(kEcho.path, 1);
  EXPECT_TRUE(caller.AwaitAll());
  caller.Start(kHang.path, 20);
  EXPECT_TRUE(caller.PollUntil([&] { return gate_.arrived() == 20; }));
  gate_.Open();
  EXPECT_TRUE(caller.AwaitAll());
  EXPECT_EQ(caller.With(absl::StatusCode::kOk), 21u);
  EXPECT_FALSE(server->Sample().credits);
}

TEST_F(CreditsTest, AClaimThatCannotBeReadCountsAsNone) {
  Server* const server = Serve();
  for (const char* claim : {"x", "-1", "99999999999999999999"}) {
    CreditCaller caller(At(*server), false);
    caller.metadata.Add(kDemandKey, claim);
    caller.Start(kEcho.path, 1);
    EXPECT_TRUE(caller.AwaitAll());
    const ReplyMetadata* const metadata = caller.MetadataOf(absl::StatusCode::kOk);
    ASSERT_NE(metadata, nullptr);
    const auto credits = metadata->trailing.Find(kCreditsKey);
    ASSERT_TRUE(credits);
    EXPECT_GE(*ParseCredits(*credits), 1u);
  }
}

TEST_F(CreditsTest, OptionsAreChecked) {
  ServerOptions options;
  options.admission.target = Nanos(0);
  EXPECT_EQ(Server::Start(std::move(options), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

// The threading models of a mid-tier whose leaf gives credits and stands still.
class CreditsModelTest : public MidTier {
 protected:
  CreditsModelTest() {
    ServerOptions options;
    options.config = *Config::Parse("SDB1-8");
    options.admission = {.mode = AdmissionMode::kCredits, .target = 10 * kMaxTestWait};
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>(), nullptr));
    slow_ = *Server::Start(std::move(options), std::move(services));
    to_slow_ = std::make_unique<Channel>(&client_, slow_->addresses()[0], ChannelOptions{.credits = true});
    all_.assign(kFirst + 2, to_slow_.get());
  }
  ~CreditsModelTest() override { gate_.Open(), mid_.reset(); }
  void TearDown() override {
    MidTier::TearDown();
    ExpectNothingInUse(slow_.get());
  }

  std::unique_ptr<Server> slow_;
  std::unique_ptr<Channel> to_slow_;
  std::vector<Channel*> all_;
};
INSTANTIATE_TEST_SUITE_P(Models, CreditsModelTest, testing::Values("SIB1", "SDB1-2", "FIB1", "ADB1-2-2"),
                         ModelName);

TEST_P(CreditsModelTest, CallsWithoutCreditEndBeforeTheirDeadline) {
  ServeCoroutine([this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    ctx.ShortenDeadline(Deadline::In(seconds(2)));
    out->set_value(Codes(co_await broadcast(ctx, std::span<Channel* const>(all_), kHang, in)));
    co_return absl::OkStatus();
  });
  std::string codes;
  // The handler's time is over when it has these.
  EXPECT_EQ(Run("x", &codes).code(), absl::StatusCode::kOk);
  std::string expected;
  for (uint32_t i = 0; i < kFirst; ++i) expected += "DEADLINE_EXCEEDED;";
  EXPECT_EQ(codes, expected + "RESOURCE_EXHAUSTED;RESOURCE_EXHAUSTED;");
  EXPECT_EQ(TimesRefused(*mid_, "call not made: no credit in time"), 2u);
}

}  // namespace
}  // namespace curtail
