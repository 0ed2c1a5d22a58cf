// SPDX-License-Identifier: Apache-2.0
//
// Uploads while services die, stand still or are older than others: each service is a process.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/social/tests/media_testing.h"
#include "curtail/rpc/server.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::social {
namespace {

class SeveredMediaTest : public MediaFixture {
 protected:
  explicit SeveredMediaTest(std::vector<std::string> flags = {})
      : MediaFixture("FIB1", /*monolith=*/false, std::move(flags)) {}

  // An upload of ann's as compose-post asks `media` for it.
  MediaItems DraftOf(const MediaItem& upload) const {
    MediaItems items;
    items.add_media()->set_id(upload.id());
    items.set_owner(ann_.user());
    items.set_draft(1);
    return items;
  }
  // Returns what `media` keeps of an upload: the column `linked` of its row.
  int64_t Linked(const MediaItem& upload) const {
    const auto session = internal::SqliteSession::Open({.path = app_.DataFile("media.db")});
    EXPECT_TRUE(session.ok()) << session.status();
    int64_t linked = -1;
    const absl::Status status = (*session)->Query("SELECT linked FROM media WHERE id = ?1", {upload.id()},
                                                  [&](const SqlRow& row) { linked = row.Integer(0); });
    EXPECT_TRUE(status.ok()) << status;
    return linked;
  }

