// SPDX-License-Identifier: Apache-2.0
//
// Tokens on their way from a client to a handler, and the log of requests.
#include "curtail/rpc/authentication.h"

#include <gmock/gmock.h>

#include <chrono>

#include "curtail/rpc/auth/jwt_testing.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/request_log.h"
#include "curtail/rpc/transport/transport_testing.h"

namespace curtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Plain = BearerCredentials::Transport;

const std::string kTokenSecret(40, 'k');

// Of `subject`, valid until `seconds` from now.
std::string TokenFor(const std::string& subject, int64_t seconds = 600) {
  const int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  return SignedBySecret(R"({"alg":"HS256"})", Join(R"({"sub":")", subject, R"(","exp":)", now + seconds, "}"),
                        kTokenSecret);
}

std::unique_ptr<JwtVerifier> VerifierOfTests() { return *JwtVerifier::Make({.secret = kTokenSecret}, ""); }

class AuthenticationTest : public MidTier {
 protected:
  JwtAuthentication authentication_{VerifierOfTests(), {"/test.Open/", "/test.Mid/Free"}};
};
INSTANTIATE_TEST_SUITE_P(Models, AuthenticationTest,
                         testing::Values("SIB1", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "ADB1-2-2"),
                         ModelName);

TEST_P(AuthenticationTest, HandlersSeeTheSubjectOfAValidToken) {
  interceptors_ = {&authentication_};
  ServeCoroutine([](Context& ctx, const StringValue&, StringValue* out) -> Coroutine {
    out->set_value(std::string(ctx.properties().Find("jwt.subject").value_or("none")));
    co_return absl::OkStatus();
  });
  const auto call = [&](std::vector<std::string> values) {
    Context ctx(kMaxTestWait);
    for (const std::string& value : values) ctx.AddMetadata("authorization", value);
    StringValue reply;
    const absl::Status status = channel_->Call(ctx, kRun.path, Text("x"), &reply);
    if (status.ok()) return reply.value();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
    return std::string(Message(status));
  };
  EXPECT_EQ(call({"Bearer " + TokenFor("alice")}), "alice");
  EXPECT_EQ(call({"bearer " + TokenFor("alice")}), "alice");
  EXPECT_THAT(call({}), HasSubstr("needs a token"));
  EXPECT_THAT(call({"Basic YWxpY2U6c2VjcmV0"}), AllOf(HasSubstr("not one bearer"), Not(HasSubstr("YWxp"))));
  EXPECT_THAT(call({"Bearer " + TokenFor("alice"), "Bearer x"}), HasSubstr("not one bearer"));
  EXPECT_EQ(call({"Bearer x.y.z"}), "the token is not valid");
  EXPECT_EQ(call({"Bearer " + TokenFor("alice", -600)}), "the token has expired");
  const auto limits = mid_->Sample().limits;
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].times, 5u);
}

TEST_P(AuthenticationTest, AClientSendsTheTokenOfTheMoment) {
  std::atomic<int> asked{0};
  BearerCredentials credentials(
      [&]() -> absl::StatusOr<std::string> {
        if (++asked == 2) return absl::UnavailableError("no token yet");
        return TokenFor(Join("user", asked.load()));
      },
      Plain::kPlainText);
  interceptors_ = {&authentication_};
  channel_options_.interceptors = {&credentials};
  ServeCoroutine([](Context& ctx, const StringValue&, StringValue* out) -> Coroutine {
    out->set_value(std::string(ctx.properties().Find("jwt.subject").value_or("none")));
    co_return absl::OkStatus();
  });
  std::string answer;
  EXPECT_TRUE(Run("x", &answer).ok());
  EXPECT_EQ(answer, "user1");
  EXPECT_EQ(Run("x").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Run("x", &answer).ok());
  EXPECT_EQ(answer, "user3");
}

class CredentialsTest : public testing::Test, protected TlsBase {
 protected:
  absl::Status CallOver(const std::string& address, ChannelOptions options) {
    options.interceptors = {&credentials_};
    Channel channel(&client_, address, std::move(options));
    return Call(channel, kEcho, "x");
  }
  BearerCredentials credentials_{"secret-token"};
};

