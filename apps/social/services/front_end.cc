// SPDX-License-Identifier: Apache-2.0
//
// Front end: what clients call. Finds out who calls and whom names mean, and hands on.
#include "apps/kit/accounts/gone.h"
#include "apps/kit/accounts/sessions.h"
#include "apps/kit/for_clients.h"
#include "apps/kit/forward.h"
#include "apps/social/accounts.h"
#include "apps/social/data.h"
#include "apps/social/page.h"
#include "apps/social/views.h"
#include "apps/social/wrk2.h"
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

// Write requests for a caller.
auto RecommendFor(const HomePage& request) {
  return [&request](RecommendQuery& query, uint64_t caller) {
    query.set_user(caller);
    query.set_limit(request.limit());
  };
}

auto AdOf(const PostRequest& request) {
  return [&request](AdOfUser& what, uint64_t caller) {
    what.set_user(caller);
    what.mutable_ad()->set_id(request.id());
  };
}

struct FrontEndService final : Social::CoroutineService {
  FrontEndService(apps::Sessions s, Env& e) : env(e), sessions(std::move(s)), accounts(e), views(e) {}

  Coroutine Register(Context& ctx, const Credentials& request, Session* reply) override {
    return sessions.Register(ctx, request, reply);
  }
  Coroutine Login(Context& ctx, const Credentials& request, Session* reply) override {
    return apps::Forward(ctx, user, User::kLogin, request, reply);
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
  Coroutine ExpandUrl(Context& ctx, const Code& request, Url* reply) override {
    return apps::Forward(ctx, url_shorten, UrlShorten::kExpand, request, reply);
  }
  Coroutine Follow(Context& ctx, const Relation& request, Changed* reply) override {
    return ChangeEdge(ctx, graph, SocialGraph::kFollow, request, reply);
  }
  Coroutine Unfollow(Context& ctx, const Relation& request, Changed* reply) override {
    return ChangeEdge(ctx, graph, SocialGraph::kUnfollow, request, reply);
  }
  Coroutine Block(Context& ctx, const Relation& request, Changed* reply) override {
    return ChangeEdge(ctx, graph, SocialGraph::kBlock, request, reply);
  }
  Coroutine Unblock(Context& ctx, const Relation& request, Changed* reply) override {
    return ChangeEdge(ctx, block_user, BlockUser::kRemove, request, reply);
  }
  Coroutine ListFollowers(Context& ctx, const UserPage& request, People* reply) override {
    return List(ctx, sessions.Named(ctx, request.name()), graph, SocialGraph::kFollowers, request, reply);
  }
  Coroutine ListFollowing(Context& ctx, const UserPage& request, People* reply) override {
    return List(ctx, sessions.Named(ctx, request.name()), graph, SocialGraph::kFollowees, request, reply);
  }
  Coroutine ListBlocked(Context& ctx, const HomePage& request, People* reply) override {
    return List(ctx, CallerOf(ctx, request), block_user, BlockUser::kList, request, reply);
  }

  Coroutine Compose(Context& ctx, const ComposeRequest& request, Post* reply) override {
    return ForCaller(ctx, compose, ComposePost::kCompose, request, reply, [&](auto& draft, auto caller) {
      draft.set_author(caller);
      draft.set_text(request.text());
      *draft.mutable_media() = request.media();
      draft.set_reply_to(request.reply_to());
      draft.set_repost_of(request.repost_of());
    });
  }
  Coroutine DeletePost(Context& ctx, const PostRequest& request, Changed* reply) override {
    return Delete(ctx, compose, ComposePost::kDelete, request, reply, [&](auto& post, auto caller) {
      post.set_author(caller);
      post.set_post(request.id());
    });
  }

  Coroutine ReadHomeTimeline(Context& ctx, const HomePage& request, Posts* reply) override {
    return ForCaller(ctx, home, HomeTimeline::kRead, request, reply, [&](auto& page, auto caller) {
      page.set_viewer(caller);
      page.set_user(caller);
      SetPage(request, &page);
    });
  }
  Coroutine ReadUserTimeline(Context& ctx, const UserPage& request, Posts* reply) override {
    return ForBoth(ctx, ViewerOf(ctx, request), request, timeline, UserTimeline::kRead, reply,
                   [&](auto& page, auto who) {
                     page.set_viewer(who.by);
                     page.set_user(who.named);
                     SetPage(request, &page);
                   });
  }

  Coroutine UploadMedia(Context& ctx, const MediaUpload& request, MediaItem* reply) override {
    return Upload(ctx, MediaFrontend::kPut, request, reply, [&](auto& file, auto caller) {
      file.set_owner(caller);
      *file.mutable_file() = request.file();
      file.set_size(request.size());
    });
  }
  Coroutine AppendMedia(Context& ctx, const MediaPart& request, MediaItem* reply) override {
    return Upload(ctx, MediaFrontend::kAppend, request, reply, [&](auto& part, auto caller) {
      part.set_owner(caller);
      part.set_id(request.id());
      part.set_from(request.from());
      *part.mutable_part() = request.part();
    });
  }
  Coroutine DownloadMedia(Context& ctx, const PostRequest& request,
                          AsyncStreamWriter<google::api::HttpBody>& stream) override {
    const absl::StatusOr<uint64_t> viewer = co_await ViewerOf(ctx, request);
    if (!viewer.ok()) co_return viewer.status();
    FileQuery query;
    query.set_viewer(*viewer);
    query.set_id(request.id());
    // No file has a validator that If-Range could name.
    if (!ctx.metadata().Find("if-range"))
      query.set_range(std::string(ctx.metadata().Find("range").value_or("")));
    co_return co_await apps::ForwardParts(ctx, media.Get(ctx, kAsync), query, stream);
  }

  Coroutine GetPost(Context& ctx, const PostRequest& request, Post* reply) override {
    const absl::StatusOr<uint64_t> viewer = co_await ViewerOf(ctx, request);
    if (!viewer.ok()) co_return viewer.status();
    co_return co_await views.See(ctx, *viewer, request.id(), reply);
  }

  Coroutine AddFavorite(Context& ctx, const PostRequest& request, Changed* reply) override {
    const absl::StatusOr<uint64_t> caller = co_await CallerOf(ctx, request);
    if (!caller.ok()) co_return caller.status();
    Post post;
    if (absl::Status seen = co_await views.See(ctx, *caller, request.id(), &post); !seen.ok()) co_return seen;
    Liking like;
    like.set_user(*caller);
    like.set_post(post.id());
    like.set_author(post.author().id());
    co_return co_await apps::ForwardNamed(ctx, favorite, Favorite::kAdd, like, reply);
  }

  Coroutine RemoveFavorite(Context& ctx, const PostRequest& request, Changed* reply) override {
    return ForCaller(ctx, favorite, Favorite::kRemove, request, reply, [&](auto& like, auto caller) {
      like.set_user(caller);
      like.set_post(request.id());
    });
  }

  Coroutine ListFavoredBy(Context& ctx, const PostPage& request, People* reply) override {
    return ListAbout(ctx, favorite, Favorite::kBy, request, reply, &Views::Introduce);
  }

  Coroutine ReadFavorites(Context& ctx, const UserPage& request, Posts* reply) override {
    const absl::StatusOr<apps::CallerAndNamed> who =
        co_await sessions.Both(ctx, ViewerOf(ctx, request), request.name());
    if (!who.ok()) co_return who.status();
    const ReactionPage page = PageOf(who->named, request);
    LookRequest look;
    look.set_viewer(who->by);
    if (who->by != who->named) look.add_authors(who->named);
    auto both = co_await WhenAllOk(ctx, Ask(favorite, Favorite::kOf, page),
                                   Ask(block_user, BlockUser::kHidden, look));
    if (!both.ok()) co_return both.status();
    const auto& [ids, hidden] = *both;
    if (!hidden.ids().empty()) co_return absl::OkStatus();
    reply->set_next(NextOf(ids, page));
    co_return co_await views.Show(ctx, who->by, ids, reply);
  }

  Coroutine ReadReplies(Context& ctx, const PostPage& request, Posts* reply) override {
    return ListAbout(ctx, repost_reply, RepostReply::kReplies, request, reply, &Views::Show);
  }
  Coroutine ReadReposts(Context& ctx, const PostPage& request, Posts* reply) override {
    return ListAbout(ctx, repost_reply, RepostReply::kReposts, request, reply, &Views::Show);
  }

  Coroutine SearchPosts(Context& ctx, const SearchRequest& request, Posts* reply) override {
    return apps::ForwardFor(ctx, ViewerOf(ctx, request), search, Search::kQuery, reply,
                            [&](auto& query, auto by) {
                              query.set_viewer(by);
                              query.set_text(request.text());
                              query.set_newest(request.newest());
                              query.set_from(request.from());
                              query.set_limit(request.limit());
                            });
  }

  Coroutine SearchUsers(Context& ctx, const NamePage& request, FoundPeople* reply) override {
    const absl::StatusOr<uint64_t> viewer = co_await ViewerOf(ctx, request);
    if (!viewer.ok()) co_return viewer.status();
    auto [found] = co_await WhenAll(ctx, Ask(user, User::kSearch, request));
    if (!found.ok()) co_return found.status();
    *reply = *std::move(found);
    co_return co_await views.LeaveOutHidden(ctx, *viewer, reply->mutable_people());
  }

  Coroutine SendMessage(Context& ctx, const MessageRequest& request, DirectMessage* reply) override {
    return ForBoth(ctx, CallerOf(ctx, request), request, messaging, DirectMessaging::kSend, reply,
                   [&](auto& draft, auto who) {
                     draft.set_from(who.by);
                     draft.set_to(who.named);
                     draft.set_text(request.text());
                   });
  }
  Coroutine ListConversations(Context& ctx, const HomePage& request, Conversations* reply) override {
    return ForCaller(ctx, messaging, DirectMessaging::kList, request, reply, [&](auto& page, auto caller) {
      page.set_user(caller);
      SetPage(request, &page);
    });
  }
  Coroutine ReadConversation(Context& ctx, const UserPage& request, DirectMessages* reply) override {
    return ForBoth(ctx, CallerOf(ctx, request), request, messaging, DirectMessaging::kRead, reply,
                   [&](auto& page, auto who) {
                     page.set_user(who.by);
                     page.set_other(who.named);
                     SetPage(request, &page);
                   });
  }
  Coroutine DeleteMessage(Context& ctx, const PostRequest& request, Changed* reply) override {
    return Delete(ctx, messaging, DirectMessaging::kDelete, request, reply, [&](auto& message, auto caller) {
      message.set_message(request.id());
      message.set_user(caller);
    });
  }

  Coroutine GetStatistics(Context& ctx, const UserRequest& request, Statistics* reply) override {
    return ForBoth(ctx, ViewerOf(ctx, request), request, statistics, UserStatistics::kOf, reply,
                   [](auto& query, auto who) {
                     query.set_viewer(who.by);
                     query.set_user(who.named);
                   });
  }

  Coroutine GetProfile(Context& ctx, const TokenRequest& request, Profile* reply) override {
    const absl::StatusOr<uint64_t> caller = co_await CallerOf(ctx, request);
    if (!caller.ok()) co_return caller.status();
    Ids id;
    id.add_ids(*caller);
    StatisticsQuery query;
    query.set_viewer(*caller);
    query.set_user(*caller);
    auto both =
        co_await WhenAllOk(ctx, Ask(user, User::kById, id), Ask(statistics, UserStatistics::kOf, query));
    if (!both.ok()) co_return both.status();
    auto& [people, counts] = *both;
    if (people.people().empty()) co_return apps::GoneError();
    reply->mutable_user()->Swap(people.mutable_people(0));
    reply->mutable_statistics()->Swap(&counts);
    co_return absl::OkStatus();
  }

  Coroutine SuggestUsers(Context& ctx, const HomePage& request, People* reply) override {
    return ForCaller(ctx, recommender, UserRecommender::kRecommend, request, reply, RecommendFor(request));
  }
  Coroutine ShowAds(Context& ctx, const HomePage& request, AdList* reply) override {
    return ForCaller(ctx, ads, Ads::kShow, request, reply, RecommendFor(request));
  }
  Coroutine CreateAd(Context& ctx, const AdRequest& request, Ad* reply) override {
    return ForCaller(ctx, ads, Ads::kCreate, request, reply, [&](auto& what, auto caller) {
      what.set_user(caller);
      *what.mutable_ad() = request.ad();
    });
  }
  Coroutine ListOwnAds(Context& ctx, const TokenRequest& request, AdList* reply) override {
    return ForCaller(ctx, ads, Ads::kListOwn, request, reply,
                     [](auto& of, auto caller) { of.set_user(caller); });
  }
  Coroutine ClickAd(Context& ctx, const PostRequest& request, Ad* reply) override {
    return ForCaller(ctx, ads, Ads::kClick, request, reply, AdOf(request));
  }
  Coroutine DeleteAd(Context& ctx, const PostRequest& request, Changed* reply) override {
    return Delete(ctx, ads, Ads::kDelete, request, reply, AdOf(request));
  }

  std::vector<DeclaredPath> Paths() const override {
    std::vector<DeclaredPath> paths;
    // These, and `user`.
    const auto declare = [&](std::initializer_list<const char*> methods, std::vector<PathCall> calls) {
      calls.emplace_back(user);
      for (const char* method : methods) paths.push_back({method, calls});
    };
    paths.push_back({"ExpandUrl", {url_shorten}});
    declare({"Register", "Login", "Logout", "ChangePassword"}, {});
    declare({"DeleteUser"},
            {graph, block_user, compose, PostStorage::kServiceName, favorite, messaging, ads, home});
    declare({"Follow", "Unfollow", "Block", "ListFollowers", "ListFollowing"}, {graph});
    declare({"Unblock", "ListBlocked", "SearchUsers"}, {block_user});
    declare({"Compose", "DeletePost"}, {compose});
    declare({"ReadHomeTimeline"}, {home});
    declare({"ReadUserTimeline"}, {timeline});
    declare({"UploadMedia", "AppendMedia", "DownloadMedia"}, {media});
    declare({"GetPost"}, {ReadPost::kServiceName});
    declare({"AddFavorite"}, {ReadPost::kServiceName, favorite});
    declare({"RemoveFavorite"}, {favorite});
    declare({"ListFavoredBy", "ReadFavorites"}, {ReadPost::kServiceName, favorite, block_user});
    declare({"ReadReplies", "ReadReposts"}, {ReadPost::kServiceName, repost_reply});
    declare({"SearchPosts"}, {search});
    declare({"SendMessage", "ReadConversation", "ListConversations", "DeleteMessage"}, {messaging});
    declare({"GetStatistics", "GetProfile"}, {statistics});
    declare({"SuggestUsers"}, {recommender});
    declare({"ShowAds", "CreateAd", "ListOwnAds", "ClickAd", "DeleteAd"}, {ads});
    return paths;
  }

  Co<absl::StatusOr<uint64_t>> CallerOf(Context& ctx, const auto& of) const {
    return sessions.CallerOf(ctx, of.token());
  }
  Co<absl::StatusOr<uint64_t>> ViewerOf(Context& ctx, const auto& of) const {
    return sessions.ViewerOf(ctx, of.token());
  }
  template <class Stub, class Inner, class Request, class Reply, class Fill>
  Coroutine ForCaller(Context& ctx, const Stub& stub, const Method<Inner, Reply>& method,
                      const Request& request, Reply* reply, Fill fill) {
    return apps::ForwardFor(ctx, CallerOf(ctx, request), stub, method, reply, fill);
  }
  // A deleted user uploads no more. The services of the media do not know of it.
  template <class Inner, class Fill>
  Coroutine Upload(Context& ctx, const Method<Inner, MediaItem>& method, const auto& request,
                   MediaItem* reply, Fill fill) {
    return apps::ForwardFor(ctx, accounts.Present(ctx, CallerOf(ctx, request)), media, method, reply, fill);
  }
  template <class Stub, class Inner, class Fill>
  Coroutine Delete(Context& ctx, const Stub& stub, const Method<Inner, Nothing>& method, const auto& request,
                   Changed* reply, Fill fill) {
    Nothing nothing;
    reply->set_changed(true);
    co_return co_await ForCaller(ctx, stub, method, request, &nothing, fill);
  }
  // The same for two: who asks, and the user that the request names.
  template <class Stub, class Inner, class Request, class Reply, class Fill>
  Coroutine ForBoth(Context& ctx, Co<absl::StatusOr<uint64_t>> by, const Request& request, const Stub& stub,
                    const Method<Inner, Reply>& method, Reply* reply, Fill fill) {
    const absl::StatusOr<apps::CallerAndNamed> who =
        co_await sessions.Both(ctx, std::move(by), NameIn(request));
    if (!who.ok()) co_return who.status();
    Inner inner;
    fill(inner, *who);
    co_return co_await apps::ForwardNamed(ctx, stub, method, inner, reply);
  }
  static const std::string& NameIn(const auto& request) { return request.name(); }
  static const std::string& NameIn(const MessageRequest& request) { return request.to(); }

  static void SetPage(const auto& request, auto* page) {
    page->set_before(request.before());
    page->set_limit(request.limit());
  }
  Coroutine ChangeEdge(Context& ctx, const auto& stub, const Method<Edge, Changed>& method,
                       const Relation& request, Changed* reply) {
    return ForBoth(ctx, CallerOf(ctx, request), request, stub, method, reply, [](auto& edge, auto who) {
      edge.set_from(who.by);
      edge.set_to(who.named);
    });
  }

  Coroutine List(Context& ctx, Co<absl::StatusOr<uint64_t>> of, const auto& stub,
                 const Method<EdgePage, Ids>& method, const auto& request, People* reply) {
    const absl::StatusOr<uint64_t> whose = co_await std::move(of);
    if (!whose.ok()) co_return whose.status();
    EdgePage page;
    page.set_user(*whose);
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
    const absl::StatusOr<uint64_t> viewer = co_await ViewerOf(ctx, request);
    if (!viewer.ok()) co_return viewer.status();
    Post post;
    if (absl::Status seen = co_await views.See(ctx, *viewer, request.id(), &post); !seen.ok()) co_return seen;
    const ReactionPage page = PageOf(request.id(), request);
    auto [ids] = co_await WhenAll(ctx, Ask(stub, method, page));
    if (!ids.ok()) co_return ids.status();
    reply->set_next(NextOf(*ids, page));
    co_return co_await (views.*show)(ctx, *viewer, *ids, reply);
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
  const apps::Sessions sessions;
  const Accounts accounts;
  const User::Stub user = env.Stub<User>("user");
  const SocialGraph::Stub graph = env.Stub<SocialGraph>("social-graph");
  const BlockUser::Stub block_user = env.Stub<BlockUser>("block-user");
  const ComposePost::Stub compose = env.Stub<ComposePost>("compose-post");
  const MediaFrontend::Stub media = env.Stub<MediaFrontend>("media-frontend");
  const Views views;
  const Favorite::Stub favorite = env.Stub<Favorite>("favorite");
  const RepostReply::Stub repost_reply = env.Stub<RepostReply>("repost-reply");
  const Search::Stub search = env.Stub<Search>("search");
  const DirectMessaging::Stub messaging = env.Stub<DirectMessaging>("direct-message");
  const UserStatistics::Stub statistics = env.Stub<UserStatistics>("user-statistics");
  const UserRecommender::Stub recommender = env.Stub<UserRecommender>("user-recommender");
  const Ads::Stub ads = env.Stub<Ads>("ads");
  const HomeTimeline::Stub home = env.Stub<HomeTimeline>("home-timeline");
  const UserTimeline::Stub timeline = env.Stub<UserTimeline>("user-timeline");
  const UrlShorten::Stub url_shorten = env.Stub<UrlShorten>("url-shorten");
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
        env.AlsoServe(gateway::MakePage(PageFiles()));
        if (options->wrk2 == "on") {
          env.AlsoServe(apps::ForClients(MakeWrk2(env)));
        } else if (options->wrk2 != "off") {
          return absl::InvalidArgumentError("--wrk2-without-authentication is off or on");
        }
        return apps::ForClients(std::make_unique<FrontEndService>(*std::move(sessions), env));
      }};
}

}  // namespace curtail::social
