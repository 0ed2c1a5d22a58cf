// SPDX-License-Identifier: Apache-2.0
//
// Images and videos that users upload, as clients see them.
#include <gmock/gmock.h>

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/media_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::social {
namespace {

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

// Of three parts as they are sent.
TEST_P(MediaTest, ARangeOfAFileIsDownloaded) {
  const std::string video = Mp4(700 << 10);
  MediaItem item;
  ASSERT_TRUE(Upload(ann_, video, "", &item).ok());
  const size_t size = video.size();
  std::string bytes, told;
  const auto expect = [&](const std::string& range, size_t from, size_t count) {
    const absl::Status status = DownloadRange(item.id(), range, &bytes, &told);
    EXPECT_TRUE(status.ok()) << range << ": " << status;
    EXPECT_TRUE(bytes == video.substr(from, count)) << range << " has " << bytes.size() << " bytes";
    EXPECT_EQ(told, Join("bytes ", from, "-", from + count - 1, "/", size));
  };
  expect("bytes=0-0", 0, 1);
  expect("bytes=10-300000", 10, 299991);
  expect("bytes=600000-", 600000, size - 600000);
  expect("bytes=-300000", size - 300000, 300000);
  const absl::Status status = DownloadRange(item.id(), Join("bytes=", size, "-"), &bytes, &told);
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_EQ(told, Join("bytes */", size));
  ASSERT_TRUE(DownloadRange(item.id(), "bytes=0-1,4-5", &bytes, &told).ok());
  EXPECT_EQ(bytes, video);
  EXPECT_EQ(told, "");
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
  explicit FewDownloadsTest(const char* rate, const char* most = "1")
      : MediaTest({"--downloads", most, "--download-rate", rate}) {}

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

class TwoPatientDownloadsTest : public FewDownloadsTest {
 protected:
  TwoPatientDownloadsTest() : FewDownloadsTest("1", "2") {}
};

// It is behind after little more than the 2 s that each has.
class ImpatientDownloadsTest : public FewDownloadsTest {
 protected:
  ImpatientDownloadsTest() : FewDownloadsTest("100000") {}
};

INSTANTIATE_TEST_SUITE_P(Models, PatientDownloadsTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "ADB" : "FIB"); });
INSTANTIATE_TEST_SUITE_P(Models, TwoPatientDownloadsTest, testing::Bool(),
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

TEST_P(TwoPatientDownloadsTest, AnAddressWithManyLosesOneToAnother) {
  Reader second = Begin();
  google::api::HttpBody part;
  for (size_t read = 0; read < 2u << 20; read += part.data().size()) ASSERT_TRUE(second.Read(&part));
  std::string got;
  absl::Status status = Download(ann_, item_.id(), &got);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  PostRequest request;
  request.set_token(ann_.token());
  request.set_id(item_.id());
  Context ctx(kMaxTestWait);
  ctx.AddMetadata("x-forwarded-for", "192.0.2.1");
  Reader other = app_.Front().DownloadMedia(ctx, request);
  got.clear();
  while (other.Read(&part)) got += part.data();
  status = other.Finish();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(got == video_);
}

TEST_P(ImpatientDownloadsTest, AReaderThatIsBehindLosesItsPlaceToAnother) {
  std::string got;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status status;
  do {
    status = Download(ann_, item_.id(), &got);
    BetweenLooks();
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

}  // namespace
}  // namespace curtail::social