  const std::unique_ptr<Channel> media_ = app_.Connect("media");
};

class ImpatientSeveredMediaTest : public SeveredMediaTest {
 protected:
  ImpatientSeveredMediaTest() : SeveredMediaTest({"--upload", "0"}) {}
};

// A write beyond a bound of the process fails, as on a full disk.
TEST_F(SeveredMediaTest, AFullDiskIsToldWithoutItsPath) {
  constexpr size_t kPart = 1 << 20;
  app_.Kill("media-frontend");
  app_.Start("media-frontend", /*most_file_bytes=*/kPart + kPart / 2);
  const std::string bytes = Mp4(2 * kPart);
  const std::string_view video = bytes;
  MediaItem item;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status status;
  do {  // channels try to connect again after a while
    status = Upload(ann_, bytes.substr(0, kPart), "", &item, bytes.size());
    BetweenLooks();
  } while (absl::IsUnavailable(status) && !deadline.Expired());
  ASSERT_TRUE(status.ok()) << status;
  status = Append(ann_, item.id(), kPart, video.substr(kPart));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(status.message(), "the file cannot be kept");

  app_.Kill("media-frontend");
  app_.Start("media-frontend");
  do {
    status = Append(ann_, item.id(), kPart, video.substr(kPart));
    BetweenLooks();
  } while (absl::IsUnavailable(status) && !deadline.Expired());
  EXPECT_TRUE(status.ok()) << status;
}

// While nothing comes to an end, a user's uploads take few of the permits, and few of the places to wait.
TEST_F(SeveredMediaTest, UploadsOfOneUserLeavePermitsToOthers) {
  app_.Stall("media");
  std::atomic<int> refused{0};
  std::vector<std::thread> uploads;
  for (int i = 0; i < 40; ++i) {
    uploads.emplace_back([&] {
      MediaItem item;
      if (absl::IsResourceExhausted(Upload(ann_, kPng, "image/png", &item))) ++refused;
    });
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (refused < 24 && !deadline.Expired()) BetweenLooks();
  MediaUpload request;
  request.set_token(bob_.token());
  request.mutable_file()->set_data(kPng);
  Context brief(std::chrono::milliseconds(500));
  MediaItem item;
  const absl::Status status = app_.Front().UploadMedia(brief, request, &item);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status << ": it has a permit, and waits for the media";
  app_.GoOn("media");
  for (std::thread& one : uploads) one.join();
}

// Whatever a post fails by, its upload is there for the next try.
TEST_F(SeveredMediaTest, AnUploadOutlivesAPostThatFails) {
  MediaItem item;
  ASSERT_TRUE(Upload(ann_, kPng, "image/png", &item).ok());
  Post post;
  std::string bytes;
  // The first fails beside the media, the second behind them.
  for (const char* service : {"text", "user-timeline"}) {
    app_.Kill(service);
    absl::Status status = Compose(ann_, item.id(), &post);
    EXPECT_TRUE(absl::IsUnavailable(status)) << service << ": " << status;
    EXPECT_EQ(status.message(), "a part of the service does not answer; try again") << service;
    app_.Start(service);
    EXPECT_TRUE(absl::IsNotFound(Download(bob_, item.id(), &bytes))) << service;
    // Channels try to connect again after a while. Until then the next post would fail at this service, not the next.
    ComposeRequest text;
    text.set_text("text alone");
    const Deadline deadline = Deadline::In(kMaxTestWait);
    do {
      status = app_.Compose(ann_, text, &post);
      BetweenLooks();
    } while (absl::IsUnavailable(status) && !deadline.Expired());
    ASSERT_TRUE(status.ok()) << service << ": " << status;
  }
  const absl::Status status = Compose(ann_, item.id(), &post);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(Download(bob_, item.id(), &bytes).ok());
  EXPECT_EQ(bytes, kPng);
}

// The post is stored, and its author's timeline does not answer.
TEST_F(ImpatientSeveredMediaTest, APostThatIsStoredHasItsUploads) {
  MediaItem item, other;
  ASSERT_TRUE(Upload(ann_, kPng, "image/png", &item).ok());
  app_.Stall("user-timeline");
  absl::Status composed;
  std::thread composer([&] {
    Post post;
    composed = Compose(ann_, item.id(), &post);
  });
  UserRequest request;
  request.set_token(ann_.token());
  request.set_name("ann");
  Statistics stored;
  absl::Status status;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {
    Context ctx(deadline);
    status = app_.Front().GetStatistics(ctx, request, &stored);
    BetweenLooks();
  } while (stored.posts() == 0 && !deadline.Expired());
  EXPECT_EQ(stored.posts(), 1u) << status;
  app_.Kill("compose-post");
  composer.join();
  EXPECT_FALSE(composed.ok());
  app_.GoOn("user-timeline");
  app_.Start("compose-post");
  ASSERT_TRUE(Upload(bob_, kPng, "image/png", &other).ok());
  std::string bytes;
  status = Download(bob_, item.id(), &bytes);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Files(), 2u);
}

// As during an upgrade: a compose-post from before Keep().
TEST_F(ImpatientSeveredMediaTest, UploadsOfACallerThatDoesNotKeepAreKeptAtOnce) {
  MediaItem item, other;
  ASSERT_TRUE(Upload(ann_, kPng, "image/png", &item).ok());
  MediaItems items = DraftOf(item), made;
  Context ctx(kMaxTestWait);
  const absl::Status status = Media::Stub(media_.get()).Create(ctx, items, &made);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(Upload(bob_, kPng, "image/png", &other).ok());
  std::string bytes;
  EXPECT_TRUE(Download(bob_, item.id(), &bytes).ok());
}

TEST_F(SeveredMediaTest, AnUploadOfADraftIsItsOwnersAlone) {
  MediaItem item;
  ASSERT_TRUE(Upload(ann_, kPng, "image/png", &item).ok());
  const Media::Stub media(media_.get());
  MediaItems items = DraftOf(item), made;
  items.set_keeps(true);
  Context ctx(kMaxTestWait);
  absl::Status status = media.Create(ctx, items, &made);
  ASSERT_TRUE(status.ok()) << status;
  std::string bytes;
  for (const Session& other : {bob_, Session()}) {
    status = Download(other, item.id(), &bytes);
    EXPECT_TRUE(absl::IsNotFound(status)) << other.name() << ": " << status;
  }
  status = Download(ann_, item.id(), &bytes);
  EXPECT_TRUE(status.ok()) << status;
  Nothing kept;
  ASSERT_TRUE(media.Keep(ctx, items, &kept).ok());
  status = Download(bob_, item.id(), &bytes);
  EXPECT_TRUE(status.ok()) << status;
}

struct MediaFromBeforeKeep final : Media::CoroutineService {
  Coroutine Create(Context&, const MediaItems& request, MediaItems* reply) override {
    *reply = request;
    co_return absl::OkStatus();
  }
};

// Likewise the other way round.
TEST_F(SeveredMediaTest, APostIsMadeWithAMediaServiceThatDoesNotKeep) {
  app_.Kill("media");
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<MediaFromBeforeKeep>());
  ServerOptions options;
  options.listen = {app_.AddressOf("media")};
  const auto server = Server::Start(std::move(options), std::move(services));
  ASSERT_TRUE(server.ok()) << server.status();
  Post post;
  absl::Status status;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {  // channels try to connect again after a while
    status = Compose(ann_, 1, &post);
    BetweenLooks();
  } while (absl::IsUnavailable(status) && !deadline.Expired());
  EXPECT_TRUE(status.ok()) << status;
}

// A draft has taken the upload, and its post never comes about.
TEST_F(ImpatientSeveredMediaTest, AnUploadOfAPostThatDiedExpires) {
  MediaItem item, other;
  ASSERT_TRUE(Upload(ann_, kPng, "image/png", &item).ok());
  app_.Stall("text");
  absl::Status composed;
  std::thread composer([&] {
    Post post;
    composed = Compose(ann_, item.id(), &post);
  });
  constexpr int64_t kOfDraft = 4;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (Linked(item) != kOfDraft && !deadline.Expired()) BetweenLooks();
  EXPECT_EQ(Linked(item), kOfDraft) << "the draft has not taken it";
  std::string bytes;
  EXPECT_TRUE(absl::IsNotFound(Download(bob_, item.id(), &bytes))) << "no post has it";
  app_.Kill("compose-post");
  composer.join();
  EXPECT_FALSE(composed.ok());
  app_.GoOn("text");
  app_.Start("compose-post");
  ASSERT_TRUE(Upload(bob_, kPng, "image/png", &other).ok());
  EXPECT_TRUE(absl::IsNotFound(Download(ann_, item.id(), &bytes)));
  EXPECT_EQ(Files(), 1u);
}

}  // namespace
}  // namespace curtail::social
