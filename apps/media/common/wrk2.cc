// SPDX-License-Identifier: Apache-2.0
#include "apps/media/common/wrk2.h"

#include <atomic>
#include <random>
#include <string>
#include <utility>

#include "apps/media/common/index_jobs.h"
#include "apps/media/data.h"
#include "curtail/base/mix.h"
#include "media_wrk2.curtail.h"

namespace curtail::media {
namespace {

using apps::User;
using google::api::HttpBody;

// The people of the release are casts of one name, under ids that no movie has.
constexpr uint64_t kPeople = uint64_t{1} << 62;

absl::Status Incomplete() { return absl::InvalidArgumentError("Incomplete arguments"); }
bool IsId(uint64_t id) { return id != 0 && id < kPeople; }

// A write that may be repeated.
absl::Status Once(const absl::Status& written) {
  return absl::IsAlreadyExists(written) ? absl::OkStatus() : written;
}

struct Wrk2Service final : Wrk2::CoroutineService {
  Wrk2Service(Env& e, const apps::Sessions& s, WriteReview c) : env(e), sessions(s), compose(std::move(c)) {}

  Coroutine Register(Context& ctx, const Wrk2User& request, HttpBody*) override {
    if (request.first_name().empty() || request.last_name().empty() || request.username().empty() ||
        request.password().empty())
      co_return Incomplete();
    apps::Credentials credentials;
    credentials.set_name(request.username());
    credentials.set_password(request.password());
    auto [session] = co_await WhenAll(ctx, Ask(users, User::kRegister, credentials));
    co_return session.status();
  }

  Coroutine RegisterMovie(Context& ctx, const Wrk2Movie& request, HttpBody*) override {
    if (request.title().empty() || !IsId(request.movie_id())) co_return Incomplete();
    Movie movie;
    movie.set_id(request.movie_id());
    movie.set_title(request.title());
    auto [entered] = co_await WhenAll(ctx, Ask(info, MovieInfo::kWrite, movie));
    co_return Once(entered.status());
  }

  Coroutine WriteMovie(Context& ctx, const Wrk2Movie& request, HttpBody* reply) override {
    apps::Ids people;
    for (const Wrk2Role& role : request.casts()) {
      if (IsId(role.cast_info_id())) people.add_ids(kPeople + role.cast_info_id());
    }
    auto [found] = co_await WhenAll(ctx, Ask(cast, CastInfo::kRead, std::move(people)));
    if (!found.ok()) co_return found.status();
    Cast members;
    members.set_movie(request.movie_id());
    for (const Cast& person : found->casts()) members.add_names(person.names(0));
    if (absl::Status entered = co_await RegisterMovie(ctx, request, reply); !entered.ok()) co_return entered;
    auto put = co_await WhenAll(
        ctx, Ask(cast, CastInfo::kWrite, members),
        Ask(search, Search::kEnqueue,
            IndexJobOf(request.movie_id(), request.title(), /*year=*/0, {}, members.names(), /*plot=*/"")));
    auto& [written, queued] = put;
    absl::Status status = Once(written.status());
    status.Update(queued.status());
    co_return status;
  }

  Coroutine WriteCast(Context& ctx, const Wrk2Cast& request, HttpBody*) override {
    if (request.name().empty() || !IsId(request.cast_info_id())) co_return Incomplete();
    Cast person;
    person.set_movie(kPeople + request.cast_info_id());
    person.add_names(request.name());
    auto [written] = co_await WhenAll(ctx, Ask(cast, CastInfo::kWrite, person));
    co_return Once(written.status());
  }

  Coroutine WritePlot(Context& ctx, const Wrk2Plot& request, HttpBody*) override {
    if (request.plot().empty() || !IsId(request.plot_id())) co_return Incomplete();
    PlotText text;
    text.set_movie(request.plot_id());
    text.set_text(request.plot());
    auto [written] = co_await WhenAll(ctx, Ask(plot, Plot::kWrite, text));
    co_return Once(written.status());
  }

  Coroutine Compose(Context& ctx, const Wrk2Review& request, HttpBody*) override {
    if (request.username().empty() || request.password().empty() || request.title().empty() ||
        !request.has_rating() || request.text().empty())
      co_return Incomplete();
    const absl::StatusOr<uint64_t> author = co_await sessions.Named(ctx, request.username());
    if (!author.ok()) co_return author.status();
    ReviewRequest review;
    review.set_title(request.title());
    review.set_text(request.text());
    review.set_stars(request.rating());
    review.set_viewing(Mix(first_viewing, viewings.fetch_add(1, std::memory_order_relaxed)) >> 1);
    Review written;
    co_return co_await compose(ctx, *author, review, &written);
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Register", {users}},
            {"RegisterMovie", {info}},
            {"WriteMovie", {info, cast, search}},
            {"WriteCast", {cast}},
            {"WritePlot", {plot}},
            {"Compose",
             {users, Authors::kServiceName, MovieId::kServiceName, Rating::kServiceName,
              ReviewIds::kServiceName, Text::kServiceName}}};
  }

  Env& env;
  const apps::Sessions& sessions;
  const WriteReview compose;
  const User::Stub users = env.Stub<User>("user");
  const MovieInfo::Stub info = env.Stub<MovieInfo>("movie-info");
  const CastInfo::Stub cast = env.Stub<CastInfo>("cast-info");
  const Plot::Stub plot = env.Stub<Plot>("plot");
  const Search::Stub search = env.Stub<Search>("search");
  const uint64_t first_viewing = std::random_device()();
  // Atomic; relaxed: only unique.
  std::atomic<uint64_t> viewings{0};
};

}  // namespace

std::unique_ptr<Service> MakeWrk2(Env& env, const apps::Sessions& sessions, WriteReview compose) {
  return std::make_unique<Wrk2Service>(env, sessions, std::move(compose));
}

}  // namespace curtail::media
