// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/status_details.h"

#include <gtest/gtest.h>

#include <array>

#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/rpc_testing.h"
#include "google/protobuf/duration.pb.h"

namespace curtail {
namespace {

using google::protobuf::Duration;

TEST(StatusDetails, OneDetailOfATypeIsFoundByItsType) {
  absl::Status status = absl::AbortedError("text");
  EXPECT_FALSE(GetDetail<StringValue>(status));
  AddDetail(status, Text("first"));
  AddDetail(status, Text("second"));
  Duration pause;
  pause.set_seconds(7);
  AddDetail(status, pause);
  EXPECT_EQ(GetDetail<StringValue>(status).value_or(StringValue()).value(), "second");
  EXPECT_EQ(GetDetail<Duration>(status).value_or(Duration()).seconds(), 7);
  EXPECT_TRUE(status.GetPayload("type.googleapis.com/google.protobuf.Duration"));
}

TEST(StatusDetails, AbsentOnesAndThoseThatCannotBeParsedAreNone) {
  absl::Status status = absl::AbortedError("text");
  status.SetPayload("type.googleapis.com/google.protobuf.StringValue", absl::Cord("\xff"));
  EXPECT_FALSE(GetDetail<StringValue>(status));
  EXPECT_FALSE(GetDetail<Duration>(status));
  absl::Status ok;
  AddDetail(ok, Text("none"));
  EXPECT_TRUE(ok.ok());
  EXPECT_FALSE(GetDetail<StringValue>(ok));
}

constexpr Method<StringValue, StringValue> kRefuse{"/test.Refusing/Refuse"};

absl::Status Refusal(const std::string& why) {
  absl::Status status = absl::FailedPreconditionError("refused");
  AddDetail(status, Text(why));
  return status;
}

// Fails with the request as its detail, in a coroutine.
class RefusingService final : public Service {
 public:
  std::string_view FullName() const override { return "test.Refusing"; }
  std::vector<MethodHandler> Handlers() override {
    return {internal::CoroutineMethod<StringValue, StringValue>(
        "Refuse",
        [](Context&, const StringValue& in, StringValue*) -> Coroutine { co_return Refusal(in.value()); })};
  }
};

// Takes the status of an event-driven call.
struct Outcome final : Completion {
  void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
  absl::Status status;
  bool done = false;
};

class StatusDetailsTest : public testing::TestWithParam<const char*> {};

TEST_P(StatusDetailsTest, ReachTheCallerInEveryFormOfCall) {
  ServerOptions options;
  options.config = *Config::Parse(GetParam());
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<RefusingService>());
  auto server = Server::Start(std::move(options), std::move(services));
  ASSERT_TRUE(server.ok()) << server.status();
  Client client;
  Channel channel(&client, (*server)->addresses()[0]);
  Context ctx(kMaxTestWait);
  StringValue reply;
  EXPECT_EQ(channel.Call(ctx, kRefuse.path, Text("one"), &reply), Refusal("one"));
  const std::array<Channel*, 2> both = {&channel, &channel};
  for (const auto& answer : ctx.FanOut(both, kRefuse, std::vector{Text("two"), Text("two")})) {
    EXPECT_EQ(answer.status(), Refusal("two"));
  }
  Client events;
  Channel event_channel(&events, (*server)->addresses()[0]);
  Outcome outcome;
  event_channel.Start(kRefuse.path, Deadline::In(kMaxTestWait), {}, Text("three").SerializeAsString(),
                      &outcome);
  for (const Deadline end = Deadline::In(kMaxTestWait); !outcome.done && !end.Expired();) events.Poll(end);
  EXPECT_EQ(outcome.status, Refusal("three"));
}

INSTANTIATE_TEST_SUITE_P(Models, StatusDetailsTest, testing::Values("SIB1", "FIB1", "ADB1-2-2"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

}  // namespace
}  // namespace curtail
