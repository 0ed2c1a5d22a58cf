// SPDX-License-Identifier: Apache-2.0
//
// Images and videos that users upload, as clients see them.
#include <gmock/gmock.h>

#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "apps/social/social_testing.h"
#include "content.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/server.h"

namespace curtail::social {
namespace {

const std::string kPng("\x89PNG\r\n\x1a\n\0pixels", 15);

class MediaFixture : public testing::Test {
 protected:
  MediaFixture(const char* config, bool monolith, std::vector<std::string> flags)
      : app_(config, monolith, std::move(flags)) {}

  absl::Status Upload(const Session& by, const std::string& bytes, const std::string& type, MediaItem* item,
                      uint64_t size = 0) {
    MediaUpload request;
    request.set_token(by.token());
    request.mutable_file()->set_data(bytes);
    request.mutable_file()->set_content_type(type);
    request.set_size(size);
    Context ctx(kMaxTestWait);
    return app_.Front().UploadMedia(ctx, request, item);
  }
  absl::Status Append(const Session& by, uint64_t id, uint64_t from, std::string_view bytes) {
    MediaPart request;
    request.set_token(by.token());
    request.set_id(id);
    request.set_from(from);
    request.mutable_part()->set_data(std::string(bytes));
    Context ctx(kMaxTestWait);
    MediaItem item;
    return app_.Front().AppendMedia(ctx, request, &item);
  }
  absl::Status Download(const Session& by, uint64_t id, std::string* bytes, std::string* type = nullptr) {
    PostRequest request;
    request.set_token(by.token());
    request.set_id(id);
    Context ctx(kMaxTestWait);
    auto parts = app_.Front().DownloadMedia(ctx, request);
    bytes->clear();
    for (google::api::HttpBody part; parts.Read(&part);) {
      bytes->append(part.data());
      if (type != nullptr) *type = part.content_type();
    }
    return parts.Finish();
  }
  absl::Status Compose(const Session& by, uint64_t image, Post* post) {
    ComposeRequest request;
    request.add_media()->set_id(image);
    return app_.Compose(by, request, post);
  }
  size_t Files() const {
    const auto folder = std::filesystem::directory_iterator(app_.DataFile("media"));
    return static_cast<size_t>(std::distance(begin(folder), end(folder)));
  }

  SocialDeployment app_;
  const Session ann_ = app_.Register("ann"), bob_ = app_.Register("bob");
};

// In a process a service.
class SeveredMediaTest : public MediaFixture {
 protected:
  explicit SeveredMediaTest(std::vector<std::string> flags = {})
      : MediaFixture("FIB1", /*monolith=*/false, std::move(flags)) {}
};

class ImpatientSeveredMediaTest : public SeveredMediaTest {
 protected:
  ImpatientSeveredMediaTest() : SeveredMediaTest({"--upload", "0"}) {}
};

class MediaTest : public MediaFixture, public testing::WithParamInterface<bool> {
 protected:
  explicit MediaTest(std::vector<std::string> flags = {})
      : MediaFixture(GetParam() ? "ADB1-2-2" : "FIB1", /*monolith=*/true, std::move(flags)) {}
};

INSTANTIATE_TEST_SUITE_P(Models, MediaTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "ADB" : "FIB"); });

TEST_P(MediaTest, AnImageIsSeenWithItsPost) {
  MediaItem item;
  const absl::Status status = Upload(ann_, kPng, "image/png", &item);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(item.bytes(), kPng.size());
  std::string bytes, type;
  EXPECT_TRUE(absl::IsNotFound(Download(bob_, item.id(), &bytes)));  // it is in no post yet
  ASSERT_TRUE(Download(ann_, item.id(), &bytes).ok());
  Post post, other;
  EXPECT_TRUE(absl::IsInvalidArgument(Compose(bob_, item.id(), &other)));  // it is ann's
  ASSERT_TRUE(Compose(ann_, item.id(), &post).ok());
  ASSERT_EQ(post.media_size(), 1);
  EXPECT_EQ(post.media(0).type(), "image/png");
  EXPECT_EQ(post.media(0).bytes(), kPng.size());
  EXPECT_TRUE(absl::IsInvalidArgument(Compose(ann_, item.id(), &other)));  // in one post only
  ASSERT_TRUE(Download(Session(), item.id(), &bytes, &type).ok());
  EXPECT_EQ(bytes, kPng);
  EXPECT_EQ(type, "image/png");

  ASSERT_TRUE(app_.Block(ann_, "bob").ok());
  EXPECT_TRUE(absl::IsNotFound(Download(bob_, item.id(), &bytes)));
  ASSERT_TRUE(app_.Delete(ann_, post.id()).ok());
  EXPECT_TRUE(absl::IsNotFound(Download(ann_, item.id(), &bytes)));
  EXPECT_EQ(Files(), 0u);
}

