// SPDX-License-Identifier: Apache-2.0
//
// Front end: what clients call. Finds out who calls and whom names mean, and hands on.
#include <charconv>
#include <chrono>
#include <unordered_set>

#include "apps/social/data.h"
#include "apps/social/page.h"
#include "apps/social/secrets.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/jwt.h"
#include "curtail/rpc/when_all.h"
#include "messages.curtail.h"
#include "reactions.curtail.h"
#include "search.curtail.h"
#include "social.curtail.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

using SocialId = absl::StatusOr<uint64_t>;
using GraphMethod = Method<Edge, Changed>;

struct FrontEndService final : Social::CoroutineService {
  FrontEndService(std::unique_ptr<JwtVerifier> v, Env& env)
      : verifier(std::move(v)),
        user(env.Stub<User>("user")),
        graph(env.Stub<SocialGraph>("social-graph")),
        compose(env.Stub<ComposePost>("compose-post")),
        read_post(env.Stub<ReadPost>("read-post")),
        favorite(env.Stub<Favorite>("favorite")),
        repost_reply(env.Stub<RepostReply>("repost-reply")),
        search(env.Stub<Search>("search")),
        messaging(env.Stub<DirectMessaging>("direct-message")),
        statistics(env.Stub<UserStatistics>("user-statistics")),
        home(env.Stub<HomeTimeline>("home-timeline")),
        timeline(env.Stub<UserTimeline>("user-timeline")),
        url_shorten(env.Stub<UrlShorten>("url-shorten")) {}

  Coroutine Register(Context& ctx, const Credentials& request, Session* reply) override {
    return Forward(ctx, user.channel(), User::kRegister, request, reply);
  }
  Coroutine Login(Context& ctx, const Credentials& request, Session* reply) override {
    return Forward(ctx, user.channel(), User::kLogin, request, reply);
  }
  Coroutine ExpandUrl(Context& ctx, const Code& request, Url* reply) override {
    return Forward(ctx, url_shorten.channel(), UrlShorten::kExpand, request, reply);
  }
  Coroutine Follow(Context& ctx, const Relation& request, Changed* reply) override {
    return ChangeGraph(ctx, SocialGraph::kFollow, request, reply);
  }
  Coroutine Unfollow(Context& ctx, const Relation& request, Changed* reply) override {
    return ChangeGraph(ctx, SocialGraph::kUnfollow, request, reply);
  }
  Coroutine Block(Context& ctx, const Relation& request, Changed* reply) override {
    return ChangeGraph(ctx, SocialGraph::kBlock, request, reply);
  }
  Coroutine Unblock(Context& ctx, const Relation& request, Changed* reply) override {
    return ChangeGraph(ctx, SocialGraph::kUnblock, request, reply);
  }
  Coroutine ListFollowers(Context& ctx, const UserPage& request, People* reply) override {
    return List(ctx, SocialGraph::kFollowers, request, reply);
  }
  Coroutine ListFollowing(Context& ctx, const UserPage& request, People* reply) override {
    return List(ctx, SocialGraph::kFollowees, request, reply);
  }

  Coroutine Compose(Context& ctx, const ComposeRequest& request, Post* reply) override {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    Draft draft;
    draft.set_author(*caller);
    draft.set_text(request.text());
    *draft.mutable_media() = request.media();
    draft.set_reply_to(request.reply_to());
    draft.set_repost_of(request.repost_of());
    co_return co_await Forward(ctx, compose.channel(), ComposePost::kCompose, draft, reply);
  }

  Coroutine DeletePost(Context& ctx, const PostRequest& request, Changed* reply) override {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    PostOfAuthor post;
    post.set_author(*caller);
    post.set_post(request.id());
    auto [deleted] = co_await WhenAll(ctx, Ask(compose, ComposePost::kDelete, post));
    reply->set_changed(true);
    co_return deleted.status();
  }

  Coroutine ReadHomeTimeline(Context& ctx, const HomePage& request, Posts* reply) override {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    TimelinePage page;
    page.set_viewer(*caller);
    page.set_user(*caller);
    page.set_before(request.before());
    page.set_limit(request.limit());
    co_return co_await Forward(ctx, home.channel(), HomeTimeline::kRead, page, reply);
  }

