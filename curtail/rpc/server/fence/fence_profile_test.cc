// SPDX-License-Identifier: Apache-2.0
//
// A fence begins with the limits of a profile, and with those of its options before them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "curtail/adapt/machine.h"
#include "curtail/adapt/profile.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;

// Its methods answer at once. What they declare is what fences go by.
class Pages final : public Service {
 public:
  std::string_view FullName() const override { return "test.Pages"; }
  std::vector<MethodHandler> Handlers() override {
    return {Method("Compose"), Method("Read"), Method("About")};
  }
  std::vector<DeclaredPath> Paths() const override {
    return {{"Compose", {"test.Users", "test.Posts"}}, {"Read", {"test.Posts"}}, {"About", {}}};
  }

 private:
  static MethodHandler Method(std::string name) {
    return {.name = std::move(name),
            .handler = internal::UnaryHandler<StringValue, StringValue>(
                [](Context&, const StringValue&, StringValue*) { return absl::OkStatus(); })};
  }
};

class FenceProfile : public testing::Test {
 protected:
  FenceProfile() {
    profile_.service = "test.Pages";
    profile_.machine = ThisMachineFingerprint();
    profile_.fences = {Of({"test.Posts", "test.Users"}, 4), Of({"test.Posts"}, 6), Of({"test.Gone"}, 2)};
    options_.config = *Config::Parse("SDB1-32");
    options_.fence.mode = FenceMode::kStrict;
    options_.profile = path_;
  }
  ~FenceProfile() override { unlink(path_.c_str()); }

  static ProfileFence Of(std::vector<std::string> services, uint32_t limit) {
    return {std::move(services), limit, 100, 64, true, *Config::Parse("SDB1-32")};
  }
  absl::StatusOr<std::unique_ptr<Server>> Start(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<Pages>());
    return Server::Start(options_, std::move(services));
  }
  // "test.Users+test.Posts 4, ...": the classes that have permits.
  std::string Limits() {
    const auto server = Start(ProfileJson(profile_).value());
    EXPECT_TRUE(server.ok()) << server.status();
    const ServerStats sample = (*server)->Sample();
    std::string text;
    for (const FenceClassStats& of : sample.fences->classes) {
      if (of.limit > 0) text += Join(text.empty() ? "" : ", ", of.name, " ", of.limit);
    }
    return text;
  }
  std::string Refusal(const std::string& text) {
    const auto server = Start(text);
    EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(server.status()), HasSubstr(path_));
    return std::string(Message(server.status()));
  }

  const std::string path_ = Join(testing::TempDir(), "fence-profile-", getpid());
  Profile profile_;
  ServerOptions options_;
};

TEST_F(FenceProfile, IsWhatClassesBeginWith) {
  for (const FenceMode mode : {FenceMode::kStrict, FenceMode::kOn, FenceMode::kDryRun}) {
    options_.fence.mode = mode;
    EXPECT_EQ(Limits(), "test.Users+test.Posts 4, test.Posts 6");
  }
  options_.fence = {.mode = FenceMode::kStrict, .limit = "sct"};
  EXPECT_EQ(Limits(), "test.Users+test.Posts 4, test.Posts 6") << "a limiter moves on from there";
}

TEST_F(FenceProfile, YieldsToTheLimitsOfTheOptions) {
  options_.fence.limits = {{{"test.Posts", "test.Users"}, 9}};
  EXPECT_EQ(Limits(), "test.Users+test.Posts 9, test.Posts 6");
  options_.profile.clear();
  EXPECT_EQ(Limits(), "test.Users+test.Posts 9, test.Posts 19") << "28 permits, of which the rest is its own";
}

TEST_F(FenceProfile, RefusesALimitOfAServiceThatNoMethodCalls) {
  options_.fence = {.mode = FenceMode::kStrict, .limits = {{{"test.Post"}, 4}}};
  const auto server = Start(ProfileJson(profile_).value());
  EXPECT_THAT(Message(server.status()),
              HasSubstr("--fence-limit: this service does not call test.Post; did you mean \"test.Posts\"?"));
}

TEST_F(FenceProfile, ServesAPolicyToo) {
  options_.policy = "mutune";
  EXPECT_EQ(Limits(), "test.Users+test.Posts 4, test.Posts 6");
  const auto server = Start(ProfileJson(profile_).value());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->Sample().policy->note, HasSubstr("has no profile")) << "limits are no configs";
}

TEST_F(FenceProfile, RefusesWhatIsOfNoUse) {
  const std::string good = ProfileJson(profile_).value();
  EXPECT_THAT(Refusal(good.substr(0, good.size() / 2)), HasSubstr("JSON"));
  std::string corrupt = good;
  corrupt.replace(corrupt.find("\"limit\":4"), 9, "\"limit\":0");
  EXPECT_THAT(Refusal(corrupt), HasSubstr("must be at least 1"));
  Profile other = profile_;
  other.service = "test.Other";
  EXPECT_THAT(Refusal(ProfileJson(other).value()), HasSubstr("not of \"test.Pages\""));
  other = profile_;
  ++other.machine.cpus;
  EXPECT_THAT(Refusal(ProfileJson(other).value()), HasSubstr("another machine"));
  other = profile_;
  other.fences.clear();
  other.loads = {10};
  other.cells = {{*Config::Parse("SIB1"), 10, 0, 1, 2, 1, 10, 0, false, {}}};
  Summarize(other);
  EXPECT_THAT(Refusal(ProfileJson(other).value()), HasSubstr("curtail train --fences"));
  options_.fence.mode = FenceMode::kOff;
  EXPECT_THAT(Refusal(good), HasSubstr("and no fence"));
}

}  // namespace
}  // namespace curtail
