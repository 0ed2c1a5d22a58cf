// SPDX-License-Identifier: Apache-2.0
//
// Exchanging a server's config while it serves.
#include <gtest/gtest.h>

#include "curtail/base/rng.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

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

}  // namespace
}  // namespace curtail
