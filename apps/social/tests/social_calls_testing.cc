// SPDX-License-Identifier: Apache-2.0
//
// The calls of clients.
#include <gtest/gtest.h>

#include <atomic>

#include "apps/kit/accounts/for_clients.h"
#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"

namespace curtail::social {

Session SocialDeployment::Register(const std::string& name) {
  Session session;
  const absl::Status status = Register(name, &session);
  EXPECT_TRUE(status.ok()) << status;
  return session;
}

namespace {

Credentials WithTestPassword(const std::string& name) {
  Credentials credentials;
  credentials.set_name(name);
  credentials.set_password(kTestPassword);
  return credentials;
}

// Each call comes from an address of its own: some are of users who are gone, and five of these close a name to an address.
void ComeFromElsewhere(Context* ctx) {
  static std::atomic<uint64_t> calls{0};
  ctx->AddMetadata(apps::kClientAddress, Join("caller ", calls.fetch_add(1, std::memory_order_relaxed)));
}

}  // namespace

absl::Status SocialDeployment::Register(const std::string& name, Session* session) {
  Context ctx(patience_);
  return Front().Register(ctx, WithTestPassword(name), session);
}

absl::Status SocialDeployment::Login(const std::string& name, Session* session) {
  Context ctx(patience_);
  ComeFromElsewhere(&ctx);
  return Front().Login(ctx, WithTestPassword(name), session);
}

absl::Status SocialDeployment::DeleteUser(const std::string& name) {
  Context ctx(patience_);
  ComeFromElsewhere(&ctx);
  Changed changed;
  return Front().DeleteUser(ctx, WithTestPassword(name), &changed);
}

Post SocialDeployment::Compose(const Session& by, const std::string& text) {
  ComposeRequest request;
  request.set_text(text);
  Post post;
  const absl::Status status = Compose(by, request, &post);
  EXPECT_TRUE(status.ok()) << status;
  return post;
}

absl::Status SocialDeployment::Compose(const Session& by, ComposeRequest request, Post* post) {
  request.set_token(by.token());
  Context ctx(patience_);
  return Front().Compose(ctx, request, post);
}

namespace {

Relation RelationOf(const Session& by, const std::string& name) {
  Relation relation;
  relation.set_token(by.token());
  relation.set_name(name);
  return relation;
}
PostRequest RequestOf(const Session& by, uint64_t post) {
  PostRequest request;
  request.set_token(by.token());
  request.set_id(post);
  return request;
}
PostPage PageOf(const Session& by, uint64_t post) {
  PostPage page;
  page.set_token(by.token());
  page.set_id(post);
  return page;
}
UserPage PageOf(const Session& by, const std::string& name) {
  UserPage page;
  page.set_token(by.token());
  page.set_name(name);
  return page;
}

// `changed` may be null.
template <class Call>
absl::Status Noting(bool* changed, Call call) {
  Changed reply;
  const absl::Status status = call(&reply);
  if (changed != nullptr) *changed = reply.changed();
  return status;
}

}  // namespace

absl::Status SocialDeployment::Follow(const Session& by, const std::string& name, bool* changed) {
  Context ctx(patience_);
  return Noting(changed, [&](Changed* reply) { return Front().Follow(ctx, RelationOf(by, name), reply); });
}
absl::Status SocialDeployment::Unfollow(const Session& by, const std::string& name, bool* changed) {
  Context ctx(patience_);
  return Noting(changed, [&](Changed* reply) { return Front().Unfollow(ctx, RelationOf(by, name), reply); });
}
absl::Status SocialDeployment::Block(const Session& by, const std::string& name, bool* changed) {
  Context ctx(patience_);
  return Noting(changed, [&](Changed* reply) { return Front().Block(ctx, RelationOf(by, name), reply); });
}
absl::Status SocialDeployment::Unblock(const Session& by, const std::string& name, bool* changed) {
  Context ctx(patience_);
  return Noting(changed, [&](Changed* reply) { return Front().Unblock(ctx, RelationOf(by, name), reply); });
}

absl::Status SocialDeployment::Delete(const Session& by, uint64_t post) {
  Context ctx(patience_);
  Changed changed;
  return Front().DeletePost(ctx, RequestOf(by, post), &changed);
}

absl::Status SocialDeployment::Get(const Session& by, uint64_t post, Post* reply) {
  Context ctx(patience_);
  return Front().GetPost(ctx, RequestOf(by, post), reply);
}

absl::Status SocialDeployment::Like(const Session& by, uint64_t post, bool* changed) {
  Context ctx(patience_);
  return Noting(changed,
                [&](Changed* reply) { return Front().AddFavorite(ctx, RequestOf(by, post), reply); });
}

absl::Status SocialDeployment::Unlike(const Session& by, uint64_t post, bool* changed) {
  Context ctx(patience_);
  return Noting(changed,
                [&](Changed* reply) { return Front().RemoveFavorite(ctx, RequestOf(by, post), reply); });
}

absl::Status SocialDeployment::FavoredBy(const Session& by, uint64_t post, std::vector<std::string>* names) {
  Context ctx(patience_);
  People people;
  const absl::Status status = Front().ListFavoredBy(ctx, PageOf(by, post), &people);
  names->clear();
  for (const Person& person : people.people()) names->push_back(person.name());
  return status;
}

namespace {

const auto& ItemsOf(const Posts& posts) { return posts.posts(); }
const auto& ItemsOf(const DirectMessages& messages) { return messages.messages(); }

}  // namespace

template <class Reply, class Page, class Read>
absl::Status SocialDeployment::AllPages(Page page, Read read, std::vector<uint64_t>* ids) const {
  ids->clear();
  page.set_limit(page_limit_);
  do {
    Context ctx(patience_);
    Reply reply;
    if (absl::Status status = read(ctx, page, &reply); !status.ok()) return status;
    for (const auto& item : ItemsOf(reply)) ids->push_back(item.id());
    page.set_before(reply.next());
  } while (page.before() != 0);
  return absl::OkStatus();
}

absl::Status SocialDeployment::Home(const Session& by, std::vector<uint64_t>* ids) {
  HomePage page;
  page.set_token(by.token());
  return AllPages(
      page, [&](Context& ctx, const HomePage& p, Posts* r) { return Front().ReadHomeTimeline(ctx, p, r); },
      ids);
}

absl::Status SocialDeployment::Timeline(const Session& by, const std::string& name,
                                        std::vector<uint64_t>* ids) {
  return AllPages(
      PageOf(by, name),
      [&](Context& ctx, const UserPage& p, Posts* r) { return Front().ReadUserTimeline(ctx, p, r); }, ids);
}

absl::Status SocialDeployment::Favorites(const Session& by, const std::string& name,
                                         std::vector<uint64_t>* ids) {
  return AllPages(
      PageOf(by, name),
      [&](Context& ctx, const UserPage& p, Posts* r) { return Front().ReadFavorites(ctx, p, r); }, ids);
}

absl::Status SocialDeployment::Replies(const Session& by, uint64_t post, std::vector<uint64_t>* ids) {
  return AllPages(
      PageOf(by, post),
      [&](Context& ctx, const PostPage& p, Posts* r) { return Front().ReadReplies(ctx, p, r); }, ids);
}

absl::Status SocialDeployment::Reposts(const Session& by, uint64_t post, std::vector<uint64_t>* ids) {
  return AllPages(
      PageOf(by, post),
      [&](Context& ctx, const PostPage& p, Posts* r) { return Front().ReadReposts(ctx, p, r); }, ids);
}

absl::Status SocialDeployment::Search(const Session& by, const std::string& text, bool newest,
                                      std::vector<uint64_t>* ids) {
  SearchRequest request;
  request.set_token(by.token());
  request.set_text(text);
  request.set_newest(newest);
  request.set_limit(page_limit_);
  ids->clear();
  do {
    Context ctx(patience_);
    Posts posts;
    if (absl::Status status = Front().SearchPosts(ctx, request, &posts); !status.ok()) return status;
    for (const Post& post : posts.posts()) ids->push_back(post.id());
    request.set_from(posts.next());
  } while (request.from() != 0);
  return absl::OkStatus();
}

absl::Status SocialDeployment::Following(const std::string& name, std::vector<std::string>* names) {
  Context ctx(patience_);
  People people;
  const absl::Status status = Front().ListFollowing(ctx, PageOf(Session(), name), &people);
  names->clear();
  for (const Person& person : people.people()) names->push_back(person.name());
  return status;
}

absl::Status SocialDeployment::Send(const Session& by, const std::string& to, const std::string& text,
                                    uint64_t* id) {
  MessageRequest request;
  request.set_token(by.token()), request.set_to(to), request.set_text(text);
  Context ctx(patience_);
  DirectMessage message;
  const absl::Status status = Front().SendMessage(ctx, request, &message);
  *id = message.id();
  return status;
}

absl::Status SocialDeployment::ReadConversation(const Session& by, const std::string& name,
                                                std::vector<uint64_t>* ids) {
  return AllPages<DirectMessages>(
      PageOf(by, name),
      [&](Context& ctx, const UserPage& p, DirectMessages* r) { return Front().ReadConversation(ctx, p, r); },
      ids);
}

absl::Status SocialDeployment::ListConversations(const Session& by,
                                                 std::vector<Conversation>* conversations) {
  HomePage page;
  page.set_token(by.token());
  Context ctx(patience_);
  Conversations listed;
  const absl::Status status = Front().ListConversations(ctx, page, &listed);
  conversations->assign(listed.conversations().begin(), listed.conversations().end());
  return status;
}

absl::Status SocialDeployment::DeleteMessage(const Session& by, uint64_t message) {
  Context ctx(patience_);
  Changed changed;
  return Front().DeleteMessage(ctx, RequestOf(by, message), &changed);
}

absl::Status SocialDeployment::GetStatistics(const Session& by, const std::string& name, Statistics* reply) {
  UserRequest request;
  request.set_token(by.token()), request.set_name(name);
  Context ctx(patience_);
  return Front().GetStatistics(ctx, request, reply);
}

absl::Status SocialDeployment::CreateAd(const Session& by, uint64_t* id) {
  AdRequest request;
  request.set_token(by.token());
  request.mutable_ad()->set_title("Pears");
  request.mutable_ad()->set_url("http://example.org/");
  request.mutable_ad()->set_topic("fruit");
  Context ctx(patience_);
  Ad ad;
  const absl::Status status = Front().CreateAd(ctx, request, &ad);
  *id = ad.id();
  return status;
}

absl::Status SocialDeployment::ShowAds(const Session& by, std::vector<uint64_t>* ids) {
  HomePage page;
  page.set_token(by.token()), page.set_limit(10);
  Context ctx(patience_);
  AdList list;
  const absl::Status status = Front().ShowAds(ctx, page, &list);
  ids->clear();
  for (const Ad& ad : list.ads()) ids->push_back(ad.id());
  return status;
}

absl::Status SocialDeployment::SearchUsers(const Session& by, const std::string& prefix,
                                           std::vector<std::string>* names) {
  NamePage page;
  page.set_token(by.token());
  page.set_prefix(prefix);
  page.set_limit(2);
  names->clear();
  do {
    Context ctx(patience_);
    FoundPeople people;
    if (absl::Status status = Front().SearchUsers(ctx, page, &people); !status.ok()) return status;
    for (const Person& person : people.people()) names->push_back(person.name());
    page.set_after(people.next());
  } while (!page.after().empty());
  return absl::OkStatus();
}

}  // namespace curtail::social
