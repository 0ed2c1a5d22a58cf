// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/testing/faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

constexpr int kActsInFault = 8, kWritesBetween = 4;

// One page of the log's index, which SQLite maps; and little more than nothing.
constexpr uint64_t kSharedBytes = 32 << 10, kRoomBytes = 8 << 10;

std::string NameOf(const std::string& service, int instance) {
  return instance < 0 ? service : Join(service, " ", instance);
}

void ExpectStarted(const absl::Status& started) { EXPECT_TRUE(started.ok()) << started; }

}  // namespace

Fault KillOf(deploy::AppUnderTest* app, const std::string& service, int instance) {
  return {.name = NameOf(service, instance) + " is killed",
          .strike = [=] { app->Kill(service, instance); },
          .mend = [=] { ExpectStarted(app->Restart(service, instance)); }};
}

Fault StallOf(deploy::AppUnderTest* app, const std::string& service, int instance) {
  return {.name = NameOf(service, instance) + " stands still",
          .strike = [=] { app->Stall(service, instance); },
          .mend = [=] { app->GoOn(service, instance); }};
}

Fault FullDiskOf(deploy::AppUnderTest* app, const std::string& service, bool refuses) {
  return {
      .name = service + " has no room",
      // The process before drains and leaves no log, so what is written makes the log longer.
      .strike = [=] { ExpectStarted(app->Restart(service, {.max_file_bytes = kSharedBytes + kRoomBytes})); },
      .mend =
          [=] {
            app->Kill(service);
            ExpectStarted(app->Restart(service));
          },
      .readable = true,
      .refuses = refuses};
}

Fault ClockStep(const SetClock* clock, int seconds) {
  return {.name = Join("the clock is ", seconds, " s ahead"),
          .strike = [=] { clock->SetAhead(seconds); },
          .mend = [=] { clock->SetAhead(0); },
          .readable = true};
}

// It ends at the first write that it cannot keep, before it answers. Started again, it does so again.
Fault FullDiskOf(RedisProcess* redis, const FullDisk* disk) {
  return {.name = "redis has no room",
          .strike =
              [=] {
                disk->Fill();
                redis->AwaitEnd();
                (void)redis->TryStart();
              },
          .mend =
              [=] {
                disk->Free();
                redis->Kill();
                redis->Start();
              },
          .refuses = true};
}

Fault FullDiskOfPostgresql(const FullDisk* disk) {
  return {.name = "postgresql has no room",
          .strike = [=] { disk->Fill(); },
          .mend = [=] { disk->Free(); },
          .readable = true,
          .refuses = true};
}

void FaultSchedule::Run(const FaultHooks& hooks) {
  std::ranges::shuffle(faults_, rng_);
  EXPECT_TRUE(actors_.AwaitWrites(kWritesBetween));
  for (const Fault& fault : faults_) {
    Endure(fault, hooks);
    if (testing::Test::HasFailure()) return;
  }
}

void FaultSchedule::Endure(const Fault& fault, const FaultHooks& hooks) {
  std::printf("%s\n", fault.name.c_str());
  const testing::ScopedTrace trace(__FILE__, __LINE__, fault.name);
  hooks.before();
  EXPECT_TRUE(actors_.Await(static_cast<int>(rng_.Below(kActsInFault))));
  const int failed = actors_.failed();
  fault.strike();
  EXPECT_TRUE(actors_.Await(kActsInFault));
  EXPECT_TRUE(!fault.refuses || actors_.AwaitFailedAfter(failed)) << "no write failed";
  if (fault.readable) hooks.during();
  fault.mend();
  EXPECT_TRUE(actors_.AwaitWrites(kWritesBetween)) << "no write was acknowledged since";
  hooks.after();
}

}  // namespace curtail::apps
