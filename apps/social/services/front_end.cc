// SPDX-License-Identifier: Apache-2.0
//
// Front end: what clients call. social.proto says who may call, and what other services answer.
#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/accounts/gone.h"
#include "apps/kit/accounts/sessions.h"
#include "apps/kit/forward.h"
#include "apps/kit/once.h"
#include "apps/social/common/accounts.h"
#include "apps/social/common/page.h"
#include "apps/social/common/views.h"
#include "apps/social/common/wrk2.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/gateway/page/page.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "messages.curtail.h"
#include "models.curtail.h"
#include "page_files.h"
#include "reactions.curtail.h"
#include "search.curtail.h"
#include "social.curtail.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

struct FrontEndService final : Social::CoroutineService {
  FrontEndService(const apps::Sessions& s, Env& e) : env(e), sessions(s), accounts(e), views(e) {}

  Coroutine Register(Context& ctx, const Credentials& request, Session* reply) override {
    return sessions.Register(ctx, request, reply);
  }
  Coroutine Logout(Context& ctx, const TokenRequest& request, Changed* reply) override {
    return sessions.End(ctx, request.token(), reply);
  }
  Coroutine ChangePassword(Context& ctx, const PasswordChange& request, Session* reply) override {
    return sessions.ChangePassword(ctx, request, reply);
  }
  Coroutine DeleteUser(Context& ctx, const Credentials& request, Changed* reply) override {
    reply->set_changed(true);
    return accounts.Delete(ctx, request);
  }

  Coroutine ListFollowers(Context& ctx, const UserPage& request, People* reply) override {
    return ListOfNamed(ctx, SocialGraph::kFollowers, request, reply);
  }
  Coroutine ListFollowing(Context& ctx, const UserPage& request, People* reply) override {
    return ListOfNamed(ctx, SocialGraph::kFollowees, request, reply);
  }
  Coroutine ListBlocked(Context& ctx, const HomePage& request, People* reply) override {
    return List(ctx, apps::CallerOf(ctx), block_user, BlockUser::kList, request, reply);
  }

  Coroutine DownloadMedia(Context& ctx, const PostRequest& request,
                          AsyncStreamWriter<google::api::HttpBody>& stream) override {
    FileQuery query;
    query.set_viewer(apps::CallerOf(ctx));
    query.set_id(request.id());
    // No file has a validator that If-Range could name.
    if (!ctx.metadata().Find("if-range"))
      query.set_range(std::string(ctx.metadata().Find("range").value_or("")));
    apps::HandAddressOn(ctx);
    co_return co_await apps::ForwardParts(ctx, media.Get(ctx, kAsync), query, stream);
  }

  Coroutine GetPost(Context& ctx, const PostRequest& request, Post* reply) override {
    return views.See(ctx, apps::CallerOf(ctx), request.id(), reply);
  }

  Coroutine AddFavorite(Context& ctx, const PostRequest& request, Changed* reply) override {
    const uint64_t caller = apps::CallerOf(ctx);
    Post post;
    if (absl::Status seen = co_await views.See(ctx, caller, request.id(), &post); !seen.ok()) co_return seen;
    Liking like;
    like.set_user(caller);
    like.set_post(post.id());
    like.set_author(post.author().id());
    if (absl::Status named = apps::NameRequest(ctx, Favorite::kAdd.path, like); !named.ok()) co_return named;
    co_return co_await call(ctx, favorite.channel(), Favorite::kAdd, like, reply);
  }

  Coroutine ListFavoredBy(Context& ctx, const PostPage& request, People* reply) override {
    return ListAbout(ctx, favorite, Favorite::kBy, request, reply, &Views::Introduce);
  }

