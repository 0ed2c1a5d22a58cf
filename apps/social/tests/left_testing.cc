// SPDX-License-Identifier: Apache-2.0
#include "apps/social/tests/left_testing.h"

#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/base/strings.h"
#include "messages.curtail.h"
#include "reactions.curtail.h"
#include "users.curtail.h"

namespace curtail::social {
namespace {

// Appends what is counted of the reply to one call.
template <class Request, class Reply, class Count>
void Note(const std::unique_ptr<Channel>& channel, const Method<Request, Reply>& method,
          const std::type_identity_t<Request>& request, const char* what, Count count, std::string* left) {
  Context ctx(kMaxTestWait);
  Reply reply;
  const absl::Status status = channel->Call(ctx, method.path, request, &reply);
  if (!status.ok()) {
    *left += Join(what, ": ", status.ToString(), "; ");
  } else if (count(reply) != 0) {
    *left += Join(count(reply), " ", what, "; ");
  }
}

}  // namespace

Leftovers::Leftovers(SocialDeployment* app)
    : user_(app->Connect("user")),
      storage_(app->Connect("post-storage")),
      graph_(app->Connect("social-graph")),
      block_user_(app->Connect("block-user")),
      favorite_(app->Connect("favorite")),
      messaging_(app->Connect("direct-message")) {}

std::string Leftovers::Of(uint64_t user, const std::vector<uint64_t>& others) const {
  UserId id;
  id.set_user(user);
  Ids ids;
  ids.add_ids(user);
  LookRequest look;
  look.set_viewer(user);
  look.mutable_authors()->Assign(others.begin(), others.end());
  ReactionPage reactions;
  reactions.set_of(user);
  MessagePage messages;
  messages.set_user(user);

  std::string left;
  const auto number = [](const auto& reply) { return reply.count(); };
  const auto found = [](const Ids& reply) { return reply.ids_size(); };
  Note(user_, User::kById, ids, "accounts", [](const People& reply) { return reply.people_size(); }, &left);
  Note(storage_, PostStorage::kCountOf, id, "posts", number, &left);
  Note(graph_, SocialGraph::kCountOf, id, "followers", [](const auto& n) { return n.followers(); }, &left);
  Note(graph_, SocialGraph::kCountOf, id, "followees", [](const auto& n) { return n.following(); }, &left);
  Note(block_user_, BlockUser::kHidden, look, "blocks", found, &left);
  Note(favorite_, Favorite::kOf, reactions, "likes", found, &left);
  Note(favorite_, Favorite::kReceived, id, "likes received", number, &left);
  Note(
      messaging_, DirectMessaging::kList, messages, "conversations",
      [](const Conversations& reply) { return reply.conversations_size(); }, &left);
  return left;
}

}  // namespace curtail::social
