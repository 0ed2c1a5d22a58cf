// SPDX-License-Identifier: Apache-2.0
//
// Front end: what clients call. Finds out who calls and whom names mean, and hands on.
#include "apps/kit/for_clients.h"
#include "apps/social/accounts.h"
#include "apps/social/data.h"
#include "apps/social/forward.h"
#include "apps/social/page.h"
#include "apps/social/page_files.h"
#include "apps/social/sessions.h"
#include "apps/social/views.h"
#include "apps/social/wrk2.h"
#include "content.curtail.h"
#include "curtail/gateway/page/page.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "messages.curtail.h"
#include "models.curtail.h"
#include "reactions.curtail.h"
#include "search.curtail.h"
#include "social.curtail.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

// Who calls, and whom it names.
struct CallerAndNamed {
  uint64_t by = 0, named = 0;
};
using SocialId = absl::StatusOr<uint64_t>;
using SocialPair = absl::StatusOr<CallerAndNamed>;

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
  FrontEndService(Sessions s, Env& env)
      : sessions(std::move(s)),
        accounts(env),
        user(env.Stub<User>("user")),
        graph(env.Stub<SocialGraph>("social-graph")),
        block_user(env.Stub<BlockUser>("block-user")),
        compose(env.Stub<ComposePost>("compose-post")),
        media(env.Stub<MediaFrontend>("media-frontend")),
        views(env),
        favorite(env.Stub<Favorite>("favorite")),
        repost_reply(env.Stub<RepostReply>("repost-reply")),
        search(env.Stub<Search>("search")),
        messaging(env.Stub<DirectMessaging>("direct-message")),
        statistics(env.Stub<UserStatistics>("user-statistics")),
        recommender(env.Stub<UserRecommender>("user-recommender")),
        ads(env.Stub<Ads>("ads")),
        home(env.Stub<HomeTimeline>("home-timeline")),
        timeline(env.Stub<UserTimeline>("user-timeline")),
        url_shorten(env.Stub<UrlShorten>("url-shorten")) {}

  Coroutine Register(Context& ctx, const Credentials& request, Session* reply) override {
    Credentials content = request;
    content.clear_password();  // a digest of it would be quicker to try than its hash
    absl::Status named = apps::NameRequest(ctx, User::kRegister.path, content);
    if (!named.ok()) co_return named;
    co_return co_await Forward(ctx, user, User::kRegister, request, reply);
  }
  Coroutine Login(Context& ctx, const Credentials& request, Session* reply) override {
    return Forward(ctx, user, User::kLogin, request, reply);
  }
  Coroutine DeleteUser(Context& ctx, const Credentials& request, Changed* reply) override {
    reply->set_changed(true);
    return accounts.Delete(ctx, request);
  }
  Coroutine ExpandUrl(Context& ctx, const Code& request, Url* reply) override {
    return Forward(ctx, url_shorten, UrlShorten::kExpand, request, reply);
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
    return List(ctx, SocialGraph::kFollowers, request, reply);
  }
  Coroutine ListFollowing(Context& ctx, const UserPage& request, People* reply) override {
    return List(ctx, SocialGraph::kFollowees, request, reply);
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
    const SocialId viewer = sessions.ViewerOf(ctx, request.token());
    return ForBoth(ctx, viewer, request, timeline, UserTimeline::kRead, reply, [&](auto& page, auto who) {
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
    const SocialId viewer = sessions.ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    FileQuery query;
    query.set_viewer(*viewer);
    query.set_id(request.id());
    auto parts = media.Get(ctx, kAsync);
    google::api::HttpBody part;
    while (co_await parts.Write(query) && co_await parts.Read(&part)) {
      if (co_await stream.Write(part)) continue;
      parts.Cancel();
      break;
    }
    co_return co_await parts.Finish();
  }

  Coroutine GetPost(Context& ctx, const PostRequest& request, Post* reply) override {
    const SocialId viewer = sessions.ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    co_return co_await views.See(ctx, *viewer, request.id(), reply);
  }

  Coroutine AddFavorite(Context& ctx, const PostRequest& request, Changed* reply) override {
    const SocialId caller = sessions.CallerOf(ctx, request.token());
    if (!caller.ok()) co_return caller.status();
    Post post;
    if (absl::Status seen = co_await views.See(ctx, *caller, request.id(), &post); !seen.ok()) co_return seen;
    Liking like;
    like.set_user(*caller);
    like.set_post(post.id());
    like.set_author(post.author().id());
    co_return co_await ForwardNamed(ctx, favorite, Favorite::kAdd, like, reply);
  }

  Coroutine RemoveFavorite(Context& ctx, const PostRequest& request, Changed* reply) override {
    return ForCaller(ctx, favorite, Favorite::kRemove, request, reply, [&](auto& like, auto caller) {
      like.set_user(caller);
      like.set_post(request.id());
    });
  }

  Coroutine ListFavoredBy(Context& ctx, const PostPage& request, People* reply) override {
    const SocialId viewer = sessions.ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    Post post;
    if (absl::Status seen = co_await views.See(ctx, *viewer, request.id(), &post); !seen.ok()) co_return seen;
    const ReactionPage page = PageOf(request.id(), request);
    auto [ids] = co_await WhenAll(ctx, Ask(favorite, Favorite::kBy, page));
    if (!ids.ok()) co_return ids.status();
    reply->set_next(NextOf(*ids, page));
    co_return co_await views.Introduce(ctx, *viewer, *ids, reply);
  }

  Coroutine ReadFavorites(Context& ctx, const UserPage& request, Posts* reply) override {
    const SocialPair who = co_await Both(ctx, sessions.ViewerOf(ctx, request.token()), request.name());
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
    return ReadReferences(ctx, RepostReply::kReplies, request, reply);
  }
  Coroutine ReadReposts(Context& ctx, const PostPage& request, Posts* reply) override {
    return ReadReferences(ctx, RepostReply::kReposts, request, reply);
  }

  Coroutine SearchPosts(Context& ctx, const SearchRequest& request, Posts* reply) override {
    const SocialId viewer = sessions.ViewerOf(ctx, request.token());
    return ForUser(ctx, viewer, search, Search::kQuery, reply, [&](auto& query, auto by) {
      query.set_viewer(by);
      query.set_text(request.text());
      query.set_newest(request.newest());
      query.set_from(request.from());
      query.set_limit(request.limit());
    });
  }

  Coroutine SearchUsers(Context& ctx, const NamePage& request, FoundPeople* reply) override {
    const SocialId viewer = sessions.ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    auto [found] = co_await WhenAll(ctx, Ask(user, User::kSearch, request));
    if (!found.ok()) co_return found.status();
    *reply = *std::move(found);
    co_return co_await views.LeaveOutHidden(ctx, *viewer, reply->mutable_people());
  }

  Coroutine SendMessage(Context& ctx, const MessageRequest& request, DirectMessage* reply) override {
    const SocialId caller = sessions.CallerOf(ctx, request.token());
    return ForBoth(ctx, caller, request, messaging, DirectMessaging::kSend, reply,
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
    const SocialId caller = sessions.CallerOf(ctx, request.token());
    return ForBoth(ctx, caller, request, messaging, DirectMessaging::kRead, reply, [&](auto& page, auto who) {
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
    const SocialId viewer = sessions.ViewerOf(ctx, request.token());
    return ForBoth(ctx, viewer, request, statistics, UserStatistics::kOf, reply, [](auto& query, auto who) {
      query.set_viewer(who.by);
      query.set_user(who.named);
    });
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
  Coroutine ClickAd(Context& ctx, const PostRequest& request, Ad* reply) override {
    return ForCaller(ctx, ads, Ads::kClick, request, reply, AdOf(request));
  }
  Coroutine DeleteAd(Context& ctx, const PostRequest& request, Changed* reply) override {
    return Delete(ctx, ads, Ads::kDelete, request, reply, AdOf(request));
  }

  std::vector<DeclaredPath> Paths() const override {
    std::vector<DeclaredPath> paths;
    Declare<User>({"Register", "Login"}, &paths);
    Declare<UrlShorten>({"ExpandUrl"}, &paths);
    Declare<User, SocialGraph, BlockUser, ComposePost, PostStorage, Favorite, DirectMessaging, Ads,
            HomeTimeline>({"DeleteUser"}, &paths);
    Declare<User, SocialGraph>({"Follow", "Unfollow", "Block", "ListFollowers", "ListFollowing"}, &paths);
    Declare<User, BlockUser>({"Unblock", "SearchUsers"}, &paths);
    Declare<ComposePost>({"Compose", "DeletePost"}, &paths);
    Declare<HomeTimeline>({"ReadHomeTimeline"}, &paths);
    Declare<User, UserTimeline>({"ReadUserTimeline"}, &paths);
    Declare<User, MediaFrontend>({"UploadMedia", "AppendMedia"}, &paths);
    Declare<MediaFrontend>({"DownloadMedia"}, &paths);
    Declare<ReadPost>({"GetPost"}, &paths);
    Declare<ReadPost, Favorite>({"AddFavorite"}, &paths);
    Declare<Favorite>({"RemoveFavorite"}, &paths);
    Declare<ReadPost, Favorite, BlockUser, User>({"ListFavoredBy", "ReadFavorites"}, &paths);
    Declare<ReadPost, RepostReply>({"ReadReplies", "ReadReposts"}, &paths);
    Declare<Search>({"SearchPosts"}, &paths);
    Declare<User, DirectMessaging>({"SendMessage", "ReadConversation"}, &paths);
    Declare<DirectMessaging>({"ListConversations", "DeleteMessage"}, &paths);
    Declare<User, UserStatistics>({"GetStatistics"}, &paths);
    Declare<UserRecommender>({"SuggestUsers"}, &paths);
    Declare<Ads>({"ShowAds", "CreateAd", "ClickAd", "DeleteAd"}, &paths);
    return paths;
  }
  template <class... Callee>
  static void Declare(std::initializer_list<const char*> methods, std::vector<DeclaredPath>* paths) {
    for (const char* method : methods) paths->push_back({method, {std::string(Callee::kServiceName)...}});
  }

  // Asks a service for the user `by`; fill(inner, user) writes the request. What it refers to outlives the call.
  template <class Stub, class Inner, class Reply, class Fill>
  static Coroutine ForUser(Context& ctx, SocialId by, const Stub& stub, const Method<Inner, Reply>& method,
                           Reply* reply, Fill fill) {
    if (!by.ok()) co_return by.status();
    Inner inner;
    fill(inner, *by);
    co_return co_await ForwardNamed(ctx, stub, method, inner, reply);
  }
  template <class Stub, class Inner, class Request, class Reply, class Fill>
  Coroutine ForCaller(Context& ctx, const Stub& stub, const Method<Inner, Reply>& method,
                      const Request& request, Reply* reply, Fill fill) {
    return ForUser(ctx, sessions.CallerOf(ctx, request.token()), stub, method, reply, fill);
  }
  // A deleted user uploads no more. The services of the media do not know of it.
  template <class Inner, class Fill>
  Coroutine Upload(Context& ctx, const Method<Inner, MediaItem>& method, const auto& request,
                   MediaItem* reply, Fill fill) {
    const SocialId caller = co_await accounts.Present(ctx, sessions.CallerOf(ctx, request.token()));
    co_return co_await ForUser(ctx, caller, media, method, reply, fill);
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
  Coroutine ForBoth(Context& ctx, SocialId by, const Request& request, const Stub& stub,
                    const Method<Inner, Reply>& method, Reply* reply, Fill fill) {
    const SocialPair who = co_await Both(ctx, std::move(by), NameIn(request));
    if (!who.ok()) co_return who.status();
    Inner inner;
    fill(inner, *who);
    co_return co_await ForwardNamed(ctx, stub, method, inner, reply);
  }
  static const std::string& NameIn(const auto& request) { return request.name(); }
  static const std::string& NameIn(const MessageRequest& request) { return request.to(); }

  static void SetPage(const auto& request, auto* page) {
    page->set_before(request.before());
    page->set_limit(request.limit());
  }
  Coroutine ChangeEdge(Context& ctx, const auto& stub, const Method<Edge, Changed>& method,
                       const Relation& request, Changed* reply) {
    const SocialId caller = sessions.CallerOf(ctx, request.token());
    return ForBoth(ctx, caller, request, stub, method, reply, [](Edge& edge, CallerAndNamed who) {
      edge.set_from(who.by);
      edge.set_to(who.named);
    });
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

  Coroutine ReadReferences(Context& ctx, const Method<ReactionPage, Ids>& method, const PostPage& request,
                           Posts* reply) {
    const SocialId viewer = sessions.ViewerOf(ctx, request.token());
    if (!viewer.ok()) co_return viewer.status();
    Post post;
    if (absl::Status seen = co_await views.See(ctx, *viewer, request.id(), &post); !seen.ok()) co_return seen;
    const ReactionPage page = PageOf(request.id(), request);
    auto [ids] = co_await WhenAll(ctx, Ask(repost_reply, method, page));
    if (!ids.ok()) co_return ids.status();
    reply->set_next(NextOf(*ids, page));
    co_return co_await views.Show(ctx, *viewer, *ids, reply);
  }

  static ReactionPage PageOf(uint64_t of, const auto& request) {
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

  Co<SocialPair> Both(Context& ctx, SocialId by, const std::string& name) {
    if (!by.ok()) co_return by.status();
    const SocialId named = co_await Named(ctx, name);
    if (!named.ok()) co_return named.status();
    co_return CallerAndNamed{*by, *named};
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

  const Sessions sessions;
  const Accounts accounts;
  const User::Stub user;
  const SocialGraph::Stub graph;
  const BlockUser::Stub block_user;
  const ComposePost::Stub compose;
  const MediaFrontend::Stub media;
  const Views views;
  const Favorite::Stub favorite;
  const RepostReply::Stub repost_reply;
  const Search::Stub search;
  const DirectMessaging::Stub messaging;
  const UserStatistics::Stub statistics;
  const UserRecommender::Stub recommender;
  const Ads::Stub ads;
  const HomeTimeline::Stub home;
  const UserTimeline::Stub timeline;
  const UrlShorten::Stub url_shorten;
};

HostedService HostedFrontEnd() {
  struct Options {
    DataOptions data;
    std::string wrk2 = "off";
  };
  auto options = std::make_shared<Options>();
  return {
      .name = "front-end",
      .calls = {"user", "social-graph", "block-user", "compose-post", "media-frontend", "read-post",
                "favorite", "repost-reply", "search", "direct-message", "user-statistics", "user-recommender",
                "ads", "home-timeline", "user-timeline", "url-shorten", "post-storage"},
      .flags =
          [options](Flags& flags) {
            AddDataFlags(flags, &options->data);
            flags.Add(
                "--wrk2-without-authentication", &options->wrk2,
                "front-end, off or on: the endpoints of DeathStarBench's wrk2 scripts, which trust anybody");
          },
      .make = [options](Env& env) -> MadeService {
        auto sessions = Sessions::Load(options->data);
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
