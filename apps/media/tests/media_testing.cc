// SPDX-License-Identifier: Apache-2.0
#include "apps/media/tests/media_testing.h"

#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "apps/kit/testing/filled_files.h"
#include "curtail/base/strings.h"

namespace curtail::media {
namespace {

// Appends all pages of a list. `list(ctx, before, reply)` gets one.
template <class List>
absl::Status ReadPages(std::vector<Review>* reviews, List list) {
  ReviewList page;
  do {
    const uint64_t before = page.next();
    page.Clear();
    Context ctx(kMaxTestWait);
    if (absl::Status status = list(ctx, before, &page); !status.ok()) return status;
    reviews->insert(reviews->end(), page.reviews().begin(), page.reviews().end());
  } while (page.next() != 0);
  return absl::OkStatus();
}

}  // namespace

apps::Deployed MediaTest::Form(const std::string& folder, const std::string& config, bool monolith) {
  std::vector<std::string> flags;
  if (monolith) {  // tests call more of it than clients may
    for (const char* service : {"compose-review", "rating", "review-storage", "streaming"})
      flags.insert(flags.end(), {"--outside", service});
  }
  return {.config = config,
          .monolith = monolith,
          .set = {"load-balancer.replicas=0", "movie-files.replicas=0", "data=" + folder},
          .options = {.flags = std::move(flags), .admin = true}};
}

void MediaTest::Start(const std::string& config, bool monolith) {
  static apps::FilledFiles filled(
      MEDIA_TOPOLOGY,
      [](const std::string& folder) {
        apps::Deployed form = Form(folder, /*config=*/{}, /*monolith=*/true);
        form.options.flags.push_back("--no-sync");
        return form;
      },
      [](const std::string& target, const std::string& folder) {
        ASSERT_EQ(
            std::system(Join(MEDIA_PROGRAM, " fill --quiet --users ", kUsers, " --movies ", kFilms,
                             " --reviews 0 --deposit ", kDeposit, " --data ", folder, " --target ", target)
                            .c_str()),
            0);
      });
  filled.CopyTo(Folder());
  monolith_ = monolith;
  app_ = apps::StartApp(MEDIA_TOPOLOGY, Form(Folder(), config, monolith));
  front_ = Connect("front-end");
  auto users = apps::ReadLoadUsers(Folder(), "media");
  ASSERT_TRUE(users.ok()) << users.status();
  users_ = *std::move(users);
  auto films = ReadKnownFilms(Folder());
  ASSERT_TRUE(films.ok()) << films.status();
  films_ = *std::move(films);
}

void MediaTest::TearDown() {
  front_.reset();
  if (app_ == nullptr) return;
  const absl::Status ended = app_->Stop();
  EXPECT_TRUE(ended.ok()) << ended;
}

ReviewRequest MediaTest::ReviewOf(size_t user, size_t film, const std::string& text, uint32_t stars) const {
  ReviewRequest request;
  request.set_token(users_[user].token);
  request.set_title(films_[film].title.title());
  request.set_year(films_[film].title.year());
  request.set_text(text);
  request.set_stars(stars);
  return request;
}

absl::Status MediaTest::Compose(const ReviewRequest& request, Review* reply, const std::string& key,
                                Nanos patience) const {
  Context ctx(patience);
  if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
  return media().Compose(ctx, request, reply);
}

absl::Status MediaTest::Page(size_t film, MoviePage* page) const {
  MovieRequest request;
  request.set_movie(films_[film].id);
  Context ctx(kMaxTestWait);
  return media().GetMovie(ctx, request, page);
}

absl::Status MediaTest::ListOfMovie(size_t film, std::vector<Review>* reviews) const {
  return ReadPages(reviews, [&](Context& ctx, uint64_t before, ReviewList* page) {
    MovieRequest request;
    request.set_movie(films_[film].id), request.set_before(before), request.set_limit(3);
    return media().ListMovieReviews(ctx, request, page);
  });
}

absl::Status MediaTest::ListOfUser(size_t user, std::vector<Review>* reviews) const {
  return ReadPages(reviews, [&](Context& ctx, uint64_t before, ReviewList* page) {
    UserReviewPage request;
    request.set_name(users_[user].name), request.set_before(before), request.set_limit(3);
    return media().ListUserReviews(ctx, request, page);
  });
}

absl::Status MediaTest::Rating(size_t film, RatingSum* sum) const {
  MovieRequest request;
  request.set_movie(films_[film].id);
  Context ctx(kMaxTestWait);
  return media().GetRating(ctx, request, sum);
}

absl::Status MediaTest::Deposit(size_t user, int64_t cents, Wallet* wallet, const std::string& key,
                                Nanos patience) const {
  DepositRequest request;
  request.set_token(users_[user].token), request.set_cents(cents);
  Context ctx(patience);
  if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
  return media().Deposit(ctx, request, wallet);
}

absl::Status MediaTest::RentMovie(size_t user, size_t film, uint32_t days, Rental* rental,
                                  const std::string& key, Nanos patience) const {
  RentRequest request;
  request.set_token(users_[user].token), request.set_movie(films_[film].id), request.set_days(days);
  Context ctx(patience);
  if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
  return media().RentMovie(ctx, request, rental);
}

absl::Status MediaTest::RefundRental(size_t user, uint64_t rental, Rental* reply, Nanos patience) const {
  RentalRequest request;
  request.set_token(users_[user].token), request.set_rental(rental);
  Context ctx(patience);
  return media().RefundRental(ctx, request, reply);
}

std::string MediaTest::SegmentOf(int video, int number) {
  constexpr size_t kBytes = 300'000;  // more than a message of the stream
  return std::string(kBytes, static_cast<char>('a' + 10 * video + number));
}

void MediaTest::WriteVideos() const {
  for (int video = 0; video < 2; ++video) {
    const std::string folder = Join(Folder(), "/videos/", video);
    std::filesystem::create_directories(folder + "/300k");
    for (int i = 0; i < 2; ++i) std::ofstream(Join(folder, "/300k/seg00", i, ".ts")) << SegmentOf(video, i);
    std::ofstream(folder + "/poster.png") << "\x89PNG\r\n\x1a\n" << video;
    std::ofstream(folder + "/300k/index.m3u8")
        << "#EXTM3U\n#EXTINF:4.000000,\nseg000.ts\n#EXTINF:3.520000,\nseg001.ts\n#EXT-X-ENDLIST\n";
    std::ofstream(folder + "/main.m3u8")
        << "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=320x180\n300k/index.m3u8\n";
  }
}

absl::Status MediaTest::OpenStream(size_t user, size_t film, StreamTicket* ticket, Nanos patience) const {
  MovieRequest request;
  request.set_token(users_[user].token), request.set_movie(films_[film].id);
  Context ctx(patience);
  return media().OpenStream(ctx, request, ticket);
}

int64_t MediaTest::CentsOf(size_t user) const {
  apps::TokenRequest request;
  request.set_token(users_[user].token);
  Wallet wallet;
  Context ctx(kMaxTestWait);
  const absl::Status status = media().GetWallet(ctx, request, &wallet);
  EXPECT_TRUE(status.ok()) << status;
  return wallet.cents();
}

std::vector<Rental> MediaTest::RentalsOf(size_t user) const {
  std::vector<Rental> rentals;
  RentalList page;
  RentalPage request;
  request.set_token(users_[user].token), request.set_limit(3);
  do {
    request.set_before(page.next());
    page.Clear();
    Context ctx(kMaxTestWait);
    const absl::Status status = media().ListRentals(ctx, request, &page);
    EXPECT_TRUE(status.ok()) << status;
    rentals.insert(rentals.end(), page.rentals().begin(), page.rentals().end());
  } while (page.next() != 0);
  return rentals;
}

int MediaTest::Audited() const {
  const int ended = std::system(Join(MEDIA_PROGRAM, " audit --data ", Folder()).c_str());
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

void MediaTest::ExpectAuditedWhenIdle() const {
  constexpr int kBroken = 99;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  int exit = 0;
  while ((exit = Audited()) != 0 && exit != kBroken && !deadline.Expired())
    BetweenLooks(std::chrono::milliseconds(100));  // each one is a process
  EXPECT_EQ(exit, 0);
}

}  // namespace curtail::media
