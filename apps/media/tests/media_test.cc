// SPDX-License-Identifier: Apache-2.0
//
// The whole application, as its clients use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/configs_to_test.h"
#include "apps/media/tests/media_testing.h"
#include "curtail/base/strings.h"
#include "parts.curtail.h"

namespace curtail::media {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(MediaTest, AReviewIsInBothListsInTheRatingAndOnThePage) {
  Review written;
  const absl::Status composed = Compose(ReviewOf(0, 1, "Grand \xc3\xbc", 7), &written);
  ASSERT_TRUE(composed.ok()) << composed;
  EXPECT_EQ(written.author().name(), users_[0].name);
  EXPECT_EQ(written.movie(), films_[1].id);
  EXPECT_EQ(written.text(), "Grand \xc3\xbc");
  std::vector<Review> of_movie, of_user, of_other;
  ASSERT_TRUE(ListOfMovie(1, &of_movie).ok() && ListOfUser(0, &of_user).ok() &&
              ListOfUser(1, &of_other).ok());
  ASSERT_EQ(of_movie.size(), 1u);
  ASSERT_EQ(of_user.size(), 1u);
  EXPECT_TRUE(of_other.empty());
  EXPECT_EQ(of_movie[0].SerializeAsString(), written.SerializeAsString());
  EXPECT_EQ(of_user[0].SerializeAsString(), written.SerializeAsString());
  ASSERT_TRUE(Compose(ReviewOf(1, 1, "Poor", 2)).ok());

  MoviePage page;
  ASSERT_TRUE(Page(1, &page).ok());
  const Film film = GenerateFilms(1, kFilms)[1];
  EXPECT_EQ(page.movie().title(), film.title());
  EXPECT_EQ(page.movie().genres(0), film.genres(0));
  EXPECT_EQ(page.plot(), film.extract());
  EXPECT_EQ(page.cast(0), film.cast(0));
  EXPECT_EQ(page.rating().reviews(), 2u);
  EXPECT_EQ(page.rating().stars(), 9u);
  ASSERT_EQ(page.reviews_size(), 2);
  EXPECT_EQ(page.reviews(0).text(), "Poor") << "the newest first";
  EXPECT_TRUE(page.missing().empty());

