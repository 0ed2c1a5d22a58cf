// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/application.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "curtail/base/strings.h"

namespace curtail::tool {
namespace {

// The users of the social network are made once it runs; on a fresh machine there are none before.
TEST(Application, RequestsOfDataThatIsPreparedAreMadeLater) {
  ApplicationOptions options;
  options.data = Join(testing::TempDir(), "application_test.", getpid(), "/none");
  const auto application = MakeApplication("social", options);
  ASSERT_TRUE(application.ok()) << application.status();
  EXPECT_TRUE(absl::IsNotFound((*application)->requests().status())) << (*application)->requests().status();
}

TEST(Application, AWrongOptionIsWrongBeforeAnythingStarts) {
  ApplicationOptions options;
  options.data = Join(testing::TempDir(), "application_test.", getpid(), "/none");
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

}  // namespace
}  // namespace curtail::tool
