// SPDX-License-Identifier: Apache-2.0
//
// account_testing.h - requests about accounts, and about what their users make.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "content.curtail.h"
#include "curtail/store/sql/sqlite.h"
#include "messages.curtail.h"
#include "models.curtail.h"
#include "reactions.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

// More than are deleted at once.
inline constexpr int kPosts = 40;

// The front end's methods, and those of the other services of a monolith, which have the same address.
template <class Request, class Reply>
absl::StatusOr<Reply> Call(const SocialDeployment& app, const Method<Request, Reply>& method,
                           const std::type_identity_t<Request>& request) {
  Context ctx(kMaxTestWait);
  Reply reply;
  absl::Status status = app.Front().channel()->Call(ctx, method.path, request, &reply);
  if (!status.ok()) return status;
  return reply;
}
template <class Request, class Reply>
Reply MustCall(const SocialDeployment& app, const Method<Request, Reply>& method,
               const std::type_identity_t<Request>& request) {
  const absl::StatusOr<Reply> reply = Call(app, method, request);
  EXPECT_TRUE(reply.ok()) << method.path << ": " << reply.status();
  return reply.ok() ? *reply : Reply();
}

// Requests of the front end's.
inline Credentials CredentialsOf(const std::string& name, const std::string& password = kTestPassword) {
  Credentials credentials;
  credentials.set_name(name), credentials.set_password(password);
  return credentials;
}
inline PasswordChange PasswordChangeOf(const std::string& name, const std::string& password,
                                       const std::string& fresh) {
  PasswordChange request;
  request.set_name(name), request.set_password(password), request.set_new_password(fresh);
  return request;
}
inline TokenRequest TokenOf(const Session& session) {
  TokenRequest request;
  request.set_token(session.token());
  return request;
}
inline PostRequest IdRequestOf(const Session& by, uint64_t id) {
  PostRequest request;
  request.set_token(by.token()), request.set_id(id);
  return request;
}
inline HomePage FirstPage(const Session& by) {
  HomePage page;
  page.set_token(by.token()), page.set_limit(10);
  return page;
}
inline UserPage FirstPage(const Session& by, const std::string& name) {
  UserPage page;
  page.set_token(by.token()), page.set_name(name);
  return page;
}
inline UserRequest StatisticsOf(const std::string& name) {
  UserRequest request;
  request.set_name(name);
  return request;
}
inline MessageRequest MessageOf(const Session& by, const std::string& to) {
  MessageRequest request;
  request.set_token(by.token()), request.set_to(to), request.set_text("a word");
  return request;
}
inline AdRequest AdOf(const Session& by) {
  AdRequest request;
  request.set_token(by.token());
  request.mutable_ad()->set_title("Pears");
  request.mutable_ad()->set_url("http://example.org/");
  request.mutable_ad()->set_topic("fruit");
  return request;
}
inline MediaUpload UploadOf(const Session& by) {
  MediaUpload request;
  request.set_token(by.token());
  request.mutable_file()->set_data(std::string("\x89PNG\r\n\x1a\n\0pixels", 15));
  return request;
}
inline ComposeRequest DraftOf(const std::string& text, uint64_t reply_to, uint64_t repost_of) {
  ComposeRequest request;
  request.set_text(text), request.set_reply_to(reply_to), request.set_repost_of(repost_of);
  return request;
}

// Requests of other services'.
inline UserId UserOf(const Session& of) {
  UserId user;
  user.set_user(of.user());
  return user;
}
inline Edge EdgeOf(const Session& from, const Session& to) {
  Edge edge;
  edge.set_from(from.user()), edge.set_to(to.user());
  return edge;
}
inline Liking LikeOf(const Session& by, uint64_t post) {
  Liking like;
  like.set_user(by.user()), like.set_post(post), like.set_author(1);
  return like;
}
inline MessageDraft DraftOf(const Session& from, const Session& to) {
  MessageDraft draft;
  draft.set_from(from.user()), draft.set_to(to.user()), draft.set_text("a word");
  return draft;
}
inline Ids IdsOf(const std::vector<uint64_t>& all) {
  Ids ids;
  ids.mutable_ids()->Assign(all.begin(), all.end());
  return ids;
}

inline std::vector<std::string> NamesIn(const People& people) {
  std::vector<std::string> names;
  for (const Person& person : people.people()) names.push_back(person.name());
  return names;
}
inline std::vector<std::string> NamesIn(const Conversations& listed) {
  std::vector<std::string> names;
  for (const Conversation& one : listed.conversations()) names.push_back(one.with().name());
  return names;
}

// Changes the file of a service, which goes on.
inline void Alter(const SocialDeployment& app, const std::string& service, const std::string& sql,
                  std::initializer_list<SqlValue> values = {}) {
  const auto session = internal::SqliteSession::Open({.path = app.DataFile(service + ".db")});
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status status = (*session)->Execute(sql, values);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace curtail::social