  Coroutine ReadUserTimeline(Context& ctx, const UserPage& request, Posts* reply) override {
    const SocialId viewer = ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    const SocialId named = co_await Named(ctx, request.name());
    if (!named.ok()) co_return named.status();
    TimelinePage page;
    page.set_viewer(*viewer);
    page.set_user(*named);
    page.set_before(request.before());
    page.set_limit(request.limit());
    co_return co_await Forward(ctx, timeline.channel(), UserTimeline::kRead, page, reply);
  }

  Coroutine GetPost(Context& ctx, const PostRequest& request, Post* reply) override {
    const SocialId viewer = ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    co_return co_await See(ctx, *viewer, request.id(), reply);
  }

  Coroutine AddFavorite(Context& ctx, const PostRequest& request, Changed* reply) override {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    Post post;
    if (absl::Status seen = co_await See(ctx, *caller, request.id(), &post); !seen.ok()) co_return seen;
    Liking like;
    like.set_user(*caller);
    like.set_post(post.id());
    like.set_author(post.author().id());
    co_return co_await Forward(ctx, favorite.channel(), Favorite::kAdd, like, reply);
  }

  Coroutine RemoveFavorite(Context& ctx, const PostRequest& request, Changed* reply) override {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    Liking like;
    like.set_user(*caller);
    like.set_post(request.id());
    co_return co_await Forward(ctx, favorite.channel(), Favorite::kRemove, like, reply);
  }

  Coroutine ListFavoredBy(Context& ctx, const PostPage& request, People* reply) override {
    const SocialId viewer = ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    Post post;
    if (absl::Status seen = co_await See(ctx, *viewer, request.id(), &post); !seen.ok()) co_return seen;
    const ReactionPage page = PageOf(request.id(), request);
    auto [ids] = co_await WhenAll(ctx, Ask(favorite, Favorite::kBy, page));
    if (!ids.ok()) co_return ids.status();
    reply->set_next(NextOf(*ids, page));
    co_return co_await Introduce(ctx, *viewer, *ids, reply);
  }

  Coroutine ReadFavorites(Context& ctx, const UserPage& request, Posts* reply) override {
    const SocialId viewer = ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    const SocialId named = co_await Named(ctx, request.name());
    if (!named.ok()) co_return named.status();
    const ReactionPage page = PageOf(*named, request);
    auto both = co_await WhenAllOk(ctx, Ask(favorite, Favorite::kOf, page),
                                   Ask(graph, SocialGraph::kLook, LookAt(*viewer, *named)));
    if (!both.ok()) co_return both.status();
    const auto& [ids, look] = *both;
    if (!look.hidden().empty()) co_return absl::OkStatus();
    reply->set_next(NextOf(ids, page));
    co_return co_await Show(ctx, *viewer, ids, reply);
  }

  Coroutine ReadReplies(Context& ctx, const PostPage& request, Posts* reply) override {
    return ReadReferences(ctx, RepostReply::kReplies, request, reply);
  }
  Coroutine ReadReposts(Context& ctx, const PostPage& request, Posts* reply) override {
    return ReadReferences(ctx, RepostReply::kReposts, request, reply);
  }

  Coroutine SearchPosts(Context& ctx, const SearchRequest& request, Posts* reply) override {
    const SocialId viewer = ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    SearchQuery query;
    query.set_viewer(*viewer);
    query.set_text(request.text());
    query.set_newest(request.newest());
    query.set_from(request.from());
    query.set_limit(request.limit());
    co_return co_await Forward(ctx, search.channel(), Search::kQuery, query, reply);
  }

