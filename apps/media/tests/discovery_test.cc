// SPDX-License-Identifier: Apache-2.0
//
// The registry of instances: who is in it, and channels that follow it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/kit/data/secrets.h"
#include "apps/kit/registry/registry.h"
#include "apps/media/tests/media_testing.h"
#include "registry.curtail.h"

namespace curtail::media {
namespace {

using apps::Registry;
using testing::ElementsAre;
using testing::IsEmpty;

class Discovery : public PartedMediaTest {
 protected:
  void SetUp() override {
    PartedMediaTest::SetUp();
    channel_ = Connect("service-discovery");
  }
  std::vector<std::string> AddressesOf(const std::string& service) const {
    apps::RegistryQuery query;
    query.set_service(service);
    apps::RegisteredServices found;
    Context ctx(kMaxTestWait);
    const absl::Status status = Registry::Stub(channel_.get()).List(ctx, query, &found);
    EXPECT_TRUE(status.ok()) << status;
    if (found.services().empty()) return {};
    return {found.services(0).addresses().begin(), found.services(0).addresses().end()};
  }
  absl::Status Register(const apps::Registration& one) const {
    apps::Nothing ignored;
    Context ctx(kMaxTestWait);
    return Registry::Stub(channel_.get()).Register(ctx, one, &ignored);
  }
  absl::Status Leave(const apps::Registration& one) const {
    apps::Nothing ignored;
    Context ctx(kMaxTestWait);
    return Registry::Stub(channel_.get()).Leave(ctx, one, &ignored);
  }
  apps::Registration Proven(const std::string& service, const std::string& address) const {
    const auto secret = apps::SecretOf(Folder() + "/secret");
    EXPECT_TRUE(secret.ok()) << secret.status();
    return apps::RegistrationOf(*secret, service, address);
  }
  // Until the list is this one.
  void Await(const std::string& service, const std::vector<std::string>& addresses) const {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (AddressesOf(service) != addresses && !deadline.Expired()) BetweenLooks();
    EXPECT_EQ(AddressesOf(service), addresses);
  }

  std::unique_ptr<Channel> channel_;
};

TEST_F(Discovery, ListsInstancesWhileTheyServe) {
  const std::string address = app_->AddressOf("streaming");
  Await("streaming", {address});
  Await("front-end", {app_->AddressOf("front-end")});
  app_->Kill("streaming");
  Await("streaming", {});  // its lease ends
  ASSERT_TRUE(app_->Restart("streaming").ok());
  Await("streaming", {address});
  app_->Kill("service-discovery");
  ASSERT_TRUE(app_->Restart("service-discovery").ok());
  channel_ = Connect("service-discovery");  // the last connection may not have heard of its end
  Await("streaming", {address});

  EXPECT_TRUE(absl::IsInvalidArgument(Register(Proven("", address))));
  EXPECT_TRUE(absl::IsInvalidArgument(Register(Proven(std::string(65, 's'), address))));
  EXPECT_TRUE(absl::IsInvalidArgument(Register(Proven("s", std::string(257, 'a')))));
  const std::string other = "127.0.0.1:1";
  ASSERT_TRUE(Register(Proven("streaming", other)).ok());
  EXPECT_THAT(AddressesOf("streaming"), testing::UnorderedElementsAre(address, other));
  ASSERT_TRUE(Leave(Proven("streaming", other)).ok());
  EXPECT_THAT(AddressesOf("streaming"), ElementsAre(address));
  EXPECT_THAT(AddressesOf("rent"), IsEmpty());
}

TEST_F(Discovery, TakesInstancesOfItsApplicationOnly) {
  const std::string address = app_->AddressOf("streaming");
  Await("streaming", {address});
  const apps::Registration good = Proven("streaming", "127.0.0.1:1");
  apps::Registration bare = good, of_another = good, moved = good, renamed = good, old = good;
  bare.clear_proof();
  of_another = apps::RegistrationOf(std::string(32, 's'), "streaming", "127.0.0.1:1");
  moved.set_address("127.0.0.1:2");
  renamed.set_service("front-end");
  old.set_at_s(old.at_s() - 120);
  for (const apps::Registration& one : {bare, of_another, moved, renamed, old}) {
    EXPECT_TRUE(absl::IsUnauthenticated(Register(one))) << one.ShortDebugString();
  }
  moved.set_address(address);
  EXPECT_TRUE(absl::IsUnauthenticated(Leave(moved)));
  EXPECT_THAT(AddressesOf("streaming"), ElementsAre(address));
}

TEST_F(Discovery, AChannelFollowsIt) {
  Await("front-end", {app_->AddressOf("front-end")});
  ChannelOptions options;
  options.resolver = apps::FollowRegistry(channel_.get(), "front-end");
  Channel found(&client_, "front-end", options);
  MovieRequest request;
  request.set_movie(films_[0].id);
  MoviePage page;
  Context ctx(kMaxTestWait);
  const absl::Status status = Media::Stub(&found).GetMovie(ctx, request, &page);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(page.movie().id(), films_[0].id);

  options.resolver = apps::FollowRegistry(channel_.get(), "nobody");
  Channel nobody(&client_, "nobody", options);
  Context again(kMaxTestWait);
  EXPECT_TRUE(absl::IsUnavailable(Media::Stub(&nobody).GetMovie(again, request, &page)));
}

}  // namespace
}  // namespace curtail::media
