// SPDX-License-Identifier: Apache-2.0
//
// Random users append to timelines of the toy application and read them, while its service dies, stands still and has
// its clock set.
//
// Property: what was acknowledged is in the timeline once. What failed may be there, never twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/facts.h"
#include "apps/kit/testing/faults.h"
#include "apps/kit/testing/history.h"
#include "apps/kit/testing/start_app.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/channel.h"
#include "toy.curtail.h"

namespace curtail::toy {
namespace {

constexpr size_t kUsers = 3, kActors = 3;
// Short, so that a service that stands still does not hold up the test.
constexpr Nanos kPatience = std::chrono::milliseconds(300);

bool IsOfFault(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

class ToyFaults : public testing::Test {
 protected:
  apps::Actors::Did Append(size_t user) {
    const uint64_t id = history_.Step();
    Post post;
    post.set_id(std::to_string(id)), post.set_user(Join("user_", user));
    const apps::Operation told = history_.Do([&] {
      Context ctx(kPatience);
      Ids all;
      return Timeline::Stub(channel_.get()).Append(ctx, post, &all);
    });
    posts_.Add(id, user, told);
    return told.ok() ? apps::Actors::Did::kWrote : apps::Actors::Did::kFailedToWrite;
  }

  absl::Status Get(size_t user, Ids* ids) const {
    Context ctx(kPatience);
    Person person;
    person.set_user(Join("user_", user));
    return Timeline::Stub(channel_.get()).Get(ctx, person, ids);
  }
  // Judged once no append is in progress.
  void Read(size_t user) {
    Ids listed;
    const apps::Operation told = history_.Do([&] { return Get(user, &listed); });
    if (!told.ok()) return;
    history_.Later([=, this] {
      std::vector<uint64_t> ids;
      for (const std::string& id : listed.ids()) ids.push_back(std::stoull(id));
      std::ranges::sort(ids, std::greater<>());
      const auto its = [&](uint64_t id, size_t author) {
        return author == user && posts_.Exists(id, told.span);
      };
      apps::ExpectList(ids, posts_.all(), its, Join("timeline of user_", user), told.span);
    });
  }
  void BeginActs() {
    for (size_t t = 0; t < kActors; ++t) {
      actors_.Begin(seed_ + t, [this](Rng& rng) {
        const size_t user = rng.Below(kUsers);
        if (rng.Below(2) == 0) return actors_.Note(Append(user));
        Read(user);
        actors_.Note(apps::Actors::Did::kOther);
      });
    }
  }

  const uint64_t seed_ = TestSeed();
  apps::History history_{IsOfFault};
  apps::Items<size_t> posts_;  // their authors
  const apps::SetClock clock_;
  const std::unique_ptr<deploy::AppUnderTest> app_ = apps::StartApp(
      TOY_TOPOLOGY,
      {.options = {
           .only = {"timeline-cache", "timeline"}, .launch = {.wrapper = clock_.Words()}, .admin = true}});
  Client client_;
  const std::unique_ptr<Channel> channel_ = std::make_unique<Channel>(&client_, app_->AddressOf("timeline"),
                                                                      ChannelOptions{.wait_for_ready = true});
  apps::Actors actors_;  // ends first
};

TEST_F(ToyFaults, WhatWasAcknowledgedIsKeptStress) {
  apps::FaultSchedule schedule(seed_, &actors_);
  schedule.Add(apps::KillOf(app_.get(), "timeline"));
  schedule.Add(apps::StallOf(app_.get(), "timeline"));
  schedule.Add(apps::ClockStep(&clock_, 3600));
  schedule.Add(apps::ClockStep(&clock_, -3600));
  BeginActs();
  schedule.Run();
  actors_.Rest();
  const absl::Status quiet = app_->AwaitQuiet(Deadline::In(kMaxTestWait));
  EXPECT_TRUE(quiet.ok()) << quiet;
  posts_.Settle(history_.Step());
  for (size_t user = 0; user < kUsers; ++user) Read(user);
  history_.Judge();
}

}  // namespace
}  // namespace curtail::toy
