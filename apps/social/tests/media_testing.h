// SPDX-License-Identifier: Apache-2.0
//
// media_testing.h - uploads and downloads as clients make them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "content.curtail.h"
#include "curtail/base/testing.h"

namespace curtail::social {

inline const std::string kPng("\x89PNG\r\n\x1a\n\0pixels", 15);

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
  // A part, and the headers of the answer that tell of it.
  absl::Status DownloadRange(uint64_t id, const std::string& range, std::string* bytes, std::string* told) {
    PostRequest request;
    request.set_token(ann_.token());
    request.set_id(id);
    Context ctx(kMaxTestWait);
    ctx.AddMetadata("range", range);
    auto parts = app_.Front().DownloadMedia(ctx, request);
    bytes->clear();
    for (google::api::HttpBody part; parts.Read(&part);) bytes->append(part.data());
    const absl::Status status = parts.Finish();
    *told = std::string(parts.metadata().initial.Find("content-range").value_or(""));
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

// The beginning of an mp4: a box with its brands.
inline std::string Mp4(size_t size) {
  std::string bytes(
      "\0\0\0\x18"
      "ftypisom\0\0\2\0isommp42",
      24);
  for (size_t i = bytes.size(); i < size; ++i) bytes.push_back(static_cast<char>(i * i >> 7));
  return bytes;
}

}  // namespace curtail::social