TEST_F(CredentialsTest, TokensAreNotSentInPlainText) {
  const auto plain = StartServer("SIB1");
  const absl::Status refused = CallOver(plain->addresses()[0], {});
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(Message(refused)), AllOf(HasSubstr("plain text"), Not(HasSubstr("secret-token"))));
  const auto tls = StartTls({.certificate = &leaf_});
  EXPECT_TRUE(CallOver(tls->addresses()[0], {.tls = Trust(authority_)}).ok());
  const auto blind = ClientTls::Load({.insecure_skip_verify = true});
  ASSERT_TRUE(blind.ok());
  EXPECT_EQ(CallOver(tls->addresses()[0], {.tls = *blind}).code(), absl::StatusCode::kUnauthenticated);
  const std::string path = "unix:" + TestFile("socket");
  const auto local = StartServer("SIB1", {}, path);
  EXPECT_TRUE(CallOver(path, {}).ok());
}

class RequestLogTest : public AuthenticationTest {
 protected:
  // The lines of the log once there are n.
  std::vector<std::string> Lines(size_t n) { return log_.Await(n); }
  RequestLogOptions ToLog(double share = 1, double lines_per_s = 1e6) {
    return {.share = share, .lines_per_s = lines_per_s, .write = [this](std::string_view line) {
              log_.Add(std::string(line));
            }};
  }
  void ServeEcho() {
    ServeCoroutine([](Context&, const StringValue& in, StringValue* out) -> Coroutine {
      out->set_value(in.value());
      co_return in.value() == "fail" ? absl::NotFoundError("no \"thing\"\n\xc3\xa9") : absl::OkStatus();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Models, RequestLogTest, testing::Values("SIB1", "FDB1-2", "ADB1-2-2"), ModelName);

TEST_P(RequestLogTest, HasALineForEachCallAndNoSecret) {
  RequestLog log(ToLog());
  interceptors_ = {&log, &authentication_};
  ServeEcho();
  Context ctx(kMaxTestWait);
  ctx.AddMetadata("authorization", "Bearer " + TokenFor("alice"));
  ctx.AddMetadata("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  StringValue reply;
  EXPECT_TRUE(channel_->Call(ctx, kRun.path, Text("x"), &reply).ok());
  EXPECT_FALSE(channel_->Call(ctx, kRun.path, Text("fail"), &reply).ok());
  EXPECT_FALSE(Run("x").ok());
  const auto lines = Lines(3);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], AllOf(StartsWith("{\"time\":\"20"), HasSubstr("\"path\":\"/test.Mid/Run\""),
                              HasSubstr("\"peer\":\"127.0.0.1:"), HasSubstr("\"code\":\"OK\",\"took_us\":"),
                              HasSubstr("\"subject\":\"alice\""),
                              HasSubstr("\"trace\":\"4bf92f3577b34da6a3ce929d0e0e4736\"}\n")));
  EXPECT_THAT(lines[1], HasSubstr("\"code\":\"NOT_FOUND\""));
  EXPECT_THAT(lines[1], HasSubstr("\"message\":\"no \\\"thing\\\"\\u000a\\u00c3\\u00a9\""));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("UNAUTHENTICATED"), Not(HasSubstr("subject"))));
  for (const std::string& line : lines) EXPECT_THAT(line, Not(HasSubstr("eyJ")));
}

TEST_P(RequestLogTest, SamplesCallsThatEndWell) {
  RequestLog log(ToLog(0.25));
  interceptors_ = {&log};
  ServeEcho();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Run("x").ok());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Run("fail").ok());
  EXPECT_EQ(Lines(5).size(), 5u);
}

TEST_P(RequestLogTest, BoundsItsRate) {
  RequestLog log(ToLog(1, 0.001));
  interceptors_ = {&log};
  ServeEcho();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Run("x").ok());
  EXPECT_EQ(Lines(1).size(), 1u);
}

}  // namespace
}  // namespace curtail
