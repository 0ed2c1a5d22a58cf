// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The sizes are those of DeathStarBench's compose-post.lua: 256 letters of text, up to five names, five
// addresses of 64 letters and four media. The sample has all of them.
#include "workload.h"

#include "absl/strings/str_cat.h"
#include "compose.curtail.h"
#include "curtail/base/rng.h"

namespace curtail::study {
namespace {

constexpr int kMessages = 64;
constexpr int kTextLetters = 256;
constexpr int kUrlLetters = 64;
constexpr uint64_t kMaxNames = 5;
constexpr uint64_t kMaxUrls = 5;
constexpr uint64_t kMaxMedia = 4;

std::string Letters(int count, Rng& rng) {
  std::string text;
  for (int i = 0; i < count; ++i) text.push_back(static_cast<char>('a' + rng.Below(26)));
  return text;
}

struct Shape {
  uint64_t names;
  uint64_t urls;
  uint64_t media;
};

compose::PostRequest MakePost(const Shape& shape, Rng& rng) {
  compose::PostRequest post;
  post.set_user_id(static_cast<int64_t>(rng.Below(962)));
  post.set_user_name(absl::StrCat("username_", post.user_id()));
  std::string text = Letters(kTextLetters, rng);
  for (uint64_t i = 0; i < shape.names; ++i) absl::StrAppend(&text, " @username_", rng.Below(962));
  for (uint64_t i = 0; i < shape.urls; ++i) absl::StrAppend(&text, " http://", Letters(kUrlLetters, rng));
  post.set_text(text);
  for (uint64_t i = 0; i < shape.media; ++i) {
    post.add_media_ids(static_cast<int64_t>(rng.Next() >> 1));
    post.add_media_types("png");
  }
  return post;
}

}  // namespace

ComposeWorkload::ComposeWorkload(uint64_t seed) {
  Rng rng(seed);
  for (int i = 0; i < kMessages; ++i) {
    const Shape shape = {rng.Below(kMaxNames + 1), rng.Below(kMaxUrls + 1), rng.Below(kMaxMedia + 1)};
    messages_.push_back(MakePost(shape, rng).SerializeAsString());
  }
  sample_ = MakePost({kMaxNames, kMaxUrls, kMaxMedia}, rng);
}

std::string_view ComposeWorkload::method() const { return compose::Composer::kCompose.path; }

absl::Status ComposeWorkload::CheckSample(const compose::Post& post) const {
  const auto wrong = [](const char* what) {
    return absl::InternalError(absl::StrCat("a composed post has the wrong ", what));
  };
  if (post.creator().id() != sample_.user_id() || post.creator().name() != sample_.user_name()) {
    return wrong("creator");
  }
  if (post.mentions_size() != static_cast<int>(kMaxNames)) return wrong("names");
  if (post.urls_size() != static_cast<int>(kMaxUrls)) return wrong("addresses");
  if (post.text().size() >= sample_.text().size() ||
      !post.text().starts_with(sample_.text().substr(0, kTextLetters))) {
    return wrong("text");
  }
  if (post.media_size() != static_cast<int>(kMaxMedia)) return wrong("media");
  for (int i = 0; i < post.media_size(); ++i) {
    if (post.media(i).id() != sample_.media_ids(i)) return wrong("media");
  }
  return absl::OkStatus();
}

}  // namespace curtail::study