TEST_P(MediaTest, OnlyImagesOfBoundedSizeAndNumberAreTaken) {
  MediaItem item;
  for (const char* begin : {"\xff\xd8\xff\xe0", "GIF89a", "RIFF1234WEBPVP8 "}) {
    EXPECT_TRUE(Upload(ann_, begin, "", &item).ok()) << begin;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(ann_, "", "", &item)));
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(ann_, "<html>", "image/png", &item)));
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(ann_, "RIFF1234WAVE", "", &item)));
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(ann_, kPng, "image/gif", &item)));
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(ann_, kPng + std::string(4 << 20, 'a'), "image/png", &item)));
  EXPECT_TRUE(absl::IsUnauthenticated(Upload(Session(), kPng, "image/png", &item)));
  for (int i = 3; i < 64; ++i) ASSERT_TRUE(Upload(ann_, kPng, "image/png", &item).ok()) << i;
  EXPECT_TRUE(absl::IsResourceExhausted(Upload(ann_, kPng, "image/png", &item)));
  Post post;
  ASSERT_TRUE(Compose(ann_, item.id(), &post).ok());
  EXPECT_TRUE(Upload(ann_, kPng, "image/png", &item).ok());
  EXPECT_EQ(Files(), 65u);
  std::string bytes;
  EXPECT_TRUE(absl::IsNotFound(Download(ann_, 12345, &bytes)));
}

// The beginning of an mp4: a box with its brands.
std::string Mp4(size_t size) {
  std::string bytes(
      "\0\0\0\x18"
      "ftypisom\0\0\2\0isommp42",
      24);
  for (size_t i = bytes.size(); i < size; ++i) bytes.push_back(static_cast<char>(i * i >> 7));
  return bytes;
}

TEST_P(MediaTest, AVideoComesInParts) {
  constexpr size_t kPart = 4 << 20;
  const std::string video = Mp4(2 * kPart + 100'000);
  const std::string_view bytes = video;
  MediaItem item;
  absl::Status status = Upload(ann_, video.substr(0, kPart), "video/mp4", &item, video.size());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(item.bytes(), video.size());
  std::string got, type;
  Post post;
  EXPECT_TRUE(absl::IsNotFound(Download(ann_, item.id(), &got))) << "it is not whole";
  EXPECT_TRUE(absl::IsInvalidArgument(Compose(ann_, item.id(), &post))) << "it is not whole";
  EXPECT_TRUE(absl::IsNotFound(Append(bob_, item.id(), kPart, bytes.substr(kPart, kPart)))) << "it is ann's";
  status = Append(ann_, item.id(), 2 * kPart, bytes.substr(2 * kPart));
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_THAT(status.message(), testing::HasSubstr("4194304"));
  EXPECT_TRUE(absl::IsInvalidArgument(Append(ann_, item.id(), 2 * kPart, std::string(kPart, 'x'))))
      << "too many";
  // A part that comes again, or begins in what is there, changes nothing of that.
  ASSERT_TRUE(Append(ann_, item.id(), kPart, bytes.substr(kPart, 1000)).ok());
  ASSERT_TRUE(Append(ann_, item.id(), kPart, std::string(1000, 'x')).ok());
  ASSERT_TRUE(Append(ann_, item.id(), kPart, bytes.substr(kPart, kPart)).ok());
  ASSERT_TRUE(Append(ann_, item.id(), 2 * kPart, bytes.substr(2 * kPart)).ok());
  ASSERT_TRUE(Append(ann_, item.id(), 2 * kPart, bytes.substr(2 * kPart)).ok());
  ASSERT_TRUE(Compose(ann_, item.id(), &post).ok());
  EXPECT_EQ(post.media(0).type(), "video/mp4");
  ASSERT_TRUE(Download(bob_, item.id(), &got, &type).ok());
  EXPECT_TRUE(got == video);
  EXPECT_EQ(type, "video/mp4");
  EXPECT_TRUE(Append(ann_, item.id(), 0, std::string(1000, 'x')).ok());
  ASSERT_TRUE(Download(bob_, item.id(), &got).ok());
  EXPECT_TRUE(got == video) << "what is posted stays as it is";
}

TEST_P(MediaTest, VideosAreBounded) {
  MediaItem item;
  const std::string webm("\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm", 16);
  EXPECT_TRUE(Upload(ann_, webm, "video/webm", &item).ok());
  const std::string quicktime(
      "\0\0\0\x14"
      "ftypqt  \0\0\0\0qt  ",
      20),
      heic(
          "\0\0\0\x18"
          "ftypheic\0\0\0\0",
          16);
  const std::string matroska("\x1a\x45\xdf\xa3\xa3\x42\x82\x88matroska", 16);
  for (const std::string& other : {quicktime, heic, matroska})
    EXPECT_TRUE(absl::IsInvalidArgument(Upload(ann_, other, "", &item))) << other;
  constexpr uint64_t kMost = 16 << 20;
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(ann_, Mp4(24), "", &item, kMost + 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(ann_, Mp4(24), "", &item, 20))) << "more than its size";
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(ann_, kPng, "", &item, (4 << 20) + 1))) << "an image";
  // 128 MiB of a user wait at most, whether their bytes have come or not.
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(Upload(bob_, Mp4(24), "", &item, kMost).ok()) << i;
  ASSERT_TRUE(Upload(bob_, Mp4(24), "", &item, kMost - 24).ok());
  EXPECT_TRUE(Upload(bob_, Mp4(24), "", &item).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Upload(bob_, Mp4(24), "", &item)));
  EXPECT_TRUE(Upload(ann_, Mp4(24), "", &item, kMost).ok());
}

