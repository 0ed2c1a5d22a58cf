// SPDX-License-Identifier: Apache-2.0
//
// Everything that is a file else in a PostgreSQL, which dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;

class SocialPostgresqlTest : public testing::Test {
 protected:
  // Until the server serves again.
  std::vector<uint64_t> AwaitHome(const Session& by) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    std::vector<uint64_t> ids;
    absl::Status status;
    do {
      status = app_.Home(by, &ids);
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
      BetweenLooks();
    } while (!status.ok() && !deadline.Expired());
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }

  TempDir dir_;
  PostgresqlProcess postgresql_{dir_.File("s"), PostgresqlWords(dir_.File("s"), dir_.File("data"))};
  SocialDeployment app_{"FDB1-2", /*monolith=*/false, {"--store", "postgresql=" + postgresql_.address()}};
};

TEST_F(SocialPostgresqlTest, AnAcknowledgedPostOutlivesPostgresql) {
  const Session ann = app_.Register("ann"), bob = app_.Register("bob");
  ASSERT_TRUE(app_.Follow(bob, "ann").ok());
  const uint64_t first = app_.Compose(ann, "before").id();
  app_.AwaitQueue();
  EXPECT_THAT(AwaitHome(bob), ElementsAre(first));
  app_.Kill("home-timeline");  // so that the next one waits in the queue
  const uint64_t second = app_.Compose(ann, "just before").id();
  postgresql_.Kill();
  ComposeRequest request;
  request.set_text("meanwhile");
  Post post;
  EXPECT_TRUE(absl::IsUnavailable(app_.Compose(ann, request, &post)));
  postgresql_.Start();
  app_.Start("home-timeline");
  app_.AwaitQueue();
  EXPECT_THAT(AwaitHome(bob), ElementsAre(second, first));
  const uint64_t third = app_.Compose(ann, "after @bob").id();
  ASSERT_TRUE(app_.Delete(ann, first).ok());
  app_.AwaitQueue();
  EXPECT_THAT(AwaitHome(bob), ElementsAre(third, second));
  EXPECT_FALSE(std::filesystem::exists(app_.DataFile("user.db")));
  app_.Train();
  EXPECT_TRUE(std::filesystem::exists(app_.DataFile("user.postgresql")));
}

TEST(SocialOwnServerTest, AServiceHasAServerAloneAndTheOthersTheirFiles) {
  TempDir dir;
  PostgresqlProcess server(dir.File("s"), PostgresqlWords(dir.File("s"), dir.File("data")));
  SocialDeployment app("FDB1-2", /*monolith=*/false, {"--store", "user-postgresql=" + server.address()});
  const Session ann = app.Register("ann");
  app.Compose(ann, "mine");
  EXPECT_TRUE(std::filesystem::exists(app.DataFile("user.postgresql")));
  EXPECT_FALSE(std::filesystem::exists(app.DataFile("user.db")));
  EXPECT_TRUE(std::filesystem::exists(app.DataFile("post-storage.db")));
}

}  // namespace
}  // namespace curtail::social