  Coroutine SearchUsers(Context& ctx, const NamePage& request, FoundPeople* reply) override {
    const SocialId viewer = ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    auto [found] = co_await WhenAll(ctx, Ask(user, User::kSearch, request));
    if (!found.ok()) co_return found.status();
    LookRequest look;
    look.set_viewer(*viewer);
    for (const Person& person : found->people()) look.add_authors(person.id());
    auto [looked] = co_await WhenAll(ctx, Ask(graph, SocialGraph::kLook, look));
    if (!looked.ok()) co_return looked.status();
    PutSeen(*looked, found->mutable_people(), reply->mutable_people());
    reply->set_next(found->next());
    co_return absl::OkStatus();
  }

  Coroutine SendMessage(Context& ctx, const MessageRequest& request, DirectMessage* reply) override {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    const SocialId named = co_await Named(ctx, request.to());
    if (!named.ok()) co_return named.status();
    MessageDraft draft;
    draft.set_from(*caller);
    draft.set_to(*named);
    draft.set_text(request.text());
    co_return co_await Forward(ctx, messaging.channel(), DirectMessaging::kSend, draft, reply);
  }

  Coroutine ListConversations(Context& ctx, const HomePage& request, Conversations* reply) override {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    MessagePage page;
    page.set_user(*caller);
    page.set_before(request.before());
    page.set_limit(request.limit());
    co_return co_await Forward(ctx, messaging.channel(), DirectMessaging::kList, page, reply);
  }

  Coroutine ReadConversation(Context& ctx, const UserPage& request, DirectMessages* reply) override {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    const SocialId named = co_await Named(ctx, request.name());
    if (!named.ok()) co_return named.status();
    MessagePage page;
    page.set_user(*caller);
    page.set_other(*named);
    page.set_before(request.before());
    page.set_limit(request.limit());
    co_return co_await Forward(ctx, messaging.channel(), DirectMessaging::kRead, page, reply);
  }

  Coroutine DeleteMessage(Context& ctx, const PostRequest& request, Changed* reply) override {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    MessageOfUser message;
    message.set_message(request.id());
    message.set_user(*caller);
    auto [deleted] = co_await WhenAll(ctx, Ask(messaging, DirectMessaging::kDelete, message));
    reply->set_changed(true);
    co_return deleted.status();
  }

  Coroutine GetStatistics(Context& ctx, const UserRequest& request, Statistics* reply) override {
    const SocialId viewer = ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    const SocialId named = co_await Named(ctx, request.name());
    if (!named.ok()) co_return named.status();
    StatisticsQuery query;
    query.set_viewer(*viewer);
    query.set_user(*named);
    co_return co_await Forward(ctx, statistics.channel(), UserStatistics::kOf, query, reply);
  }

  std::vector<DeclaredPath> Paths() const override {
    const std::string users(User::kServiceName), graphs(SocialGraph::kServiceName);
    const std::string composers(ComposePost::kServiceName), posts(ReadPost::kServiceName);
    const std::string likes(Favorite::kServiceName), refs(RepostReply::kServiceName);
    const std::string messages(DirectMessaging::kServiceName);
    std::vector<DeclaredPath> paths = {
        {"Register", {users}},
        {"Login", {users}},
        {"ExpandUrl", {std::string(UrlShorten::kServiceName)}},
        {"Compose", {composers}},
        {"DeletePost", {composers}},
        {"ReadHomeTimeline", {std::string(HomeTimeline::kServiceName)}},
        {"ReadUserTimeline", {users, std::string(UserTimeline::kServiceName)}},
        {"GetPost", {posts}},
        {"AddFavorite", {posts, likes}},
        {"RemoveFavorite", {likes}},
        {"ListFavoredBy", {posts, likes, graphs, users}},
        {"ReadFavorites", {users, likes, graphs, posts}},
        {"ReadReplies", {posts, refs}},
        {"ReadReposts", {posts, refs}},
        {"SearchPosts", {std::string(Search::kServiceName)}},
        {"SearchUsers", {users, graphs}},
        {"SendMessage", {users, messages}},
        {"ListConversations", {messages}},
        {"ReadConversation", {users, messages}},
        {"DeleteMessage", {messages}},
        {"GetStatistics", {users, std::string(UserStatistics::kServiceName)}},
    };
    for (const char* method : {"Follow", "Unfollow", "Block", "Unblock", "ListFollowers", "ListFollowing"}) {
      paths.push_back({method, {users, graphs}});
    }
    return paths;
  }

