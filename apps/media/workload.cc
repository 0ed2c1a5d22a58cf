// SPDX-License-Identifier: Apache-2.0
#include "apps/media/workload.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/media/data.h"
#include "apps/media/films.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "media.curtail.h"

namespace curtail::media {
namespace {

constexpr uint32_t kPageLength = 10;
constexpr uint32_t kMostLoadDays = 7;
constexpr size_t kTextBytes = 256;  // as DeathStarBench's client writes

std::vector<std::string_view> Mixes() { return {"mixed", "browse", "compose", "rent"}; }

enum class Kind : uint8_t { kPage, kSearch, kOfMovie, kOfUser, kCompose, kRent };

struct Share {
  Kind kind;
  double share;  // of 1
};
constexpr Share kBrowse[] = {
    {Kind::kPage, 0.60}, {Kind::kSearch, 0.20}, {Kind::kOfMovie, 0.14}, {Kind::kOfUser, 0.06}};
constexpr Share kMixed[] = {{Kind::kPage, 0.45},   {Kind::kSearch, 0.15},  {Kind::kOfMovie, 0.13},
                            {Kind::kOfUser, 0.07}, {Kind::kCompose, 0.10}, {Kind::kRent, 0.10}};

// All but the viewing of a review follows from the seed: each has another, from a random number on, as a second review of a
// viewing is refused.
class MediaWorkload final : public Workload {
 public:
  MediaWorkload(std::vector<apps::LoadUser> users, std::vector<KnownFilm> films, std::string mix,
                uint64_t seed, ItemChoice choice)
      : users_(std::move(users)),
        films_(std::move(films)),
        mix_(std::move(mix)),
        seed_(seed),
        choice_(std::move(choice)),
        next_viewing_((uint64_t{std::random_device()()} << 30 | std::random_device()() >> 2) + 1) {}

  std::string_view method() const override {
    return Path(mix_ == "compose" ? Kind::kCompose : mix_ == "rent" ? Kind::kRent : Kind::kPage);
  }
  std::string_view MethodOf(uint64_t index) const override {
    Rng rng = RngOf(index);
    return Path(KindOf(rng));
  }

  std::string Request(uint64_t index) const override {
    Rng rng = RngOf(index);
    const Kind kind = KindOf(rng);
    const KnownFilm& film = films_[rng.Below(films_.size())];
    const apps::LoadUser& user = users_[choice_.Index(index)];
    if (kind == Kind::kSearch) {
      SearchRequest request;
      request.set_text(WordsOf(film.title.title()));
      request.set_limit(kPageLength);
      return request.SerializeAsString();
    }
    if (kind == Kind::kOfUser) {
      UserReviewPage page;
      page.set_name(user.name);
      page.set_limit(kPageLength);
      return page.SerializeAsString();
    }
    if (kind == Kind::kRent) {
      RentRequest request;
      request.set_token(user.token);
      request.set_movie(film.id);
      request.set_days(1 + static_cast<uint32_t>(rng.Below(kMostLoadDays)));
      return request.SerializeAsString();
    }
    if (kind != Kind::kCompose) {
      MovieRequest request;
      request.set_movie(film.id);
      request.set_limit(kPageLength);
      return request.SerializeAsString();
    }
    ReviewRequest review;
    review.set_token(user.token);
    review.set_title(film.title.title());
    review.set_year(film.title.year());
    review.set_text(GenerateText(rng, kTextBytes));
    review.set_stars(static_cast<uint32_t>(rng.Below(11)));
    review.set_viewing(next_viewing_.fetch_add(1, std::memory_order_relaxed));
    return review.SerializeAsString();
  }

