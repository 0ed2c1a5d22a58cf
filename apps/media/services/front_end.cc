// SPDX-License-Identifier: Apache-2.0
//
// Front end: what clients call. media.proto says who may call, and what other services answer.
#include <atomic>
#include <random>

#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/accounts/sessions.h"
#include "apps/kit/forward.h"
#include "apps/kit/registry/registry.h"
#include "apps/media/common/wrk2.h"
#include "apps/media/data.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/gateway/page/page.h"
#include "curtail/rpc/async_stream.h"
#include "media.curtail.h"
#include "page_files.h"
#include "streams.curtail.h"

namespace curtail::media {

using apps::User;

uint64_t RandomStart() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

struct FrontEndService final : Media::CoroutineService {
  FrontEndService(const apps::Sessions& s, Env& e) : env(e), sessions(s) {}

  Coroutine Register(Context& ctx, const apps::Credentials& request, apps::Session* reply) override {
    return sessions.Register(ctx, request, reply);
  }
  Coroutine Logout(Context& ctx, const apps::TokenRequest& request, apps::Changed* reply) override {
    return sessions.End(ctx, request.token(), reply);
  }

  Coroutine Compose(Context& ctx, const ReviewRequest& request, Review* reply) override {
    ReviewRequest content = request;
    content.clear_token();  // another session may repeat it
    if (absl::Status named = apps::NameRequest(ctx, Media::kCompose.path, content); !named.ok())
      co_return named;
    co_return co_await Write(ctx, apps::CallerOf(ctx), request, reply);
  }

  Coroutine Write(Context& ctx, uint64_t author, const ReviewRequest& request, Review* reply) {
    UploadRequest id;
    id.set_request(Rng(first_request + requests.fetch_add(1, std::memory_order_relaxed)).Next());
    UploadRequest title = id, text = id, opinion = id, user = id;
    title.mutable_title()->set_title(request.title());
    title.mutable_title()->set_year(request.year());
    text.set_text(request.text());
    opinion.mutable_opinion()->set_stars(request.stars());
    opinion.mutable_opinion()->set_viewing(request.viewing());
    user.set_user(author);
    auto put = co_await WhenAll(ctx, Ask(texts, Text::kUpload, text), Ask(ratings, Rating::kUpload, opinion),
                                Ask(movies, MovieId::kUpload, title), Ask(authors, Authors::kUpload, user),
                                Ask(ids, ReviewIds::kUpload, id));
    // The part that completed the review has the answer.
    std::apply([&](auto&... part) { (Take(part, reply), ...); }, put);
    if (reply->id() != 0) co_return absl::OkStatus();
    absl::Status status = apps::FirstErrorOf(put);
    if (status.ok())
      status = apps::ForClients(absl::UnavailableError("a part of the review was lost; try again"));
    co_return status;
  }

  static void Take(absl::StatusOr<Composed>& part, Review* reply) {
    if (part.ok() && part->has_review()) reply->Swap(part->mutable_review());
  }

  Coroutine CheckStream(Context& ctx, const StreamPass& request, StreamTicket* reply) override {
    auto [video] = co_await WhenAll(ctx, Ask(streaming, Streaming::kCheck, request));
    if (!video.ok()) co_return video.status();
    ctx.AddInitialMetadata("video", video->name());
    reply->set_pass(request.pass());
    co_return absl::OkStatus();
  }

  Coroutine WatchMovie(Context& ctx, const WatchRequest& request,
                       AsyncStreamWriter<google::api::HttpBody>& stream) override {
    StreamOrder order;
    order.set_user(apps::CallerOf(ctx));
    order.set_movie(request.movie());
    order.set_rendition(request.rendition());
    order.set_from_ms(request.from_ms());
    co_return co_await apps::ForwardParts(ctx, streaming.Watch(ctx, order, kAsync), stream);
  }
  Coroutine GetStreamFile(Context& ctx, const StreamPass& request,
                          AsyncStreamWriter<google::api::HttpBody>& stream) override {
    if (const auto range = ctx.metadata().Find("range")) ctx.AddMetadata("range", *range);
    co_return co_await apps::ForwardParts(ctx, files.Get(ctx, request, kAsync), stream);
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Register", {User::kServiceName}},
            {"Logout", {User::kServiceName}},
            {"Compose", {ids, movies, texts, ratings, authors}},
            {"CheckStream", {streaming}},
            {"GetStreamFile", {files}},
            {"WatchMovie", {streaming}}};
  }

  Env& env;
  const apps::Sessions& sessions;
  const ReviewIds::Stub ids = env.Stub<ReviewIds>("unique-id");
  const MovieId::Stub movies = env.Stub<MovieId>("movie-id");
  const Text::Stub texts = env.Stub<Text>("text");
  const Rating::Stub ratings = env.Stub<Rating>("rating");
  const Authors::Stub authors = env.Stub<Authors>("user");
  const Streaming::Stub streaming = env.Stub<Streaming>("streaming");
  const MovieFiles::Stub files = env.Stub<MovieFiles>("streaming");
  // Numbers of requests: random, as other front ends have theirs.
  const uint64_t first_request = RandomStart();
  std::atomic<uint64_t> requests{0};
};

MadeService MakeFrontEnd(Env& env, const apps::DataOptions& data, const std::string& wrk2) {
  if (wrk2 != "on" && wrk2 != "off")
    return absl::InvalidArgumentError(Join("--wrk2-without-authentication: \"", wrk2, "\" is not off or on"));
  auto sessions = apps::Sessions::Load(data, env.Stub<User>("user"));
  if (!sessions.ok()) return sessions.status();
  const apps::Sessions& kept = env.Keep(std::make_unique<apps::Sessions>(*std::move(sessions)));
  const apps::Peers peers = apps::PeersOf(env);
  auto front = std::make_unique<FrontEndService>(kept, env);
  auto made = MakeWrk2(env, kept,
                       [to = front.get()](Context& ctx, uint64_t author, const ReviewRequest& request,
                                          Review* reply) { return to->Write(ctx, author, request, reply); });
  if (wrk2 == "on") {
    MadeService checked = apps::ForClients(std::move(made), kept, peers);
    if (!checked.ok()) return checked;
    env.AlsoServe(*std::move(checked));
  }
  env.AlsoServe(gateway::MakePage(PageFiles()));
  auto secret = apps::TokenSecret(data);
  if (!secret.ok()) return secret.status();
  apps::RegisterWhileServing(env, "front-end", *std::move(secret));
  return apps::ForClients(std::move(front), kept, peers);
}

HostedService HostedFrontEnd() {
  struct Options {
    apps::DataOptions data;
    std::string wrk2 = "off";
  };
  auto options = std::make_shared<Options>();
  options->data.application = kApplication;
  return {
      .name = "front-end",
      .flags =
          [options](Flags& flags) {
            apps::AddDataFlags(flags, &options->data);
            flags.Add(
                "--wrk2-without-authentication", &options->wrk2,
                "front-end, off or on: the endpoints of DeathStarBench's wrk2 script, which trust anybody");
          },
      .make = [options](Env& env) { return MakeFrontEnd(env, options->data, options->wrk2); }};
}

}  // namespace curtail::media