  Coroutine ReadFavorites(Context& ctx, const UserPage& request, Posts* reply) override {
    const uint64_t viewer = apps::CallerOf(ctx);
    const absl::StatusOr<uint64_t> named = co_await sessions.Named(ctx, request.name());
    if (!named.ok()) co_return named.status();
    const ReactionPage page = PageOf(*named, request);
    LookRequest look;
    look.set_viewer(viewer);
    if (viewer != *named) look.add_authors(*named);
    auto both = co_await WhenAllOk(ctx, Ask(favorite, Favorite::kOf, page),
                                   Ask(block_user, BlockUser::kHidden, look));
    if (!both.ok()) co_return both.status();
    const auto& [ids, hidden] = *both;
    if (!hidden.ids().empty()) co_return absl::OkStatus();
    reply->set_next(NextOf(ids, page));
    co_return co_await views.Show(ctx, viewer, ids, reply);
  }

  Coroutine ReadReplies(Context& ctx, const PostPage& request, Posts* reply) override {
    return ListAbout(ctx, repost_reply, RepostReply::kReplies, request, reply, &Views::Show);
  }
  Coroutine ReadReposts(Context& ctx, const PostPage& request, Posts* reply) override {
    return ListAbout(ctx, repost_reply, RepostReply::kReposts, request, reply, &Views::Show);
  }

  Coroutine SearchUsers(Context& ctx, const NamePage& request, FoundPeople* reply) override {
    auto [found] = co_await WhenAll(ctx, Ask(user, User::kSearch, request));
    if (!found.ok()) co_return found.status();
    *reply = *std::move(found);
    co_return co_await views.LeaveOutHidden(ctx, apps::CallerOf(ctx), reply->mutable_people());
  }

  Coroutine GetProfile(Context& ctx, const TokenRequest&, Profile* reply) override {
    const uint64_t caller = apps::CallerOf(ctx);
    Ids id;
    id.add_ids(caller);
    StatisticsQuery query;
    query.set_viewer(caller);
    query.set_user(caller);
    auto both =
        co_await WhenAllOk(ctx, Ask(user, User::kById, id), Ask(statistics, UserStatistics::kOf, query));
    if (!both.ok()) co_return both.status();
    auto& [people, counts] = *both;
    if (people.people().empty()) co_return apps::GoneError();
    reply->mutable_user()->Swap(people.mutable_people(0));
    reply->mutable_statistics()->Swap(&counts);
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    const PathCall read_post = ReadPost::kServiceName;
    return {{"Register", {user}},
            {"Logout", {user}},
            {"ChangePassword", {user}},
            {"DeleteUser",
             {user, graph, block_user, ComposePost::kServiceName, PostStorage::kServiceName, favorite,
              DirectMessaging::kServiceName, Ads::kServiceName, HomeTimeline::kServiceName}},
            {"ListFollowers", {user, graph}},
            {"ListFollowing", {user, graph}},
            {"ListBlocked", {block_user}},
            {"DownloadMedia", {media}},
            {"GetPost", {read_post}},
            {"AddFavorite", {read_post, favorite}},
            {"ListFavoredBy", {read_post, favorite, block_user}},
            {"ReadFavorites", {read_post, favorite, block_user}},
            {"ReadReplies", {read_post, repost_reply}},
            {"ReadReposts", {read_post, repost_reply}},
            {"SearchUsers", {block_user}},
            {"GetProfile", {statistics}}};
  }

  Coroutine ListOfNamed(Context& ctx, const Method<EdgePage, Ids>& method, const UserPage& request,
                        People* reply) {
    const absl::StatusOr<uint64_t> named = co_await sessions.Named(ctx, request.name());
    if (!named.ok()) co_return named.status();
    co_return co_await List(ctx, *named, graph, method, request, reply);
  }
  Coroutine List(Context& ctx, uint64_t of, const auto& stub, const Method<EdgePage, Ids>& method,
                 const auto& request, People* reply) {
    EdgePage page;
    page.set_user(of);
    page.set_after(request.before());
    page.set_limit(apps::LimitOf(request.limit()));
    auto [ids] = co_await WhenAll(ctx, Ask(stub, method, page));
    if (!ids.ok()) co_return ids.status();
    if (ids->ids_size() == static_cast<int>(page.limit())) reply->set_next(*ids->ids().rbegin());
    auto [people] = co_await WhenAll(ctx, Ask(user, User::kById, *ids));
    if (people.ok()) reply->mutable_people()->Swap(people->mutable_people());
    co_return people.status();
  }