  MovieRequest of;
  of.set_token(users_[1].token), of.set_movie(films_[1].id);
  RatingSum mine;
  Context ctx(kMaxTestWait);
  ASSERT_TRUE(media().GetMyRating(ctx, of, &mine).ok());
  EXPECT_EQ(mine.reviews(), 1u);
  EXPECT_EQ(mine.stars(), 2u);
}

TEST_F(MediaTest, AViewingHasOneReviewAndARepeatedRequestTheSame) {
  Review first, again;
  ReviewRequest request = ReviewOf(0, 2, "First", 5);
  ASSERT_TRUE(Compose(request, &first, "a key").ok());
  ASSERT_TRUE(Compose(request, &again, "a key").ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(Compose(request)));
  request.set_stars(6);
  EXPECT_TRUE(absl::IsAlreadyExists(Compose(request, &again, "a key"))) << "another content";
  request.set_viewing(1);
  ASSERT_TRUE(Compose(request, &again).ok());
  EXPECT_NE(again.id(), first.id());
  RatingSum sum;
  ASSERT_TRUE(Rating(2, &sum).ok());
  EXPECT_EQ(sum.reviews(), 2u);
  EXPECT_EQ(sum.stars(), 11u);
}

TEST_F(MediaTest, RefusesBadInput) {
  const ReviewRequest good = ReviewOf(0, 3, std::string(4096, 'x'), 10);
  const auto refuses = [&](auto change, absl::StatusCode code) {
    ReviewRequest bad = good;
    change(bad);
    const absl::Status status = Compose(bad);
    EXPECT_EQ(status.code(), code) << status;
  };
  refuses([](ReviewRequest& r) { r.set_stars(11); }, absl::StatusCode::kInvalidArgument);
  refuses([](ReviewRequest& r) { r.clear_text(); }, absl::StatusCode::kInvalidArgument);
  refuses([](ReviewRequest& r) { r.set_text(std::string(4097, 'x')); }, absl::StatusCode::kInvalidArgument);
  refuses([](ReviewRequest& r) { r.set_viewing(uint64_t{1} << 63); }, absl::StatusCode::kInvalidArgument);
  refuses([](ReviewRequest& r) { r.set_title("No such film"); }, absl::StatusCode::kNotFound);
  refuses([](ReviewRequest& r) { r.set_year(r.year() - 1); }, absl::StatusCode::kNotFound);
  refuses([](ReviewRequest& r) { r.clear_token(); }, absl::StatusCode::kUnauthenticated);
  RatingSum sum;
  ASSERT_TRUE(Rating(3, &sum).ok());
  EXPECT_EQ(sum.reviews(), 0u) << "parts of refused reviews count nothing";
  EXPECT_TRUE(Compose(good).ok());

  const auto add = [&](auto change) {
    NewMovie movie;
    movie.set_token(users_[0].token), movie.set_title("New"), movie.set_year(2000);
    change(movie);
    Movie added;
    Context ctx(kMaxTestWait);
    return media().AddMovie(ctx, movie, &added);
  };
  EXPECT_TRUE(absl::IsInvalidArgument(add([](NewMovie& m) { m.clear_title(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(add([](NewMovie& m) { m.set_year(1869); })));
  EXPECT_TRUE(absl::IsInvalidArgument(add([](NewMovie& m) { m.set_plot(std::string(4097, 'x')); })));
  EXPECT_TRUE(absl::IsUnauthenticated(add([](NewMovie& m) { m.clear_token(); })));
  EXPECT_TRUE(add([](NewMovie&) {}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(add([](NewMovie&) {})));
}

TEST_F(MediaTest, ATitleOfSeveralMoviesNeedsItsYear) {
  ASSERT_EQ(films_[18].title.title(), films_[19].title.title());
  ReviewRequest request = ReviewOf(0, 19, "Made again", 4);
  Review written;
  ASSERT_TRUE(Compose(request, &written).ok());
  EXPECT_EQ(written.movie(), films_[19].id);
  request.clear_year();
  const absl::Status refused = Compose(request, &written);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr(Join(films_[18].title.year(), ", ", films_[19].title.year())));
  request = ReviewOf(0, 5, "The only one", 4);
  request.clear_year();
  ASSERT_TRUE(Compose(request, &written).ok());
  EXPECT_EQ(written.movie(), films_[5].id);
  NewMovie remake;
  remake.set_token(users_[0].token), remake.set_title(request.title());
  remake.set_year(films_[5].title.year() + 1);
  Movie added;
  Context ctx(kMaxTestWait);
  ASSERT_TRUE(media().AddMovie(ctx, remake, &added).ok());
  request.set_viewing(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Compose(request))) << "there are two now";
}

TEST_F(PartedMediaTest, APageNamesThePartsThatAreMissing) {
  ASSERT_TRUE(Compose(ReviewOf(0, 1, "Good", 8)).ok());
  MoviePage page;
  app_->Kill("plot");
  app_->Stall("movie-review");
  ASSERT_TRUE(Page(1, &page).ok());
  EXPECT_THAT(page.missing(), ElementsAre("plot", "reviews"));
  EXPECT_EQ(page.rating().stars(), 8u);
  EXPECT_FALSE(page.cast().empty());
  app_->GoOn("movie-review");
  ASSERT_TRUE(app_->Restart("plot").ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {
    ASSERT_TRUE(Page(1, &page).ok());
    BetweenLooks();
  } while (!page.missing().empty() && !deadline.Expired());
  EXPECT_EQ(page.reviews_size(), 1);
  for (const auto& [service, part] : {std::pair("cast-info", "cast"), std::pair("plot", "plot"),
                                      std::pair("rating", "rating"), std::pair("movie-review", "reviews")}) {
    app_->Stall(service);
    EXPECT_TRUE(Page(1, &page).ok());
    EXPECT_THAT(page.missing(), Contains(part));
    app_->GoOn(service);
  }
  MovieRequest none;
  none.set_movie(1);
  Context ctx(kMaxTestWait);
  EXPECT_TRUE(absl::IsNotFound(media().GetMovie(ctx, none, &page)));
}

TEST_F(MediaTest, NobodyIsRecommendedMoviesBeforeAModelIsLearned) {
  RecommendRequest mine;
  mine.set_token(users_[0].token);
  MovieRequest movie;
  movie.set_movie(films_[0].id);
  MovieList best, similar;
  Context one(kMaxTestWait), other(kMaxTestWait);
  ASSERT_TRUE(media().RecommendMovies(one, mine, &best).ok());
  ASSERT_TRUE(media().ListSimilarMovies(other, movie, &similar).ok());
  for (const MovieList* list : {&best, &similar}) EXPECT_TRUE(list->untrained() && list->movies().empty());
}

TEST_F(PartedMediaTest, AMovieIsFoundAlthoughTheIndexWasAway) {
  app_->Kill("search-index");
  NewMovie movie;
  movie.set_token(users_[0].token), movie.set_title("Zebra"), movie.set_year(2000);
  movie.add_cast("Quentin Xylophone"), movie.add_genres("Short");
  Movie added;
  Context adding(kMaxTestWait);
  ASSERT_TRUE(media().AddMovie(adding, movie, &added).ok());
  app_->Kill("search");
  ASSERT_TRUE(app_->Restart("search-index").ok());
  ASSERT_TRUE(app_->Restart("search").ok());
  SearchRequest request;
  request.set_text("xylophone ZEBRA"), request.set_genre("Short");
  MovieList found;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {
    Context ctx(deadline);
    const absl::Status status = media().SearchMovies(ctx, request, &found);
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
    BetweenLooks();
  } while (found.movies().empty() && !deadline.Expired());
  ASSERT_EQ(found.movies_size(), 1);
  EXPECT_EQ(found.movies(0).SerializeAsString(), added.SerializeAsString());
  request.set_genre("Drama");
  Context ctx(kMaxTestWait);
  ASSERT_TRUE(media().SearchMovies(ctx, request, &found).ok());
  EXPECT_TRUE(found.movies().empty());
}

TEST_F(MediaTest, PartsThatArePutAgainMakeOneReview) {
  const uint64_t seed = TestSeed();
  const std::unique_ptr<Channel> channel = Connect("compose-review");
  std::vector<Part> parts(5);
  parts[0].set_review(1000);
  parts[1].mutable_movie()->set_id(films_[0].id);
  parts[2].set_text("in parts");
  parts[3].mutable_opinion()->set_stars(3);
  parts[4].mutable_author()->set_id(users_[0].id);
  std::mutex mu;
  std::set<std::string> reviews;  // guarded by mu
  apps::AllAtOnce(4, seed, [&](Rng& rng, size_t) {
    std::vector<size_t> order = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4};
    std::ranges::shuffle(order, rng);
    for (const size_t i : order) {
      Part part = parts[i];
      part.set_request(7);
      Composed composed;
      Context ctx(kMaxTestWait);
      const absl::Status status = ComposeReview::Stub(channel.get()).Put(ctx, part, &composed);
      EXPECT_TRUE(status.ok()) << status;
      const std::lock_guard lock(mu);
      if (composed.has_review()) reviews.insert(composed.review().SerializeAsString());
    }
  });
  EXPECT_EQ(reviews.size(), 1u);
  std::vector<Review> listed;
  ASSERT_TRUE(ListOfMovie(0, &listed).ok());
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].text(), "in parts");
  RatingSum sum;
  ASSERT_TRUE(Rating(0, &sum).ok());
  EXPECT_EQ(sum.stars(), 3u);
}

// A late step of a call whose caller is gone.
TEST_F(MediaTest, AReviewIsAcknowledgedOrTakenBackAndStaysSo) {
  const std::unique_ptr<Channel> storage = Connect("review-storage"), ratings = Connect("rating");
  Review kept;
  ASSERT_TRUE(Compose(ReviewOf(0, 0, "kept", 7), &kept).ok());
  apps::Nothing nothing;
  Context one(kMaxTestWait), two(kMaxTestWait), three(kMaxTestWait);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReviewStorage::Stub(storage.get()).Delete(one, kept, &nothing)));
  std::vector<Review> listed;
  ASSERT_TRUE(ListOfMovie(0, &listed).ok());
  EXPECT_EQ(listed.size(), 1u);

