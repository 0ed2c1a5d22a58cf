// SPDX-License-Identifier: Apache-2.0
#include "apps/social/common/wrk2.h"

#include <string_view>

#include "apps/kit/digits.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/when_all.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "timelines.curtail.h"
#include "users.curtail.h"
#include "wrk2.curtail.h"

namespace curtail::social {
namespace {

using google::api::HttpBody;

constexpr std::string_view kNamePrefix = "username_";

std::string NameOf(uint64_t id) { return Join(kNamePrefix, id); }

// 0 for a name of another form.
uint64_t IdOf(std::string_view name) {
  if (!name.starts_with(kNamePrefix)) return 0;
  name.remove_prefix(kNamePrefix.size());
  return apps::ParseDigits(name).value_or(0);
}

absl::Status Incomplete() { return absl::InvalidArgumentError("Incomplete arguments"); }

void Say(std::string_view text, HttpBody* reply) {
  reply->set_content_type("text/plain");
  reply->set_data(Join(text, "\n"));
}

// The strings of a JSON array; empty text has none.
absl::StatusOr<std::vector<std::string>> StringsOf(const std::string& text) {
  std::vector<std::string> strings;
  if (text.empty()) return strings;
  google::protobuf::ListValue array;
  if (!google::protobuf::util::JsonStringToMessage(text, &array).ok())
    return absl::InvalidArgumentError("media_types is not an array of JSON");
  for (const auto& one : array.values()) strings.push_back(one.string_value());
  return strings;
}

void PutPerson(const Person& person, Wrk2Person* put) {
  put->set_user_id(IdOf(person.name()));
  put->set_username(person.name());
}

void PutPost(const Post& post, Wrk2Post* put) {
  put->set_post_id(post.id());
  PutPerson(post.author(), put->mutable_creator());
  put->set_text(post.text());
  put->set_timestamp(post.created_ms());
  for (const Person& person : post.mentions()) PutPerson(person, put->add_user_mentions());
  for (const MediaItem& item : post.media()) {
    Wrk2Media* const media = put->add_media();
    media->set_media_id(item.id());
    media->set_media_type(item.type().substr(item.type().find('/') + 1));
  }
  for (const Url& url : post.urls()) {
    Wrk2Url* const both = put->add_urls();
    both->set_shortened_url(kShortPrefix + url.code());
    both->set_expanded_url(url.url());
  }
}

struct Wrk2Service final : Wrk2::CoroutineService {
  Wrk2Service(Env& e, const apps::Sessions& s) : env(e), sessions(s) {}

  Coroutine Register(Context& ctx, const Wrk2User& request, HttpBody* reply) override {
    if (request.first_name().empty() || request.last_name().empty() || request.username().empty() ||
        request.password().empty() || !request.has_user_id())
      co_return Incomplete();
    if (request.username() != NameOf(request.user_id()))
      co_return absl::InvalidArgumentError(
          Join("user ", request.user_id(), " has the name ", NameOf(request.user_id())));
    Credentials credentials;
    credentials.set_name(request.username());
    credentials.set_password(request.password());
    auto [session] = co_await WhenAll(ctx, Ask(user, User::kRegister, credentials));
    Say("Success!", reply);
    co_return session.status();
  }

  Coroutine Follow(Context& ctx, const Wrk2Relation& request, HttpBody* reply) override {
    return ChangeGraph(ctx, SocialGraph::kFollow, request, reply);
  }
  Coroutine Unfollow(Context& ctx, const Wrk2Relation& request, HttpBody* reply) override {
    return ChangeGraph(ctx, SocialGraph::kUnfollow, request, reply);
  }

