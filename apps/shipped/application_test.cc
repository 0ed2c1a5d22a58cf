// SPDX-License-Identifier: Apache-2.0
#include "apps/shipped/application.h"

#include <gtest/gtest.h>

#include "apps/shipped/shipped_applications.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/deploy/instance_command.h"

namespace curtail::apps {
namespace {

// The users of the social network are made once it runs; on a fresh machine there are none before.
TEST(Application, RequestsOfDataThatIsPreparedAreMadeLater) {
  const TempDir dir;
  ApplicationOptions options;
  options.data = dir.File("none");
  const auto application = MakeApplication("social", options);
  ASSERT_TRUE(application.ok()) << application.status();
  EXPECT_TRUE(absl::IsNotFound((*application)->requests().status())) << (*application)->requests().status();
}

TEST(Application, AWrongOptionIsWrongBeforeAnythingStarts) {
  const TempDir dir;
  ApplicationOptions options;
  options.data = dir.File("none");
  for (const char* option : {"mix", "senders"}) {
    options.own = {{option, "nonsense"}};
    const absl::Status status = MakeApplication("social", options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << option << ": " << status;
  }
  ApplicationOptions router;
  router.own = {{"queries", "nonsense"}};
  EXPECT_TRUE(absl::IsInvalidArgument(MakeApplication("router", router).status()));
}

TEST(Application, ThereIsNoOther) {
  const auto application = MakeApplication("hdsaerch", {});
  EXPECT_TRUE(absl::IsNotFound(application.status())) << application.status();
}

TEST(Application, ShippedTopologiesAreWhole) {
  for (const ShippedApplication& shipped : ShippedApplications()) {
    SCOPED_TRACE(shipped.name);
    auto parsed = deploy::Topology::Parse(shipped.topology, shipped.name);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    deploy::Topology& t = *parsed;
    EXPECT_EQ(t.application, shipped.name);
    EXPECT_TRUE(IsApplication(shipped.name));
    for (const bool scaled : {false, true}) {
      if (scaled) {
        ASSERT_TRUE(t.Scale().ok());
      }
      deploy::Topology started = t;
      ASSERT_TRUE(started.LeaveOutAbsent().ok());
      for (const deploy::ServiceSpec& s : started.services) {
        const auto argv = deploy::CommandOf(started, s, s.instances() - 1, {}, {});
        EXPECT_TRUE(argv.ok()) << argv.status();
      }
    }
    EXPECT_TRUE(deploy::PrepareCommand(t, "h:1").ok());
  }
}

}  // namespace
}  // namespace curtail::apps