// An upload is too old once there is another.
class ImpatientMediaTest : public MediaTest {
 protected:
  ImpatientMediaTest() : MediaTest({"--upload", "0"}) {}
};

INSTANTIATE_TEST_SUITE_P(Models, ImpatientMediaTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "ADB" : "FIB"); });

TEST_P(ImpatientMediaTest, UploadsThatNoPostTakesExpire) {
  MediaItem posted, first, last;
  Post post, other;
  ASSERT_TRUE(Upload(ann_, kPng, "image/png", &posted).ok());
  ASSERT_TRUE(Compose(ann_, posted.id(), &post).ok());
  ASSERT_TRUE(Upload(ann_, kPng, "image/png", &first).ok());
  for (int i = 0; i < 65; ++i)
    ASSERT_TRUE(Upload(i % 2 == 0 ? bob_ : ann_, kPng, "image/png", &last).ok()) << i;
  EXPECT_EQ(Files(), 2u);
  std::string bytes;
  EXPECT_TRUE(absl::IsNotFound(Download(ann_, first.id(), &bytes)));
  EXPECT_TRUE(absl::IsInvalidArgument(Compose(ann_, first.id(), &other)));
  EXPECT_TRUE(Compose(bob_, last.id(), &other).ok());
  EXPECT_TRUE(Download(bob_, posted.id(), &bytes).ok());
}

// One image is read at once, and one video, of which the fixture's reader has taken some.
class FewDownloadsTest : public MediaTest {
 protected:
  using Reader = ClientReader<google::api::HttpBody>;

  // `rate`: KiB a second that a reader takes, or is behind.
  explicit FewDownloadsTest(const char* rate) : MediaTest({"--downloads", "1", "--download-rate", rate}) {}

  void SetUp() override {
    // A stream that is not read holds 4 MiB on each connection that it passes.
    constexpr size_t kPart = 4 << 20;
    const std::string_view video = video_;
    ASSERT_TRUE(Upload(ann_, video_.substr(0, kPart), "video/mp4", &item_, video_.size()).ok());
    for (size_t at = kPart; at < video.size(); at += kPart)
      ASSERT_TRUE(Append(ann_, item_.id(), at, video.substr(at, kPart)).ok()) << at;
    reader_.emplace(Begin());
    for (google::api::HttpBody part; read_.size() < 2u << 20; read_ += part.data())
      ASSERT_TRUE(reader_->Read(&part)) << reader_->Finish();
  }
  Reader Begin() {
    PostRequest request;
    request.set_token(ann_.token());
    request.set_id(item_.id());
    return app_.Front().DownloadMedia(ctx_, request);
  }
  absl::Status ReadOn() {
    for (google::api::HttpBody part; reader_->Read(&part);) read_ += part.data();
    return reader_->Finish();
  }

