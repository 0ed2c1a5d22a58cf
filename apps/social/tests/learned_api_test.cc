// SPDX-License-Identifier: Apache-2.0
//
// Ads and suggestions, as clients see them before and after `social train`.
#include <gmock/gmock.h>

#include <algorithm>

#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::social {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class LearnedApiTest : public testing::TestWithParam<bool> {
 protected:
  absl::Status Suggest(const Session& by, std::vector<std::string>* names) {
    HomePage page;
    page.set_token(by.token());
    Context ctx(kMaxTestWait);
    People people;
    const absl::Status status = app_.Front().SuggestUsers(ctx, page, &people);
    names->clear();
    for (const Person& person : people.people()) names->push_back(person.name());
    return status;
  }
  absl::Status Create(const Session& by, const std::string& title, const std::string& topic, Ad* ad) {
    AdRequest request;
    request.set_token(by.token());
    request.mutable_ad()->set_title(title);
    request.mutable_ad()->set_url("http://example.org/");
    request.mutable_ad()->set_topic(topic);
    Context ctx(kMaxTestWait);
    return app_.Front().CreateAd(ctx, request, ad);
  }
  std::vector<std::string> Show(const Session& by, uint32_t limit, std::vector<uint64_t>* ids = nullptr) {
    HomePage page;
    page.set_token(by.token()), page.set_limit(limit);
    Context ctx(kMaxTestWait);
    AdList ads;
    const absl::Status status = app_.Front().ShowAds(ctx, page, &ads);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::string> titles;
    for (const Ad& ad : ads.ads()) {
      titles.push_back(ad.title());
      if (ids != nullptr) ids->push_back(ad.id());
    }
    return titles;
  }
  PostRequest RequestOf(const Session& by, uint64_t ad) {
    PostRequest request;
    request.set_token(by.token()), request.set_id(ad);
    return request;
  }
  absl::Status Click(const Session& by, uint64_t ad) {
    Context ctx(kMaxTestWait);
    Ad clicked;
    return app_.Front().ClickAd(ctx, RequestOf(by, ad), &clicked);
  }
  absl::Status Delete(const Session& by, uint64_t ad) {
    Context ctx(kMaxTestWait);
    Changed changed;
    return app_.Front().DeleteAd(ctx, RequestOf(by, ad), &changed);
  }

  SocialDeployment app_{GetParam() ? "ADB1-2-2" : "FIB1", /*monolith=*/true};
};

INSTANTIATE_TEST_SUITE_P(Models, LearnedApiTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "ADB" : "FIB"); });

TEST_P(LearnedApiTest, SuggestsWhomOthersOfTheCircleFollow) {
  constexpr size_t kUsers = 12;
  std::vector<Session> users;
  for (size_t u = 0; u < kUsers; ++u) users.push_back(app_.Register(Join("user_", u)));
  std::vector<std::string> names;
  EXPECT_TRUE(absl::IsFailedPrecondition(Suggest(users[0], &names)));  // nothing was learned
  // Everybody follows the others of its parity, but 0 and 1 only two of them.
  for (size_t from = 0; from < kUsers; ++from) {
    for (size_t to = from % 2; to < (from < 2 ? 8 : kUsers); to += 2) {
      if (from == to || to < 2) continue;
      ASSERT_TRUE(app_.Follow(users[from], Join("user_", to)).ok());
    }
  }
  app_.Train();
  ASSERT_TRUE(Suggest(users[0], &names).ok());
  for (const char* followed : {"user_0", "user_2", "user_4", "user_6"})
    EXPECT_THAT(names, Not(Contains(followed)));
  ASSERT_GE(names.size(), 2u);
  names.resize(2);
  std::ranges::sort(names);
  EXPECT_THAT(names, ElementsAre("user_10", "user_8"));
  ASSERT_TRUE(app_.Block(users[8], "user_0").ok());
  ASSERT_TRUE(Suggest(users[0], &names).ok());
  EXPECT_THAT(names, Not(Contains("user_8")));
  EXPECT_EQ(names.front(), "user_10");
}

TEST_P(LearnedApiTest, AdsLearnFromClicks) {
  const Session ann = app_.Register("ann"), bob = app_.Register("bob"), eve = app_.Register("eve");
  ASSERT_TRUE(app_.Follow(bob, "ann").ok());  // or there is nothing to learn of follows
  Ad pears, ships, more;
  ASSERT_TRUE(Create(ann, "Pears", "fruit", &pears).ok());
  ASSERT_TRUE(Create(ann, "Ships", "sea", &ships).ok());
  EXPECT_THAT(Show(bob, 1), ElementsAre("Ships"));  // the newest
  EXPECT_TRUE(absl::IsFailedPrecondition(Click(bob, pears.id())));
  for (int i = 0; i < 12; ++i) {
    Show(bob, 2), Show(eve, 2);
    ASSERT_TRUE(Click(bob, pears.id()).ok());
    ASSERT_TRUE(Click(eve, ships.id()).ok());
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Click(bob, pears.id())));  // as often as it was shown
  app_.Train();
  EXPECT_THAT(Show(bob, 1), ElementsAre("Pears"));
  EXPECT_THAT(Show(eve, 1), ElementsAre("Ships"));
  ASSERT_TRUE(Create(ann, "Plums", "fruit", &more).ok());
  EXPECT_EQ(Show(bob, 3).back(), "Ships");  // the topic counts

  EXPECT_TRUE(absl::IsPermissionDenied(Delete(bob, pears.id())));
  ASSERT_TRUE(Delete(ann, pears.id()).ok());
  EXPECT_TRUE(absl::IsNotFound(Delete(ann, pears.id())));
  EXPECT_THAT(Show(bob, 1), ElementsAre("Plums"));
  ASSERT_TRUE(app_.Block(bob, "ann").ok());
  EXPECT_THAT(Show(bob, 3), IsEmpty());
  EXPECT_TRUE(absl::IsInvalidArgument(Create(ann, "", "fruit", &more)));
  EXPECT_TRUE(absl::IsInvalidArgument(Create(ann, std::string(300, 'a'), "fruit", &more)));
}

}  // namespace
}  // namespace curtail::social
