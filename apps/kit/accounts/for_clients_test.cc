// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/for_clients.h"

#include <gmock/gmock.h>
#include <google/protobuf/wrappers.pb.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "apps/kit/accounts/access_testing.h"
#include "apps/kit/wall_clock.h"
#include "curtail/rpc/async_stream.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/stream.h"
#include "curtail/store/memcached.h"
#include "curtail/store/store_testing.h"

namespace curtail::apps {
namespace {

using google::protobuf::Int32Value;

constexpr char kWords[] = "unix:/run/secret.sock: SELECT 1";

constexpr int kMarked = 100;  // and the code
constexpr int kThrow = 99;

absl::Status Of(int code) {
  if (code == 0) return absl::OkStatus();
  const absl::Status error(static_cast<absl::StatusCode>(code % kMarked), kWords);
  return code > kMarked ? ForClients(error) : error;
}

// Ends each call with the code that its request asks for.
struct FailingService final : test::Failing::CoroutineService {
  Coroutine Fail(Context&, const Int32Value& code, Int32Value* reply) override {
    if (code.value() == kThrow) throw std::runtime_error(kWords);
    reply->set_value(code.value());
    co_return Of(code.value());
  }
  Coroutine FailLate(Context&, AsyncServerStream<Int32Value, Int32Value>& stream) override {
    Int32Value code;
    co_await stream.Read(&code);
    if (code.value() == kThrow) throw std::runtime_error(kWords);
    co_return Of(code.value());
  }
};

// A failure of the service gets general words. An error for the client keeps its own.
void ExpectWords(const absl::Status& status, int code, const std::string& where) {
  using Code = absl::StatusCode;
  const bool own =
      code < kMarked && (status.code() == Code::kUnknown || status.code() == Code::kInternal ||
                         status.code() == Code::kDataLoss || status.code() == Code::kUnavailable ||
                         status.code() == Code::kDeadlineExceeded);
  EXPECT_EQ(static_cast<int>(status.code()), code % kMarked) << where;
  EXPECT_EQ(status.message() == kWords, !status.ok() && !own) << where << ": " << status;
  EXPECT_EQ(status.message().empty(), status.ok()) << where << ": " << status;
}

void ExpectWordsOfCalls(Channel& channel, const std::string& where) {
  const test::Failing::Stub failing(&channel);
  std::vector<int> codes = {kMarked + static_cast<int>(absl::StatusCode::kUnavailable)};
  for (int code = 0; code <= 16; ++code) codes.push_back(code);
  for (const int code : codes) {
    Int32Value request, reply;
    request.set_value(code);
    Context ctx(kMaxTestWait);
    ExpectWords(failing.Fail(ctx, request, &reply), code, where);

    Context streams(kMaxTestWait);
    auto stream = failing.FailLate(streams);
    stream.Write(request);
    ExpectWords(stream.Finish(), code, where + ", a stream");
  }
  constexpr int kInternal = static_cast<int>(absl::StatusCode::kInternal);
  Int32Value request, reply;
  request.set_value(kThrow);
  Context ctx(kMaxTestWait);
  ExpectWords(failing.Fail(ctx, request, &reply), kInternal, where + ", an exception");
  Context streams(kMaxTestWait);
  auto stream = failing.FailLate(streams);
  stream.Write(request);
  ExpectWords(stream.Finish(), kInternal, where + ", an exception in a stream");
}

class ForClientsTest : public AccessTest {};
INSTANTIATE_TEST_SUITE_P(Models, ForClientsTest, testing::Values("SIB1", "SDB1-2", "FIB1", "AIB1-1"),
                         [](const auto& test) { return std::string(test.param).substr(0, 3); });

TEST_P(ForClientsTest, RewordsFailuresOfTheService) {
  Serve(std::make_unique<FailingService>());
  ExpectWordsOfCalls(*channel_, GetParam());
}

TEST_P(ForClientsTest, RewordsThemForCallersInTheProcess) {
  const MadeService service = Make(std::make_unique<FailingService>());
  ASSERT_TRUE(service.ok()) << service.status();
  InProcess here("here");
  ASSERT_TRUE(here.Serve(**service).ok());
  Channel channel(&client_, &here);
  ExpectWordsOfCalls(channel, "in process");
}

// Returns the caller of each call.
struct GuardedService final : test::Guarded::CoroutineService {
  static Coroutine Say(Context& ctx, UserId* reply) {
    reply->set_user(CallerOf(ctx));
    co_return absl::OkStatus();
  }
  Coroutine Anybody(Context& ctx, const TokenRequest&, UserId* reply) override { return Say(ctx, reply); }
  Coroutine Guest(Context& ctx, const TokenRequest&, UserId* reply) override { return Say(ctx, reply); }
  Coroutine OnlyUser(Context& ctx, const TokenRequest&, UserId* reply) override { return Say(ctx, reply); }
  Coroutine OnlyPresent(Context& ctx, const TokenRequest&, UserId* reply) override { return Say(ctx, reply); }
  Coroutine ByHeader(Context& ctx, const Nothing&, UserId* reply) override { return Say(ctx, reply); }
  Coroutine Watch(Context& ctx, const TokenRequest&, AsyncStreamWriter<UserId>& stream) override {
    UserId caller;
    caller.set_user(CallerOf(ctx));
    co_await stream.Write(caller);
    co_return absl::OkStatus();
  }
  Coroutine Chat(Context& ctx, AsyncServerStream<TokenRequest, UserId>& stream) override {
    UserId caller;
    caller.set_user(CallerOf(ctx));
    co_await stream.Write(caller);
    co_return absl::OkStatus();
  }
};

class CallersTest : public ForClientsTest {
 protected:
  // Returns the caller that the handler saw, or the code of the error.
  std::string Caller(std::string_view method, const std::string& field, const std::string& header = "") {
    TokenRequest request;
    request.set_token(field);
    Context ctx(kMaxTestWait);
    if (!header.empty()) ctx.AddMetadata("authorization", header);
    UserId caller;
    const absl::Status status =
        channel_->Call(ctx, Join("/", test::Guarded::kServiceName, "/", method), request, &caller);
    return status.ok() ? Join(caller.user()) : std::string(absl::StatusCodeToString(status.code()));
  }
};
INSTANTIATE_TEST_SUITE_P(Models, CallersTest, testing::Values("SDB1-2", "FIB1", "AIB1-1"),
                         [](const auto& test) { return std::string(test.param).substr(0, 3); });

TEST_P(CallersTest, AreThoseThatTheMethodsOptionLets) {
  Serve(std::make_unique<GuardedService>());
  const std::string token = Token(7), deleted = Token(8), ended = Token(7, 1), refused = "UNAUTHENTICATED";
  const auto callers = [&](std::string_view method) {
    return std::vector<std::string>{Caller(method, token), Caller(method, deleted), Caller(method, ended),
                                    Caller(method, "forged"), Caller(method, "")};
  };
  using testing::ElementsAre;
  EXPECT_THAT(callers("Anybody"), ElementsAre("0", "0", "0", "0", "0"));
  EXPECT_THAT(callers("Guest"), ElementsAre("7", "8", refused, refused, "0"));
  EXPECT_THAT(callers("OnlyUser"), ElementsAre("7", "8", refused, refused, refused));
  EXPECT_THAT(callers("OnlyPresent"), ElementsAre("7", refused, refused, refused, refused));
}

TEST_P(CallersTest, MaySendTheTokenInTheHeader) {
  Serve(std::make_unique<GuardedService>());
  EXPECT_EQ(Caller("OnlyUser", "", "Bearer " + Token(7)), "7");
  EXPECT_EQ(Caller("OnlyUser", Token(8), "Bearer " + Token(7)), "8") << "the request's comes first";
  EXPECT_EQ(Caller("OnlyUser", "", Token(7)), "UNAUTHENTICATED");
  EXPECT_EQ(Caller("Guest", "", "Bearer forged"), "UNAUTHENTICATED");
  EXPECT_EQ(Caller("ByHeader", "", "Bearer " + Token(7)), "7");
  EXPECT_EQ(Caller("ByHeader", Token(7)), "UNAUTHENTICATED") << "Nothing has no token";
}

TEST_P(CallersTest, AreCheckedInTheCacheOfAllFrontEnds) {
  const MemcachedProcess memcached(dir_.File("m"));
  const StoreAddress address = *StoreAddress::Parse(memcached.address());
  Memcached client(address);
  LoadSessions(std::make_unique<Cache>(address));
  Serve(std::make_unique<GuardedService>());
  const auto checks = [&](const std::string& token, const std::string& caller) {
    const int before = user_service_.checks.load();
    EXPECT_EQ(Caller("OnlyUser", token), caller);
    return user_service_.checks.load() - before;
  };
  const auto write = [&](std::string_view key, int64_t ms) {
    bool stored = false;
    EXPECT_TRUE(client.Set(key, Join(ms), /*if_absent=*/false, Deadline::In(kMaxTestWait), &stored).ok());
    return ms;
  };
  EXPECT_EQ(checks(Token(7), "7"), 1);
  const std::string kept = memcached.Look("session.7.0.0").value_or("none");
  EXPECT_NEAR(std::stod(kept), static_cast<double>(NowMs()), 60'000);
  EXPECT_EQ(checks(Token(7, 1), "UNAUTHENTICATED"), 1);
  EXPECT_EQ(memcached.Look("session.7.0.1"), std::nullopt) << "it was ended";

  const int64_t asked_ms = write("session.9.0.0", NowMs());  // by another front end
  const int again = checks(Token(9), "9");
  EXPECT_TRUE(again == 0 || NowMs() - asked_ms >= 1000) << again;
  write("session.10.0.0", NowMs() - 1001);
  EXPECT_EQ(checks(Token(10), "10"), 1);
  write("session.11.0.0", NowMs() + 3'600'000);
  EXPECT_EQ(checks(Token(11), "11"), 1) << "its clock was ahead";
  write("session.12.0.0", NowMs());
  sessions_->Forget(12);
  EXPECT_EQ(checks(Token(12), "12"), 1) << "this front end may have ended it since";
}

TEST_P(CallersTest, CannotSayWhoTheyAre) {
  Serve(std::make_unique<GuardedService>());
  Context ctx(kMaxTestWait);
  ctx.AddMetadata("curtail.apps.caller", "7");
  UserId caller;
  ASSERT_TRUE(test::Guarded::Stub(channel_.get()).Guest(ctx, TokenRequest(), &caller).ok());
  EXPECT_EQ(caller.user(), 0u);
}

TEST_P(CallersTest, OfStreamsArePassed) {
  Serve(std::make_unique<GuardedService>());
  const test::Guarded::Stub guarded(channel_.get());
  for (const bool known : {true, false}) {
    TokenRequest request;
    if (known) request.set_token(Token(7));
    UserId caller;
    Context watches(kMaxTestWait);
    auto watch = guarded.Watch(watches, request);
    EXPECT_EQ(watch.Read(&caller), known);
    EXPECT_EQ(watch.Finish().code(), known ? absl::StatusCode::kOk : absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(caller.user(), known ? 7u : 0u);

    Context chats(kMaxTestWait);
    if (known) chats.AddMetadata("authorization", "Bearer " + Token(7));
    auto chat = guarded.Chat(chats);
    EXPECT_EQ(chat.Read(&caller), known);
    EXPECT_EQ(chat.Finish().code(), known ? absl::StatusCode::kOk : absl::StatusCode::kUnauthenticated);
  }
}

TEST_P(ForClientsTest, RefusesMethodsThatDoNotSayWhoMayCall) {
  const absl::Status status = Make(std::make_unique<test::Unsaid::CoroutineService>()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), testing::StartsWith("curtail.apps.test.Unsaid.Forgotten has no option"));
}

TEST_P(ForClientsTest, RefusesHandlersThatAreNoCoroutines) {
  const absl::Status status = Make(std::make_unique<test::Guarded::Service>()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), testing::HasSubstr("Guarded.Anybody cannot serve clients"));
}

}  // namespace
}  // namespace curtail::apps
