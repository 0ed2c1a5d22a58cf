// SPDX-License-Identifier: Apache-2.0
//
// Front end: what clients call. media.proto says who may call, and what other services answer.
#include <atomic>
#include <random>

#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/accounts/sessions.h"
#include "apps/kit/forward.h"
#include "apps/media/data.h"
#include "curtail/base/rng.h"
#include "curtail/rpc/async_stream.h"
#include "media.curtail.h"
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
    UploadRequest id;
    id.set_request(Rng(first_request + requests.fetch_add(1, std::memory_order_relaxed)).Next());
    UploadRequest title = id, text = id, opinion = id, user = id;
    title.mutable_title()->set_title(request.title());
    title.mutable_title()->set_year(request.year());
    text.set_text(request.text());
    opinion.mutable_opinion()->set_stars(request.stars());
    opinion.mutable_opinion()->set_viewing(request.viewing());
    user.set_user(apps::CallerOf(ctx));
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
    auto parts = streaming.Watch(ctx, order, kAsync);
    for (google::api::HttpBody part; co_await parts.Read(&part);) {
      if (co_await stream.Write(part)) continue;
      parts.Cancel();
      break;
    }
    co_return co_await parts.Finish();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Register", {User::kServiceName}},
            {"Logout", {User::kServiceName}},
            {"Compose", {ids, movies, texts, ratings, authors}},
            {"CheckStream", {streaming}},
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
  // Numbers of requests: random, as other front ends have theirs.
  const uint64_t first_request = RandomStart();
  std::atomic<uint64_t> requests{0};
};

HostedService HostedFrontEnd() {
  return apps::HostedOnData(
      kApplication, "front-end", [](Env& env, const apps::DataOptions& data) -> MadeService {
        auto sessions = apps::Sessions::Load(data, env.Stub<User>("user"));
        if (!sessions.ok()) return sessions.status();
        const apps::Sessions& kept = env.Keep(std::make_unique<apps::Sessions>(*std::move(sessions)));
        return apps::ForClients(std::make_unique<FrontEndService>(kept, env), kept, apps::PeersOf(env));
      });
}

}  // namespace curtail::media
