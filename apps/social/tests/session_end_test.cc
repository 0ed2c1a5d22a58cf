// SPDX-License-Identifier: Apache-2.0
//
// Sessions that end before their tokens expire.
#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/account_testing.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kFresh[] = "a fresh password";

class SessionTest : public testing::TestWithParam<const char*> {
 protected:
  // Names the store, which it starts.
  std::vector<std::string> Flags() {
    if (std::string_view(GetParam()) != "postgresql") return {};
    postgresql_.emplace(dir_.File("s"), PostgresqlWords(dir_.File("s"), dir_.File("data")));
    return {"--store", "postgresql=" + postgresql_->address()};
  }
  // Each kind of call that takes a token.
  void ExpectEnded(const Session& session) {
    const auto refused = [&](const auto& method, const auto& request) {
      const absl::Status status = Call(app_, method, request).status();
      EXPECT_TRUE(absl::IsUnauthenticated(status)) << method.path << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("session was ended")) << method.path;
    };
    refused(Social::kReadHomeTimeline, FirstPage(session));
    refused(Social::kReadUserTimeline, FirstPage(session, "bob"));
    refused(Social::kReadFavorites, FirstPage(session, "bob"));
    refused(Social::kReadConversation, FirstPage(session, "bob"));
    refused(Social::kGetPost, IdRequestOf(session, post_.id()));
    refused(Social::kAddFavorite, IdRequestOf(session, post_.id()));
    refused(Social::kRemoveFavorite, IdRequestOf(session, post_.id()));
    refused(Social::kSendMessage, MessageOf(session, "bob"));
    refused(Social::kCreateAd, AdOf(session));
    refused(Social::kUploadMedia, UploadOf(session));
    Post post;
    EXPECT_TRUE(absl::IsUnauthenticated(app_.Compose(session, DraftOf("late", 0, 0), &post)));
    EXPECT_TRUE(absl::IsUnauthenticated(app_.Unfollow(session, "bob")));
  }
  void ExpectValid(const Session& session) { MustCall(app_, Social::kReadHomeTimeline, FirstPage(session)); }
  absl::Status Change(const std::string& name, const std::string& password, const std::string& fresh) {
    return Call(app_, Social::kChangePassword, PasswordChangeOf(name, password, fresh)).status();
  }

  const TempDir dir_;
  std::optional<PostgresqlProcess> postgresql_;
  SocialDeployment app_{std::string_view(GetParam()) == "async" ? "ADB1-2-2" : "FDB1-2", /*monolith=*/true,
                        Flags()};
  const Session ann_ = app_.Register("ann"), bob_ = app_.Register("bob");
  const Post post_ = app_.Compose(bob_, "bob's");
};