  const std::string video_ = Mp4(16 << 20);
  MediaItem item_;
  std::string read_;

 private:
  Context ctx_{3 * kMaxTestWait};
  std::optional<Reader> reader_;
};

// It is behind after minutes.
class PatientDownloadsTest : public FewDownloadsTest {
 protected:
  PatientDownloadsTest() : FewDownloadsTest("1") {}
};

// It is behind after little more than the 2 s that each has.
class ImpatientDownloadsTest : public FewDownloadsTest {
 protected:
  ImpatientDownloadsTest() : FewDownloadsTest("100000") {}
};

INSTANTIATE_TEST_SUITE_P(Models, PatientDownloadsTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "ADB" : "FIB"); });
INSTANTIATE_TEST_SUITE_P(Models, ImpatientDownloadsTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "ADB" : "FIB"); });

TEST_P(PatientDownloadsTest, AReaderThatIsNotBehindKeepsItsPlace) {
  MediaItem image;
  ASSERT_TRUE(Upload(ann_, kPng, "image/png", &image).ok());
  std::string got;
  absl::Status status = Download(ann_, item_.id(), &got);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  status = Download(ann_, image.id(), &got);
  EXPECT_TRUE(status.ok()) << status;
  status = ReadOn();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(read_ == video_);
  status = Download(ann_, item_.id(), &got);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(ImpatientDownloadsTest, AReaderThatIsBehindLosesItsPlaceToAnother) {
  std::string got;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status status;
  do {
    status = Download(ann_, item_.id(), &got);
  } while (absl::IsResourceExhausted(status) && !deadline.Expired());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(got == video_);
  status = ReadOn();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_LT(read_.size(), video_.size());
}

// Each takes the place of the one before it, which has not read on since.
TEST_P(ImpatientDownloadsTest, ReadersThatStandStillAreInNoOthersWay) {
  std::list<Reader> readers;
  const Deadline deadline = Deadline::In(2 * kMaxTestWait);
  for (int i = 0; i < 3; ++i) {
    google::api::HttpBody part;
    while (!readers.emplace_back(Begin()).Read(&part)) {
      ASSERT_FALSE(deadline.Expired()) << i << ": " << readers.back().Finish();
      readers.pop_back();
    }
  }
  const absl::Status status = ReadOn();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

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
  } while (absl::IsUnavailable(status) && !deadline.Expired());
  ASSERT_TRUE(status.ok()) << status;
  status = Append(ann_, item.id(), kPart, video.substr(kPart));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(status.message(), "the file cannot be kept");

  app_.Kill("media-frontend");
  app_.Start("media-frontend");
  do {
    status = Append(ann_, item.id(), kPart, video.substr(kPart));
  } while (absl::IsUnavailable(status) && !deadline.Expired());
  EXPECT_TRUE(status.ok()) << status;
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
    EXPECT_THAT(status.message(), testing::HasSubstr(service));
    app_.Start(service);
    EXPECT_TRUE(absl::IsNotFound(Download(bob_, item.id(), &bytes))) << service;
    // Channels try to connect again after a while. Until then the next post would fail at this service, not the next.
    ComposeRequest text;
    text.set_text("text alone");
    const Deadline deadline = Deadline::In(kMaxTestWait);
    do {
      status = app_.Compose(ann_, text, &post);
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
  Client client;
  Channel channel(&client, app_.AddressOf("media"));
  const Media::Stub media(&channel);
  MediaId id;
  id.set_id(item.id());
  OwnedMedia found;
  MediaItems items, made;
  items.add_media()->set_id(item.id());
  items.set_draft(1);
  Context ctx(kMaxTestWait);
  ASSERT_TRUE(media.Find(ctx, id, &found).ok());
  items.set_owner(found.owner());
  const absl::Status status = media.Create(ctx, items, &made);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(Upload(bob_, kPng, "image/png", &other).ok());
  std::string bytes;
  EXPECT_TRUE(Download(bob_, item.id(), &bytes).ok());
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
  std::string bytes;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status status;
  do {
    status = Download(bob_, item.id(), &bytes);
  } while (!status.ok() && !deadline.Expired());
  EXPECT_TRUE(status.ok()) << status << ": the draft has not taken it";
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