  ReviewRef late;
  late.set_review(kept.id() + 1), late.set_movie(films_[0].id), late.set_stars(3);
  ASSERT_TRUE(Rating::Stub(ratings.get()).Remove(two, late, &nothing).ok());
  ASSERT_TRUE(Rating::Stub(ratings.get()).Add(three, late, &nothing).ok());
  RatingSum sum;
  ASSERT_TRUE(Rating(0, &sum).ok());
  EXPECT_EQ(sum.stars(), 7u);
}

// Under each kind of waiting, calls in the process.
class MediaConfigs : public MediaTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { Start(GetParam(), /*monolith=*/true); }
};

INSTANTIATE_TEST_SUITE_P(Configs, MediaConfigs,
                         testing::ValuesIn(apps::ConfigsToTest({"SDB1-4", "FIB1", "ADB1-2-2"}, {})));

TEST_P(MediaConfigs, UsersWhoWriteAtOnceAreAllListed) {
  constexpr uint64_t kEach = 10;
  apps::AllAtOnce(kUsers, TestSeed(), [&](Rng& rng, size_t user) {
    for (uint64_t i = 0; i < kEach; ++i) {
      ReviewRequest request = ReviewOf(user, rng.Below(3), Join("review ", i), 1);
      request.set_viewing(i);
      const absl::Status status = Compose(request);
      EXPECT_TRUE(status.ok()) << status;
    }
  });
  uint64_t of_movies = 0, of_users = 0, counted = 0;
  for (size_t film = 0; film < 3; ++film) {
    std::vector<Review> reviews;
    ASSERT_TRUE(ListOfMovie(film, &reviews).ok());
    of_movies += reviews.size();
    RatingSum sum;
    ASSERT_TRUE(Rating(film, &sum).ok());
    counted += sum.stars();
  }
  for (size_t user = 0; user < kUsers; ++user) {
    std::vector<Review> reviews;
    ASSERT_TRUE(ListOfUser(user, &reviews).ok());
    of_users += reviews.size();
  }
  EXPECT_EQ(of_movies, kUsers * kEach);
  EXPECT_EQ(of_users, kUsers * kEach);
  EXPECT_EQ(counted, kUsers * kEach);
}

TEST_P(MediaConfigs, PagesThatAreReadAtOnceHaveTheirOwnParts) {
  constexpr size_t kMovies = 3;
  for (uint32_t film = 0; film < kMovies; ++film)
    ASSERT_TRUE(Compose(ReviewOf(0, film, Join("of ", film), film)).ok());
  apps::AllAtOnce(kUsers, TestSeed(), [&](Rng& rng, size_t) {
    for (int i = 0; i < 30 && !HasFailure(); ++i) {
      const size_t film = rng.Below(kMovies);
      MoviePage page;
      const absl::Status status = Page(film, &page);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(page.movie().id(), films_[film].id);
      EXPECT_EQ(page.rating().stars(), film);
      ASSERT_EQ(page.reviews_size(), 1);
      EXPECT_EQ(page.reviews(0).text(), Join("of ", film));
    }
  });
}

}  // namespace
}  // namespace curtail::media