INSTANTIATE_TEST_SUITE_P(Stores, SessionTest, testing::Values("files", "async", "postgresql"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(SessionTest, ALogoutEndsItsSessionOnly) {
  const Session other = MustCall(app_, Social::kLogin, CredentialsOf("ann"));
  ExpectValid(ann_);  // which the front end remembers
  EXPECT_TRUE(MustCall(app_, Social::kLogout, TokenOf(ann_)).changed());
  ExpectEnded(ann_);
  EXPECT_FALSE(MustCall(app_, Social::kLogout, TokenOf(ann_)).changed());
  ExpectValid(other);
  ExpectValid(bob_);
  ExpectValid(MustCall(app_, Social::kLogin, CredentialsOf("ann")));
  const absl::Status status = Call(app_, Social::kLogout, TokenOf(Session())).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
}

TEST_P(SessionTest, AChangeOfPasswordEndsTheOtherSessions) {
  const Session other = MustCall(app_, Social::kLogin, CredentialsOf("ann"));
  ExpectValid(ann_);
  const Session fresh =
      MustCall(app_, Social::kChangePassword, PasswordChangeOf("ann", kTestPassword, kFresh));
  EXPECT_EQ(fresh.user(), ann_.user());
  EXPECT_EQ(fresh.name(), "ann");
  ExpectEnded(ann_);
  ExpectEnded(other);
  ExpectValid(fresh);
  ExpectValid(bob_);
  EXPECT_TRUE(absl::IsUnauthenticated(Call(app_, Social::kLogin, CredentialsOf("ann")).status()));
  ExpectValid(MustCall(app_, Social::kLogin, CredentialsOf("ann", kFresh)));
  EXPECT_TRUE(absl::IsUnauthenticated(Change("ann", kTestPassword, kFresh)));  // a repetition
  EXPECT_TRUE(MustCall(app_, Social::kDeleteUser, CredentialsOf("ann", kFresh)).changed());
}

TEST_P(SessionTest, AChangeWithoutTheOldPasswordChangesNothing) {
  EXPECT_TRUE(absl::IsUnauthenticated(Change("ann", "another password", kFresh)));
  EXPECT_TRUE(absl::IsUnauthenticated(Change("nobody", kTestPassword, kFresh)));
  EXPECT_TRUE(absl::IsInvalidArgument(Change("ann", kTestPassword, "short")));
  EXPECT_TRUE(absl::IsInvalidArgument(Change("ann", "short", kFresh)));
  ExpectValid(ann_);
  MustCall(app_, Social::kLogin, CredentialsOf("ann"));
}

TEST_P(SessionTest, AUserSeesItsOwnProfileBlocksAndAds) {
  const Session eve = app_.Register("eve"), dan = app_.Register("dan");
  EXPECT_TRUE(app_.Follow(dan, "ann").ok());
  for (const char* name : {"bob", "eve"}) EXPECT_TRUE(app_.Block(ann_, name).ok());
  EXPECT_TRUE(app_.Block(bob_, "eve").ok());
  const Ad first = MustCall(app_, Social::kCreateAd, AdOf(ann_)),
           second = MustCall(app_, Social::kCreateAd, AdOf(ann_));
  MustCall(app_, Social::kCreateAd, AdOf(bob_));

  const Profile profile = MustCall(app_, Social::kGetProfile, TokenOf(ann_));
  EXPECT_EQ(profile.user().id(), ann_.user());
  EXPECT_EQ(profile.user().name(), "ann");
  EXPECT_EQ(profile.statistics().followers(), 1u);
  HomePage page = FirstPage(ann_);
  page.set_limit(1);
  People blocked = MustCall(app_, Social::kListBlocked, page);
  EXPECT_THAT(NamesIn(blocked), ElementsAre("bob"));
  page.set_before(blocked.next());
  blocked = MustCall(app_, Social::kListBlocked, page);
  EXPECT_THAT(NamesIn(blocked), ElementsAre("eve"));
  page.set_before(blocked.next());
  EXPECT_THAT(NamesIn(MustCall(app_, Social::kListBlocked, page)), IsEmpty());
  EXPECT_THAT(NamesIn(MustCall(app_, Social::kListBlocked, FirstPage(eve))), IsEmpty());  // not who blocks it
  const AdList own = MustCall(app_, Social::kListOwnAds, TokenOf(ann_));
  ASSERT_EQ(own.ads_size(), 2);
  EXPECT_EQ(own.ads(0).id(), second.id());
  EXPECT_EQ(own.ads(1).id(), first.id());
  EXPECT_EQ(own.ads(1).title(), first.title());

  for (const absl::Status& status : {Call(app_, Social::kGetProfile, TokenOf(Session())).status(),
                                     Call(app_, Social::kListBlocked, FirstPage(Session())).status(),
                                     Call(app_, Social::kListOwnAds, TokenOf(Session())).status()})
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
}

TEST(Session, OneThatWasEndedStaysEndedWhenServicesStartAgain) {
  SocialDeployment app("FIB1", /*monolith=*/false);
  const Session ann = app.Register("ann");
  MustCall(app, Social::kLogout, TokenOf(ann));
  for (const char* service : {"front-end", "user"}) {
    app.Kill(service);
    app.Start(service);
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status status;
  do {
    status = Call(app, Social::kReadHomeTimeline, FirstPage(ann)).status();
    BetweenLooks();
  } while (absl::IsUnavailable(status) && !deadline.Expired());  // until it has found `user` again
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
}

}  // namespace
}  // namespace curtail::social