  // A page is right if it is the movie's and lacks no part; a search, if it finds a movie; a list, if it goes from new to old; a review, if it is the
  // caller's; a rental, if it is active.
  double Score(uint64_t index, std::string_view reply) const override {
    Rng rng = RngOf(index);
    const Kind kind = KindOf(rng);
    const uint64_t movie = films_[rng.Below(films_.size())].id, user = users_[choice_.Index(index)].id;
    const auto parsed = [&](auto& message) {
      return message.ParseFromArray(reply.data(), static_cast<int>(reply.size()));
    };
    if (kind == Kind::kCompose) {
      Review review;
      return parsed(review) && review.author().id() == user && review.movie() == movie ? 1 : 0;
    }
    if (kind == Kind::kRent) {
      Rental rental;
      return parsed(rental) && rental.movie() == movie && rental.state() == Rental::ACTIVE ? 1 : 0;
    }
    if (kind == Kind::kPage) {
      MoviePage page;
      return parsed(page) && page.movie().id() == movie && page.missing().empty() &&
                     Are(page.reviews(), movie, 0)
                 ? 1
                 : 0;
    }
    if (kind == Kind::kSearch) {
      MovieList found;
      return parsed(found) && !found.movies().empty() ? 1 : 0;
    }
    ReviewList list;
    return parsed(list) &&
                   Are(list.reviews(), kind == Kind::kOfMovie ? movie : 0, kind == Kind::kOfUser ? user : 0)
               ? 1
               : 0;
  }
  std::string_view score_name() const override { return "right"; }

 private:
  static std::string_view Path(Kind kind) {
    if (kind == Kind::kPage) return Media::kGetMovie.path;
    if (kind == Kind::kSearch) return Media::kSearchMovies.path;
    if (kind == Kind::kRent) return Media::kRentMovie.path;
    if (kind == Kind::kOfMovie) return Media::kListMovieReviews.path;
    return kind == Kind::kOfUser ? Media::kListUserReviews.path : Media::kCompose.path;
  }
  // The first two words of a title; some have none.
  static std::string WordsOf(const std::string& title) {
    std::istringstream words(title);
    std::string text;
    int count = 0;
    for (std::string word; count < 2 && words >> word;) {
      if (std::ranges::none_of(word, [](unsigned char c) { return c < 128 && std::isalnum(c); })) continue;
      text += Join(count++ == 0 ? "" : " ", word);
    }
    return count == 0 ? "film" : text;
  }

  // Of the movie, of the author, the newest first; 0: of any.
  static bool Are(const google::protobuf::RepeatedPtrField<Review>& reviews, uint64_t movie,
                  uint64_t author) {
    uint64_t before = UINT64_MAX;
    for (const Review& review : reviews) {
      if (review.id() >= before || (movie != 0 && review.movie() != movie) ||
          (author != 0 && review.author().id() != author))
        return false;
      before = review.id();
    }
    return true;
  }

  // The first choice that a request makes.
  Kind KindOf(Rng& rng) const {
    double share = rng.Uniform01();
    if (mix_ == "compose") return Kind::kCompose;
    if (mix_ == "rent") return Kind::kRent;
    for (const Share& one : mix_ == "browse" ? std::span<const Share>(kBrowse) : kMixed) {
      if (share < one.share) return one.kind;
      share -= one.share;
    }
    return Kind::kPage;
  }
  Rng RngOf(uint64_t index) const { return Rng(seed_ * 0x9E3779B97F4A7C15u + index); }

  // Immutable after construction.
  const std::vector<apps::LoadUser> users_;
  const std::vector<KnownFilm> films_;
  const std::string mix_;
  const uint64_t seed_;
  const ItemChoice choice_;
  // Atomic; relaxed: only unique.
  mutable std::atomic<uint64_t> next_viewing_;
};

absl::StatusOr<std::unique_ptr<Workload>> MakeMediaWorkload(std::vector<apps::LoadUser> users,
                                                            const apps::UserWorkloadOptions& options) {
  absl::StatusOr<std::vector<KnownFilm>> films = ReadKnownFilms(options.folder);
  if (!films.ok()) return films.status();
  absl::StatusOr<ItemChoice> choice = apps::SendersOf(options, Mixes(), users.size());
  if (!choice.ok()) return choice.status();
  return std::make_unique<MediaWorkload>(std::move(users), *std::move(films), options.mix, options.seed,
                                         *std::move(choice));
}

}  // namespace

apps::AppRequests Requests() {
  return apps::UserRequests("curtail.media.Media", kApplication, Mixes(), MakeMediaWorkload);
}

}  // namespace curtail::media
