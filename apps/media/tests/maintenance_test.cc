// SPDX-License-Identifier: Apache-2.0
//
// Maintenance of the whole application, by the command of an operator.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/kit/data/data.h"
#include "apps/media/tests/media_testing.h"
#include "curtail/base/strings.h"

namespace curtail::media {
namespace {

class MaintenanceTest : public PartedMediaTest {
 protected:
  int Maintain(const std::string& job) const {
    const int ended = std::system(
        Join(MEDIA_PROGRAM, " maintain --job ", job, " --target ", app_->AddressOf("maintenance")).c_str());
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  }

  // As a fault of the disk, or of an older version, might leave it.
  void Spoil(const std::string& service, size_t schema, const std::string& sql) {
    app_->Kill(service);
    apps::DataOptions data;
    data.application = "media", data.folder = Folder();
    const auto db = apps::OpenData(data, service, std::vector<std::string>(schema));
    ASSERT_TRUE(db.ok()) << db.status();
    const absl::Status spoilt =
        (*db)->Write(Deadline::In(kMaxTestWait), [&](SqlSession& s) { return s.Execute(sql); });
    ASSERT_TRUE(spoilt.ok()) << spoilt;
    ASSERT_TRUE(app_->Restart(service).ok());
  }
};

TEST_F(MaintenanceTest, MakesSumsThoseOfTheReviews) {
  ASSERT_TRUE(Compose(ReviewOf(0, 0, "Good", 7)).ok());
  ASSERT_TRUE(Compose(ReviewOf(1, 0, "Better", 9)).ok());
  ASSERT_TRUE(Compose(ReviewOf(1, 1, "Bad", 1)).ok());
  Spoil("rating", /*schema=*/1, "UPDATE sums SET stars = 3, reviews = 1");
  RatingSum sum;
  ASSERT_TRUE(Rating(0, &sum).ok());
  ASSERT_EQ(sum.stars(), 3u);
  EXPECT_EQ(Maintain("sums"), 0);
  ASSERT_TRUE(Rating(0, &sum).ok());
  EXPECT_EQ(sum.stars(), 16u);
  EXPECT_EQ(sum.reviews(), 2u);
  ASSERT_TRUE(Rating(1, &sum).ok());
  EXPECT_EQ(sum.stars(), 1u);
}

TEST_F(MaintenanceTest, EntersAllMoviesIntoAnIndexThatWasLost) {
  app_->Kill("search-index");
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().filename().string().starts_with("search-index"))
      std::filesystem::remove_all(entry.path());
  }
  ASSERT_TRUE(app_->Restart("search-index").ok());
  const auto found = [&](size_t film) {
    SearchRequest request;
    request.set_text(films_[film].title.title()), request.set_limit(100);
    MovieList list;
    Context ctx(kMaxTestWait);
    const absl::Status status = media().SearchMovies(ctx, request, &list);
    EXPECT_TRUE(status.ok()) << status;
    return std::ranges::any_of(list.movies(), [&](const Movie& one) { return one.id() == films_[film].id; });
  };
  EXPECT_FALSE(found(0)) << "the index is empty";
  EXPECT_EQ(Maintain("index"), 0);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  for (size_t film = 0; film < kFilms; ++film) {
    while (!found(film) && !deadline.Expired()) BetweenLooks();
  }
  EXPECT_FALSE(deadline.Expired());
}

TEST_F(MaintenanceTest, FindsBooksThatAreWrong) {
  Rental rental;
  ASSERT_TRUE(RentMovie(0, 0, 1, &rental).ok());
  EXPECT_EQ(Maintain("books"), 0);
  EXPECT_EQ(Audited(), 0);
  Spoil("payment-auth", /*schema=*/2, "UPDATE charges SET cents = cents - 1");
  EXPECT_EQ(Maintain("books"), 99);
  EXPECT_EQ(Audited(), 99);
  EXPECT_NE(Maintain("sweep"), 0) << "there is no such job";
}

}  // namespace
}  // namespace curtail::media
