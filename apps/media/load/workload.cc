// SPDX-License-Identifier: Apache-2.0
#include "apps/media/load/workload.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/kit/load/mixed_workload.h"
#include "apps/media/data.h"
#include "apps/media/load/films.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "media.curtail.h"

namespace curtail::media {
namespace {

using apps::LoadUser;
using apps::RequestKind;
using Mix = apps::MixedWorkload::Mix;

constexpr uint32_t kPageLength = 10;
constexpr uint32_t kMostLoadDays = 7;
constexpr size_t kTextBytes = 256;  // as DeathStarBench's client writes

std::vector<std::string_view> Mixes() { return {"mixed", "browse", "compose", "rent", "open"}; }

// The first two words of a title; some have none.
std::string WordsOf(const std::string& title) {
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
bool Are(const google::protobuf::RepeatedPtrField<Review>& reviews, uint64_t movie, uint64_t author) {
  uint64_t before = UINT64_MAX;
  for (const Review& review : reviews) {
    if (review.id() >= before || (movie != 0 && review.movie() != movie) ||
        (author != 0 && review.author().id() != author))
      return false;
    before = review.id();
  }
  return true;
}

// The kinds of requests, of users at films. A request draws its film first, so that the reply can be compared with it.
class Kinds {
 public:
  Kinds(apps::Senders<LoadUser> users, std::vector<KnownFilm> films)
      : users_(std::move(users)), films_(std::make_shared<const std::vector<KnownFilm>>(std::move(films))) {}

  // A page is right if it is the movie's and lacks no part.
  RequestKind Page() const {
    return AtFilm(
        Media::kGetMovie,
        [](Rng&, const KnownFilm& film, MovieRequest& request) {
          request.set_movie(film.id);
          request.set_limit(kPageLength);
        },
        [](const KnownFilm& film, const LoadUser&, const MoviePage& page) {
          return page.movie().id() == film.id && page.missing().empty() && Are(page.reviews(), film.id, 0);
        });
  }
  RequestKind Search() const {
    return AtFilm(
        Media::kSearchMovies,
        [](Rng&, const KnownFilm& film, SearchRequest& request) {
          request.set_text(WordsOf(film.title.title()));
          request.set_limit(kPageLength);
        },
        [](const KnownFilm&, const LoadUser&, const MovieList& found) { return !found.movies().empty(); });
  }
  RequestKind OfMovie() const {
    return AtFilm(
        Media::kListMovieReviews,
        [](Rng&, const KnownFilm& film, MovieRequest& request) {
          request.set_movie(film.id);
          request.set_limit(kPageLength);
        },
        [](const KnownFilm& film, const LoadUser&, const ReviewList& list) {
          return Are(list.reviews(), film.id, 0);
        });
  }
  RequestKind OfUser() const {
    return apps::KindOf(
        users_, Media::kListUserReviews,
        [](Rng&, const LoadUser& user, UserReviewPage& page) {
          page.set_name(user.name);
          page.set_limit(kPageLength);
        },
        [](Rng&, const LoadUser& user, const ReviewList& list) { return Are(list.reviews(), 0, user.id); });
  }
  // Each review has another viewing, from a random number on, as a second review of a viewing is refused. All else follows from the seed.
  RequestKind Compose() const {
    const auto next = std::make_shared<std::atomic<uint64_t>>(
        (uint64_t{std::random_device()()} << 30 | std::random_device()() >> 2) + 1);
    return AtFilm(
        Media::kCompose,
        [next](Rng& rng, const KnownFilm& film, ReviewRequest& review) {
          review.set_title(film.title.title());
          review.set_year(film.title.year());
          review.set_text(GenerateText(rng, kTextBytes));
          review.set_stars(static_cast<uint32_t>(rng.Below(11)));
          review.set_viewing(next->fetch_add(1, std::memory_order_relaxed));
        },
        [](const KnownFilm& film, const LoadUser& user, const Review& review) {
          return review.author().id() == user.id && review.movie() == film.id;
        });
  }
  RequestKind Rent() const {
    return AtFilm(
        Media::kRentMovie,
        [](Rng& rng, const KnownFilm& film, RentRequest& request) {
          request.set_movie(film.id);
          request.set_days(1 + static_cast<uint32_t>(rng.Below(kMostLoadDays)));
        },
        [](const KnownFilm& film, const LoadUser&, const Rental& rental) {
          return rental.movie() == film.id && rental.state() == Rental::ACTIVE;
        });
  }
  // The movie that `media fill` has rented for the user.
  RequestKind Open() const {
    return apps::KindOf(
        users_, Media::kOpenStream,
        [](Rng&, const LoadUser& user, MovieRequest& request) {
          request.set_movie(user.more.empty() ? 0 : std::stoull(user.more[0]));
        },
        [](const StreamTicket& ticket) { return !ticket.pass().empty() && ticket.ends_ms() > 0; });
  }

 private:
  template <class Request, class Reply, class Fill, class IsRight>
  RequestKind AtFilm(const Method<Request, Reply>& method, Fill fill, IsRight is_right) const {
    const auto draw = [films = films_](Rng& rng) -> const KnownFilm& {
      return (*films)[rng.Below(films->size())];
    };
    return apps::KindOf(
        users_, method,
        [=](Rng& rng, const LoadUser&, Request& request) {
          const KnownFilm& film = draw(rng);
          fill(rng, film, request);
        },
        [=](Rng& rng, const LoadUser& user, const Reply& reply) { return is_right(draw(rng), user, reply); });
  }

  const apps::Senders<LoadUser> users_;
  const std::shared_ptr<const std::vector<KnownFilm>> films_;
};

Mix MixOf(const std::string& name, const Kinds& kinds, bool videos) {
  if (name == "compose") return {{kinds.Compose(), 1}};
  if (name == "rent") return {{kinds.Rent(), 1}};
  if (name == "open") return {{kinds.Open(), 1}};
  if (name == "browse")
    return {{kinds.Page(), 60}, {kinds.Search(), 20}, {kinds.OfMovie(), 14}, {kinds.OfUser(), 6}};
  Mix mixed = {{kinds.Page(), 45},    {kinds.Search(), 15}, {kinds.OfMovie(), 10},
               {kinds.Compose(), 10}, {kinds.Rent(), 10},   {kinds.OfUser(), 5}};
  if (videos) mixed.emplace_back(kinds.Open(), 5);
  return mixed;
}

absl::StatusOr<std::unique_ptr<Workload>> MakeMediaWorkload(std::vector<LoadUser> users,
                                                            const apps::UserWorkloadOptions& options) {
  absl::StatusOr<std::vector<KnownFilm>> films = ReadKnownFilms(options.folder);
  if (!films.ok()) return films.status();
  absl::StatusOr<ItemChoice> choice = apps::SendersOf(options, Mixes(), users.size());
  if (!choice.ok()) return choice.status();
  std::error_code error;
  const bool videos = std::filesystem::exists(options.folder + "/videos/0/main.m3u8", error);
  const Kinds kinds(std::make_shared<const std::vector<LoadUser>>(std::move(users)), *std::move(films));
  return std::make_unique<apps::MixedWorkload>(MixOf(options.mix, kinds, videos), options.seed,
                                               *std::move(choice));
}

}  // namespace

apps::AppRequests Requests() {
  return apps::UserRequests("curtail.media.Media", kApplication, Mixes(), MakeMediaWorkload);
}

}  // namespace curtail::media