  Coroutine Compose(Context& ctx, const Wrk2Draft& request, HttpBody* reply) override {
    if (request.username().empty() || !request.has_user_id() || request.text().empty() ||
        !request.has_post_type())
      co_return Incomplete();
    const auto types = StringsOf(request.media_types());
    if (!types.ok()) co_return types.status();
    const absl::StatusOr<uint64_t> author = co_await sessions.Named(ctx, request.username());
    if (!author.ok()) co_return author.status();
    Draft draft;
    draft.set_author(*author);
    draft.set_text(request.text());
    for (const std::string& type : *types) draft.add_media()->set_type("image/" + type);
    auto [post] = co_await WhenAll(ctx, Ask(compose, ComposePost::kCompose, draft));
    Say("Successfully upload post", reply);
    co_return post.status();
  }

  Coroutine ReadHomeTimeline(Context& ctx, const Wrk2Page& request, Wrk2Posts* reply) override {
    return Read(ctx, home, HomeTimeline::kRead, /*as_user=*/true, request, reply);
  }
  Coroutine ReadUserTimeline(Context& ctx, const Wrk2Page& request, Wrk2Posts* reply) override {
    return Read(ctx, timeline, UserTimeline::kRead, /*as_user=*/false, request, reply);
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Register", {user}},
            {"Follow", {user, graph}},
            {"Unfollow", {user, graph}},
            {"Compose", {user, compose}},
            {"ReadHomeTimeline", {user, home}},
            {"ReadUserTimeline", {user, timeline}}};
  }

  Coroutine ChangeGraph(Context& ctx, const Method<Edge, Changed>& method, const Wrk2Relation& request,
                        HttpBody* reply) {
    const bool by_id = request.has_user_id() && request.has_followee_id();
    if (!by_id && (request.user_name().empty() || request.followee_name().empty())) co_return Incomplete();
    const std::string from = by_id ? NameOf(request.user_id()) : request.user_name();
    const std::string to = by_id ? NameOf(request.followee_id()) : request.followee_name();
    const absl::StatusOr<uint64_t> by = co_await sessions.Named(ctx, from);
    if (!by.ok()) co_return by.status();
    const absl::StatusOr<uint64_t> named = co_await sessions.Named(ctx, to);
    if (!named.ok()) co_return named.status();
    Edge edge;
    edge.set_from(*by);
    edge.set_to(*named);
    auto [changed] = co_await WhenAll(ctx, Ask(graph, method, edge));
    Say("Success!", reply);
    co_return changed.status();
  }

  template <class Stub>
  Coroutine Read(Context& ctx, const Stub& stub, const Method<TimelinePage, Posts>& method, bool as_user,
                 const Wrk2Page& request, Wrk2Posts* reply) {
    if (!request.has_user_id() || !request.has_start() || !request.has_stop()) co_return Incomplete();
    if (request.stop() <= request.start()) co_return absl::OkStatus();
    const std::string name = NameOf(request.user_id());
    const absl::StatusOr<uint64_t> owner = co_await sessions.Named(ctx, name);
    if (!owner.ok()) co_return owner.status();
    TimelinePage page;
    page.set_user(*owner);
    if (as_user) page.set_viewer(page.user());
    page.set_skip(request.start());
    page.set_limit(request.stop() - request.start());
    auto [posts] = co_await WhenAll(ctx, Ask(stub, method, page));
    if (!posts.ok()) co_return posts.status();
    for (const Post& post : posts->posts()) PutPost(post, reply->add_posts());
    co_return absl::OkStatus();
  }

  Env& env;
  const apps::Sessions& sessions;
  const User::Stub user = env.Stub<User>("user");
  const SocialGraph::Stub graph = env.Stub<SocialGraph>("social-graph");
  const ComposePost::Stub compose = env.Stub<ComposePost>("compose-post");
  const HomeTimeline::Stub home = env.Stub<HomeTimeline>("home-timeline");
  const UserTimeline::Stub timeline = env.Stub<UserTimeline>("user-timeline");
};

}  // namespace

std::unique_ptr<Service> MakeWrk2(Env& env, const apps::Sessions& sessions) {
  return std::make_unique<Wrk2Service>(env, sessions);
}

}  // namespace curtail::social
