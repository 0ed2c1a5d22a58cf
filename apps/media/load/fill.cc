// SPDX-License-Identifier: Apache-2.0
#include "apps/media/load/fill.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "apps/kit/data/folder.h"
#include "apps/kit/wall_clock.h"
#include "apps/media/common/rentals.h"
#include "apps/media/data.h"
#include "apps/media/load/films.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "media.curtail.h"

namespace curtail::media {
namespace {

constexpr uint32_t kRentedDays = 30;
constexpr uint64_t kLeastDeposit = 100'000;  // cents of a user who can afford many rentals

class MediaFiller {
 public:
  MediaFiller(const FillOptions& options, std::vector<Film> films)
      : options_(options), films_(std::move(films)), users_(options.users), known_(films_.size()) {}

  absl::Status Enter(uint64_t number, const Media::Stub& stub) {
    apps::Credentials credentials;
    credentials.set_name(Join("user_", number));
    credentials.set_password(apps::PasswordOf(options_.seed, number));
    apps::Session session;
    bool is_new = false;
    absl::Status status = apps::Enter(options_, stub, credentials, &session, &is_new);
    users_[number] = {.id = session.user(), .name = session.name(), .token = session.token()};
    return status.ok() && options_.deposit > 0 ? PayIn(session.token(), stub) : status;
  }

  // Once for each user: the first time.
  absl::Status PayIn(const std::string& token, const Media::Stub& stub) const {
    DepositRequest deposit;
    deposit.set_token(token);
    deposit.set_cents(static_cast<int64_t>(options_.deposit));
    Wallet wallet;
    Context ctx(FromSeconds(options_.timeout_s));
    ctx.AddMetadata("idempotency-key", "media fill");
    absl::Status status = stub.Deposit(ctx, deposit, &wallet);
    return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
  }

  // Adds a movie, or finds it if it is there.
  absl::Status AddMovie(uint64_t number, const Media::Stub& stub) {
    Film& film = films_[number];
    NewMovie movie;
    movie.set_token(users_[number % users_.size()].token);
    movie.set_title(film.title());
    movie.set_year(film.year());
    movie.mutable_genres()->Swap(film.mutable_genres());
    movie.mutable_cast()->Swap(film.mutable_cast());
    movie.set_plot(film.extract());
    Movie added;
    Context adding(FromSeconds(options_.timeout_s)), finding(FromSeconds(options_.timeout_s));
    absl::Status status = stub.AddMovie(adding, movie, &added);
    MovieTitle& title = known_[number].title;
    title.set_title(film.title());
    title.set_year(film.year());
    if (absl::IsAlreadyExists(status)) status = stub.FindMovie(finding, title, &added);
    known_[number].id = added.id();
    return status;
  }

  // A movie for a month, for streams of a load test. A user who has it for another day, or cannot pay, rents none.
  absl::Status RentMovie(uint64_t number, const Media::Stub& stub) {
    const uint64_t movie = known_[number % known_.size()].id;
    users_[number].more.push_back(Join(movie));
    const auto lasts = [movie, tomorrow = apps::NowMs() + kDayMs](const Rental& one) {
      return one.movie() == movie && one.state() == Rental::ACTIVE && one.ends_ms() > tomorrow;
    };
    RentalPage page;
    page.set_token(users_[number].token);
    page.set_limit(100);
    do {
      Context ctx(FromSeconds(options_.timeout_s));
      RentalList had;
      absl::Status status = stub.ListRentals(ctx, page, &had);
      if (!status.ok() || std::ranges::any_of(had.rentals(), lasts)) return status;
      page.set_before(had.next());
    } while (page.before() != 0);
    RentRequest request;
    request.set_token(users_[number].token);
    request.set_movie(movie);
    request.set_days(kRentedDays);
    Rental rental;
    Context ctx(FromSeconds(options_.timeout_s));
    absl::Status status = stub.RentMovie(ctx, request, &rental);
    return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
  }

  absl::Status WriteReview(uint64_t number, const Media::Stub& stub) const {
    Rng rng(options_.seed + number);
    const uint64_t movie = rng.Below(known_.size()), user = rng.Below(users_.size());
    const MovieTitle& title = known_[movie].title;
    ReviewRequest review;
    review.set_token(users_[user].token);
    review.set_title(title.title());
    review.set_year(title.year());
    review.set_text(GenerateText(rng, 256));
    review.set_stars(StarsOf(user, movie, rng));
    Review written;
    Context ctx(FromSeconds(options_.timeout_s));
    absl::Status status = stub.Compose(ctx, review, &written);
    // The second is of one user and movie by chance, or of an earlier run.
    return absl::IsAborted(status) || absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
  }

  // How well the tastes of a user and a movie agree, and some chance.
  uint32_t StarsOf(uint64_t user, uint64_t movie, Rng& chance) const {
    constexpr int kTastes = 3;
    Rng users(options_.seed ^ (user << 1)), movies(options_.seed ^ (movie << 1 | 1));
    double stars = 4.5 + 2 * chance.Uniform01();
    for (int i = 0; i < kTastes; ++i) stars += 4 * (2 * users.Uniform01() - 1) * (2 * movies.Uniform01() - 1);
    return static_cast<uint32_t>(std::lround(std::clamp(stars, 0.0, 10.0)));
  }

  const std::vector<apps::LoadUser>& users() const { return users_; }
  const std::vector<KnownFilm>& known() const { return known_; }

 private:
  const FillOptions& options_;
  std::vector<Film> films_;  // this and the next two by number; each written by one thread
  std::vector<apps::LoadUser> users_;
  std::vector<KnownFilm> known_;
};

}  // namespace

absl::Status Fill(const FillOptions& options) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, options.data);
  if (!folder.ok()) return folder.status();
  absl::StatusOr<std::vector<Film>> films =
      options.films == "none" ? GenerateFilms(options.seed, options.movies) : ReadFilms(options.films);
  if (!films.ok()) return films.status();
  const uint64_t movies = films->size();
  MediaFiller filler(options, *std::move(films));
  const auto all = [&](const char* what, uint64_t count, auto step) {
    return apps::ForAll(options, what, count, [&](uint64_t i, Channel& channel) {
      return (filler.*step)(i, Media::Stub(&channel));
    });
  };
  absl::Status status = all("users", options.users, &MediaFiller::Enter);
  if (status.ok()) status = all("movies", movies, &MediaFiller::AddMovie);
  if (status.ok() && movies > 0 && options.deposit >= kLeastDeposit)
    status = all("rentals", options.users, &MediaFiller::RentMovie);
  if (status.ok()) status = apps::WriteLoadUsers(*folder, filler.users());
  if (status.ok()) status = WriteKnownFilms(*folder, filler.known());
  return status.ok() ? all("reviews", movies == 0 ? 0 : options.reviews, &MediaFiller::WriteReview) : status;
}

}  // namespace curtail::media