  // Users or posts that a service lists for a post, as the viewer may see them.
  template <class Reply>
  Coroutine ListAbout(Context& ctx, const auto& stub, const Method<ReactionPage, Ids>& method,
                      const PostPage& request, Reply* reply,
                      Coroutine (Views::*show)(Context&, uint64_t, const Ids&, Reply*) const) {
    const uint64_t viewer = apps::CallerOf(ctx);
    Post post;
    if (absl::Status seen = co_await views.See(ctx, viewer, request.id(), &post); !seen.ok()) co_return seen;
    const ReactionPage page = PageOf(request.id(), request);
    auto [ids] = co_await WhenAll(ctx, Ask(stub, method, page));
    if (!ids.ok()) co_return ids.status();
    reply->set_next(NextOf(*ids, page));
    co_return co_await (views.*show)(ctx, viewer, *ids, reply);
  }

  static ReactionPage PageOf(uint64_t of, const auto& request) {
    ReactionPage page;
    page.set_of(of);
    page.set_from(request.before());
    page.set_limit(apps::LimitOf(request.limit()));
    return page;
  }
  // Where the page after one of these ids begins.
  static uint64_t NextOf(const Ids& ids, const ReactionPage& page) {
    return ids.ids_size() < static_cast<int>(page.limit()) ? 0 : *ids.ids().rbegin();
  }

  Env& env;
  const apps::Sessions& sessions;
  const Accounts accounts;
  const User::Stub user = env.Stub<User>("user");
  const SocialGraph::Stub graph = env.Stub<SocialGraph>("social-graph");
  const BlockUser::Stub block_user = env.Stub<BlockUser>("block-user");
  const MediaFrontend::Stub media = env.Stub<MediaFrontend>("media-frontend");
  const Views views;
  const Favorite::Stub favorite = env.Stub<Favorite>("favorite");
  const RepostReply::Stub repost_reply = env.Stub<RepostReply>("repost-reply");
  const UserStatistics::Stub statistics = env.Stub<UserStatistics>("user-statistics");
};

HostedService HostedFrontEnd() {
  struct Options {
    Data data;
    std::string wrk2 = "off";
  };
  auto options = std::make_shared<Options>();
  return {
      .name = "front-end",
      .flags =
          [options](Flags& flags) {
            apps::AddDataFlags(flags, &options->data);
            flags.Add(
                "--wrk2-without-authentication", &options->wrk2,
                "front-end, off or on: the endpoints of DeathStarBench's wrk2 scripts, which trust anybody");
          },
      .make = [options](Env& env) -> MadeService {
        auto sessions = apps::Sessions::Load(options->data, env.Stub<User>("user"));
        if (!sessions.ok()) return sessions.status();
        const apps::Sessions& kept = env.Keep(std::make_unique<apps::Sessions>(*std::move(sessions)));
        const apps::Peers peers = apps::PeersOf(env);
        env.AlsoServe(gateway::MakePage(PageFiles()));
        if (options->wrk2 == "on") {
          MadeService wrk2 = apps::ForClients(MakeWrk2(env, kept), kept, peers);
          if (!wrk2.ok()) return wrk2;
          env.AlsoServe(*std::move(wrk2));
        } else if (options->wrk2 != "off") {
          return absl::InvalidArgumentError("--wrk2-without-authentication is off or on");
        }
        return apps::ForClients(std::make_unique<FrontEndService>(kept, env), kept, peers);
      }};
}

}  // namespace curtail::social