  template <class Request, class Reply>
  static Coroutine Forward(Context& ctx, Channel* channel, const Method<Request, Reply>& method,
                           const std::type_identity_t<Request>& request, Reply* reply) {
    auto replies = co_await broadcast(ctx, std::span(&channel, 1), method, request);
    if (replies[0].ok()) reply->Swap(&*replies[0]);
    co_return replies[0].status();
  }

  Coroutine ChangeGraph(Context& ctx, const GraphMethod& method, const Relation& request, Changed* reply) {
    const SocialId caller = CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    const SocialId named = co_await Named(ctx, request.name());
    if (!named.ok()) co_return named.status();
    Edge edge;
    edge.set_from(*caller);
    edge.set_to(*named);
    co_return co_await Forward(ctx, graph.channel(), method, edge, reply);
  }

  Coroutine List(Context& ctx, const Method<EdgePage, Ids>& method, const UserPage& request, People* reply) {
    const SocialId named = co_await Named(ctx, request.name());
    if (!named.ok()) co_return named.status();
    EdgePage page;
    page.set_user(*named);
    page.set_after(request.before());
    page.set_limit(LimitOf(request.limit()));
    auto [ids] = co_await WhenAll(ctx, Ask(graph, method, page));
    if (!ids.ok()) co_return ids.status();
    if (ids->ids_size() == static_cast<int>(page.limit())) reply->set_next(*ids->ids().rbegin());
    auto [people] = co_await WhenAll(ctx, Ask(user, User::kById, *ids));
    if (people.ok()) reply->mutable_people()->Swap(people->mutable_people());
    co_return people.status();
  }

  // A post that the viewer may see. NOT_FOUND for any other.
  Coroutine See(Context& ctx, uint64_t viewer, uint64_t id, Post* post) {
    ViewRequest view;
    view.set_viewer(viewer);
    view.add_ids(id);
    auto [seen] = co_await WhenAll(ctx, Ask(read_post, ReadPost::kRead, view));
    if (!seen.ok()) co_return seen.status();
    if (seen->posts().empty()) co_return absl::NotFoundError("there is no such post");
    post->Swap(seen->mutable_posts(0));
    co_return absl::OkStatus();
  }

  // Those of the posts that the viewer may see.
  Coroutine Show(Context& ctx, uint64_t viewer, const Ids& ids, Posts* reply) {
    ViewRequest view;
    view.set_viewer(viewer);
    *view.mutable_ids() = ids.ids();
    auto [seen] = co_await WhenAll(ctx, Ask(read_post, ReadPost::kRead, view));
    if (seen.ok()) reply->mutable_posts()->Swap(seen->mutable_posts());
    co_return seen.status();
  }

  // Those of the users that the viewer may see, by rising id.
  Coroutine Introduce(Context& ctx, uint64_t viewer, const Ids& ids, People* reply) {
    LookRequest look;
    look.set_viewer(viewer);
    *look.mutable_authors() = ids.ids();
    auto both = co_await WhenAllOk(ctx, Ask(user, User::kById, ids), Ask(graph, SocialGraph::kLook, look));
    if (!both.ok()) co_return both.status();
    auto& [people, looked] = *both;
    PutSeen(looked, people.mutable_people(), reply->mutable_people());
    co_return absl::OkStatus();
  }
  static void PutSeen(const LookReply& look, google::protobuf::RepeatedPtrField<Person>* people,
                      google::protobuf::RepeatedPtrField<Person>* seen) {
    const std::unordered_set<uint64_t> hidden(look.hidden().begin(), look.hidden().end());
    for (Person& person : *people) {
      if (!hidden.contains(person.id())) seen->Add()->Swap(&person);
    }
  }

