// SPDX-License-Identifier: Apache-2.0
//
// media_testing.h - the application in processes of its own, or as a monolith, for tests that use it as its clients do.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/kit/accounts/id_source.h"
#include "apps/kit/load/fill.h"
#include "apps/kit/testing/start_app.h"
#include "apps/media/load/films.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/app_under_test.h"
#include "curtail/rpc/channel.h"
#include "media.curtail.h"

namespace curtail::media {

// In a process for each service; in one under a sanitizer, to which their code is the same.
class MediaTest : public testing::Test {
 protected:
  static constexpr size_t kUsers = 4, kFilms = 40;
  static constexpr int64_t kDeposit = 5000;  // cents of each user

  void SetUp() override { Start(/*config=*/{}, /*monolith=*/kSanitized); }
  void TearDown() override;
  static apps::Deployed Form(const std::string& folder, const std::string& config, bool monolith);
  void Start(const std::string& config, bool monolith);

  std::string Folder() const { return dir_.File("data"); }
  std::unique_ptr<Channel> Connect(const std::string& service) {
    ChannelOptions patient;
    patient.wait_for_ready = true;
    return std::make_unique<Channel>(&client_, app_->AddressOf(monolith_ ? "front-end" : service), patient);
  }
  Media::Stub media() const { return Media::Stub(front_.get()); }

  ReviewRequest ReviewOf(size_t user, size_t film, const std::string& text, uint32_t stars) const;
  absl::Status Compose(const ReviewRequest& request, Review* reply, const std::string& key = {},
                       Nanos patience = kMaxTestWait) const;
  absl::Status Compose(const ReviewRequest& request) const {
    Review ignored;
    return Compose(request, &ignored);
  }
  absl::Status Page(size_t film, MoviePage* page) const;
  // All reviews of a movie, or of a user, the newest first, page by page.
  absl::Status ListOfMovie(size_t film, std::vector<Review>* reviews) const;
  absl::Status ListOfUser(size_t user, std::vector<Review>* reviews) const;
  absl::Status Rating(size_t film, RatingSum* sum) const;

  absl::Status Deposit(size_t user, int64_t cents, Wallet* wallet, const std::string& key = {},
                       Nanos patience = kMaxTestWait) const;
  absl::Status RentMovie(size_t user, size_t film, uint32_t days, Rental* rental, const std::string& key = {},
                         Nanos patience = kMaxTestWait) const;
  absl::Status RefundRental(size_t user, uint64_t rental, Rental* reply, Nanos patience = kMaxTestWait) const;
  // Two videos of two segments, in the form that `media render` gives them; only their bytes are not a picture's.
  void WriteVideos() const;
  static std::string SegmentOf(int video, int number);
  // Which of WriteVideos() a film has.
  int VideoOf(size_t film) const { return static_cast<int>(apps::PartOf(films_[film].id, 2)); }
  absl::Status OpenStream(size_t user, size_t film, StreamTicket* ticket,
                          Nanos patience = kMaxTestWait) const;

  // Fail the test if they fail. The newest rental first.
  int64_t CentsOf(size_t user) const;
  std::vector<Rental> RentalsOf(size_t user) const;
  // Returns how `media audit` exits.
  int Audited() const;
  // Waits until no rental is open.
  void ExpectAuditedWhenIdle() const;

  const TempDir dir_;
  Client client_;
  bool monolith_ = false;
  std::unique_ptr<deploy::AppUnderTest> app_;
  std::unique_ptr<Channel> front_;
  std::vector<apps::LoadUser> users_;
  std::vector<KnownFilm> films_;
};

// With processes that the test stops.
class PartedMediaTest : public MediaTest {
 protected:
  void SetUp() override { Start(/*config=*/{}, /*monolith=*/false); }
};

}  // namespace curtail::media
