// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/app_under_test.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/topology_file.h"
#include "curtail/rpc/channel.h"
#include "toy.curtail.h"

namespace curtail::deploy {
namespace {

class AppUnderTestTest : public testing::Test {
 protected:
  void Start(AppOptions options) {
    absl::StatusOr<Topology> topology = ReadTopology(TOY_TOPOLOGY);
    ASSERT_TRUE(topology.ok()) << topology.status();
    auto app = AppUnderTest::Start(*std::move(topology), std::move(options));
    ASSERT_TRUE(app.ok()) << app.status();
    app_ = *std::move(app);
  }
  // Asks `text`, which asks `count`.
  absl::Status Process(Nanos patience = kMaxTestWait) {
    Channel channel(&client_, app_->AddressOf("text"));
    Context ctx(patience);
    toy::Words request, reply;
    request.set_text("hello world");
    return toy::Text::Stub(&channel).Process(ctx, request, &reply);
  }
  // A connection that failed is not tried again at once.
  void ExpectServes() {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    absl::Status status;
    do status = Process();
    while (absl::IsUnavailable(status) && !deadline.Expired());
    EXPECT_TRUE(status.ok()) << status;
  }
  void ExpectEndsWell() {
    const absl::Status ended = app_->Stop();
    EXPECT_TRUE(ended.ok()) << ended;
  }

  Client client_;
  std::unique_ptr<AppUnderTest> app_;
};

TEST_F(AppUnderTestTest, StartsAllThatTheTopologyNames) {
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {"--drain", "1"}}));
  Channel channel(&client_, app_->AddressOf("front"));
  Context ctx(kMaxTestWait);
  toy::Post request, reply;
  request.set_user("ann");
  request.mutable_words()->set_text("hello world");
  const absl::Status composed = toy::Front::Stub(&channel).Compose(ctx, request, &reply);
  EXPECT_TRUE(composed.ok()) << composed;
  ExpectEndsWell();
}

TEST_F(AppUnderTestTest, StartsSomeAndTheOthersLater) {
  ASSERT_NO_FATAL_FAILURE(Start({.only = {"text"}}));
  EXPECT_TRUE(absl::IsUnavailable(Process()));
  ASSERT_TRUE(app_->Restart("count").ok());
  ExpectServes();
  ExpectEndsWell();
}

TEST_F(AppUnderTestTest, AKilledServiceComesBackAtItsAddress) {
  ASSERT_NO_FATAL_FAILURE(Start({.only = {"count", "text"}}));
  app_->Kill("count");
  EXPECT_TRUE(absl::IsUnavailable(Process()));
  ASSERT_TRUE(app_->Restart("count").ok());
  ExpectServes();
  app_->Kill("text");
  ExpectEndsWell();
}

TEST_F(AppUnderTestTest, IsQuietOnceAStalledServiceHasAnswered) {
  ASSERT_NO_FATAL_FAILURE(Start({.only = {"count", "text"}, .admin = true}));
  ASSERT_TRUE(app_->AwaitQuiet(Deadline::In(kMaxTestWait)).ok());
  app_->Stall("count");
  std::thread caller([this] { ExpectServes(); });
  // It looks once at least.
  while (!absl::IsDeadlineExceeded(app_->AwaitQuiet(Deadline::In(std::chrono::milliseconds(50))))) {
    BetweenLooks();
  }
  app_->GoOn("count");
  const absl::Status quiet = app_->AwaitQuiet(Deadline::In(kMaxTestWait));
  EXPECT_TRUE(quiet.ok()) << quiet;
  caller.join();
}

TEST_F(AppUnderTestTest, RestartsUnderAnotherProgramWithAFullDisk) {
  ASSERT_NO_FATAL_FAILURE(Start({.only = {"count", "text"}}));
  const std::string file = app_->AddressOf("count").substr(5) + ".zeros";
  const std::string script = Join("head -c 100 /dev/zero > ", file, "; exec \"$0\" \"$@\"");
  const absl::Status status = app_->Restart("count", {.max_file_bytes = 10, .wrapper = {"sh", "-c", script}});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(std::filesystem::file_size(file), 10u);
  ExpectServes();
  ExpectEndsWell();
}

TEST_F(AppUnderTestTest, TellsWhoEndsBadly) {
  ASSERT_NO_FATAL_FAILURE(Start({.only = {"count"}}));
  const absl::Status failed = app_->Restart("count", {.wrapper = {"false"}});
  EXPECT_TRUE(absl::IsAborted(failed)) << failed;
  const absl::Status ended = app_->Stop();
  EXPECT_EQ(Message(ended), "count ended with code 1");
}

}  // namespace
}  // namespace curtail::deploy
