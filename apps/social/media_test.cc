// SPDX-License-Identifier: Apache-2.0
//
// Images that users upload, as clients see them.
#include <gmock/gmock.h>

#include <filesystem>

#include "apps/social/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::social {
namespace {

const std::string kPng("\x89PNG\r\n\x1a\n\0pixels", 15);

class MediaTest : public testing::TestWithParam<bool> {
 protected:
  explicit MediaTest(std::vector<std::string> flags = {})
      : app_(GetParam() ? "ADB1-2-2" : "FIB1", /*monolith=*/true, std::move(flags)) {}

  absl::Status Upload(const Session& by, const std::string& bytes, const std::string& type, MediaItem* item) {
    MediaUpload request;
    request.set_token(by.token());
    request.mutable_image()->set_data(bytes);
    request.mutable_image()->set_content_type(type);
    Context ctx(kMaxTestWait);
    return app_.Front().UploadMedia(ctx, request, item);
  }
  absl::Status Download(const Session& by, uint64_t id, std::string* bytes, std::string* type = nullptr) {
    PostRequest request;
    request.set_token(by.token());
    request.set_id(id);
    Context ctx(kMaxTestWait);
    google::api::HttpBody body;
    const absl::Status status = app_.Front().DownloadMedia(ctx, request, &body);
    *bytes = body.data();
    if (type != nullptr) *type = body.content_type();
    return status;
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

}  // namespace
}  // namespace curtail::social