  Coroutine ReadReferences(Context& ctx, const Method<ReactionPage, Ids>& method, const PostPage& request,
                           Posts* reply) {
    const SocialId viewer = ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    Post post;
    if (absl::Status seen = co_await See(ctx, *viewer, request.id(), &post); !seen.ok()) co_return seen;
    const ReactionPage page = PageOf(request.id(), request);
    auto [ids] = co_await WhenAll(ctx, Ask(repost_reply, method, page));
    if (!ids.ok()) co_return ids.status();
    reply->set_next(NextOf(*ids, page));
    co_return co_await Show(ctx, *viewer, *ids, reply);
  }

  template <class Request>
  static ReactionPage PageOf(uint64_t of, const Request& request) {
    ReactionPage page;
    page.set_of(of);
    page.set_from(request.before());
    page.set_limit(LimitOf(request.limit()));
    return page;
  }
  // Where the page after one of these ids begins.
  static uint64_t NextOf(const Ids& ids, const ReactionPage& page) {
    return ids.ids_size() < static_cast<int>(page.limit()) ? 0 : *ids.ids().rbegin();
  }
  static LookRequest LookAt(uint64_t viewer, uint64_t user) {
    LookRequest look;
    look.set_viewer(viewer);
    if (viewer != user) look.add_authors(user);
    return look;
  }

  // The user of that name.
  Co<SocialId> Named(Context& ctx, const std::string& name) {
    Names names;
    names.add_names(name);
    auto [found] = co_await WhenAll(ctx, Ask(user, User::kByName, names));
    if (!found.ok()) co_return found.status();
    if (found->people().empty()) co_return absl::NotFoundError("there is no user of that name");
    co_return found->people(0).id();
  }

  static std::string_view TokenOf(const Context& ctx, std::string_view given) {
    if (!given.empty()) return given;
    const std::string_view header = ctx.metadata().Find("authorization").value_or("");
    constexpr std::string_view kBearer = "Bearer ";
    return header.starts_with(kBearer) ? header.substr(kBearer.size()) : "";
  }

  // Whose session it is; 0 without a token.
  SocialId ViewerOf(const Context& ctx, std::string_view given) const {
    return TokenOf(ctx, given).empty() ? SocialId(0) : CallerOf(ctx, given);
  }

  // Whose session it is.
  SocialId CallerOf(const Context& ctx, std::string_view given) const {
    const std::string_view token = TokenOf(ctx, given);
    if (token.empty()) return absl::UnauthenticatedError("log in, and send the token of the session");
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const absl::StatusOr<JwtClaims> claims =
        verifier->Verify(token, std::chrono::duration_cast<std::chrono::seconds>(now).count());
    if (!claims.ok()) return claims.status();
    uint64_t id = 0;
    const std::string& text = claims->subject;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error == std::errc() && end == text.data() + text.size()) return id;
    return absl::UnauthenticatedError("the token names no user");
  }

  const std::unique_ptr<JwtVerifier> verifier;
  const User::Stub user;
  const SocialGraph::Stub graph;
  const ComposePost::Stub compose;
  const ReadPost::Stub read_post;
  const Favorite::Stub favorite;
  const RepostReply::Stub repost_reply;
  const Search::Stub search;
  const DirectMessaging::Stub messaging;
  const UserStatistics::Stub statistics;
  const HomeTimeline::Stub home;
  const UserTimeline::Stub timeline;
  const UrlShorten::Stub url_shorten;
};

HostedService HostedFrontEnd() {
  auto data = std::make_shared<DataOptions>();
  return {.name = "front-end",
          .calls = {"user", "social-graph", "compose-post", "read-post", "favorite", "repost-reply", "search",
                    "direct-message", "user-statistics", "home-timeline", "user-timeline", "url-shorten"},
          .flags = [data](Flags& flags) { AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            JwtOptions tokens;
            auto secret = TokenSecret(*data);
            if (!secret.ok()) return secret.status();
            tokens.secret = *std::move(secret);
            tokens.issuer = kIssuer;
            tokens.leeway_s = 0;
            auto verifier = JwtVerifier::Load(tokens);
            if (!verifier.ok()) return verifier.status();
            return std::make_unique<FrontEndService>(*std::move(verifier), env);
          }};
}

}  // namespace curtail::social
