// SPDX-License-Identifier: Apache-2.0
//
// Search for posts and users, as clients see it.
#include <gmock/gmock.h>

#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

class SearchTest : public testing::TestWithParam<bool> {
 protected:
  std::vector<uint64_t> Search(const Session& by, const std::string& text, bool newest) {
    std::vector<uint64_t> ids;
    const absl::Status status = app_.Search(by, text, newest, &ids);
    EXPECT_TRUE(status.ok()) << status;
    return ids;
  }
  std::vector<std::string> Users(const Session& by, const std::string& prefix) {
    std::vector<std::string> names;
    const absl::Status status = app_.SearchUsers(by, prefix, &names);
    EXPECT_TRUE(status.ok()) << status;
    return names;
  }
  SocialDeployment app_{GetParam() ? "ADB1-2-2" : "FIB1", /*monolith=*/true};
  const Session ann_ = app_.Register("ann"), bob_ = app_.Register("bob");
};

INSTANTIATE_TEST_SUITE_P(Models, SearchTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "ADB" : "FIB"); });

TEST_P(SearchTest, FindsPostsOfAllPartsByTimeAndByFit) {
  std::vector<uint64_t> posts;
  for (int i = 0; i < 20; ++i)
    posts.insert(posts.begin(), app_.Compose(ann_, Join("apples and number ", i)).id());
  const uint64_t best = app_.Compose(bob_, "apples, apples!").id();
  app_.AwaitIndex();
  EXPECT_EQ(Search(ann_, "NUMBER apples", true), posts);
  EXPECT_THAT(Search(ann_, "number apples", false), UnorderedElementsAreArray(posts));
  EXPECT_EQ(Search(Session(), "apples", false).front(), best);
  EXPECT_THAT(Search(ann_, "number 7", true), ElementsAre(posts[12]));
  EXPECT_THAT(Search(ann_, "pears", true), IsEmpty());
  std::vector<uint64_t> ids;
  EXPECT_TRUE(absl::IsInvalidArgument(app_.Search(ann_, "", true, &ids)));
  EXPECT_TRUE(absl::IsInvalidArgument(app_.Search(ann_, std::string(300, 'a'), true, &ids)));

  ASSERT_TRUE(app_.Delete(ann_, posts[0]).ok());
  posts.erase(posts.begin());
  EXPECT_EQ(Search(ann_, "number", true), posts);
}

TEST_P(SearchTest, ShowsNothingOfThoseWhoBlock) {
  const uint64_t post = app_.Compose(ann_, "apples").id();
  app_.AwaitIndex();
  EXPECT_THAT(Search(bob_, "apples", false), ElementsAre(post));
  ASSERT_TRUE(app_.Block(bob_, "ann").ok());
  EXPECT_THAT(Search(bob_, "apples", false), IsEmpty());
  EXPECT_THAT(Users(bob_, "a"), IsEmpty());
  EXPECT_THAT(Users(ann_, "b"), IsEmpty());
  ASSERT_TRUE(app_.Unblock(bob_, "ann").ok());
  EXPECT_THAT(Search(bob_, "apples", true), ElementsAre(post));
  EXPECT_THAT(Users(bob_, "a"), ElementsAre("ann"));
}

TEST_P(SearchTest, FindsUsersByTheBeginningOfTheirNames) {
  for (const char* name : {"anna", "ann_2", "ann2", "anz", "ao", "an"}) app_.Register(name);
  EXPECT_THAT(Users(Session(), "ann"), ElementsAre("ann", "ann2", "ann_2", "anna"));
  EXPECT_THAT(Users(ann_, "anz"), ElementsAre("anz"));
  EXPECT_THAT(Users(ann_, "c"), IsEmpty());
  std::vector<std::string> names;
  EXPECT_TRUE(absl::IsInvalidArgument(app_.SearchUsers(ann_, "", &names)));
  EXPECT_TRUE(absl::IsInvalidArgument(app_.SearchUsers(ann_, "%", &names)));
}

// Nothing that was acknowledged stays out of the index, whatever dies.
TEST(Search, AKilledIndexGetsWhatItMissed) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann");
  std::vector<uint64_t> posts, found;
  const auto compose = [&] { posts.insert(posts.begin(), app.Compose(ann, "apples").id()); };
  compose();
  app.AwaitIndex();
  app.Kill("search-index");
  for (int i = 0; i < 10; ++i) compose();
  app.Kill("search");
  app.Start("search-index");
  app.Start("search");
  compose();
  app.AwaitIndex();
  ASSERT_TRUE(app.Search(ann, "apples", true, &found).ok());
  EXPECT_EQ(found, posts);
}

}  // namespace
}  // namespace curtail::social
