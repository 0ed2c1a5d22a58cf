// SPDX-License-Identifier: Apache-2.0
#include "parts.h"

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "compose.curtail.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"

namespace curtail::study {
namespace {

using namespace compose;

// Word after word: addresses are replaced, names noted.
class TextService final : public TextParser::Service {
  absl::Status Compose(Context&, const TextRequest& in, TextReply* out) override {
    std::string_view rest = in.text();
    std::string* const text = out->mutable_text();
    text->reserve(rest.size());
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      Append(word, out);
      rest.remove_prefix(word.size());
      if (!rest.empty()) {
        text->push_back(' ');
        rest.remove_prefix(1);
      }
    }
    return absl::OkStatus();
  }

  static void Append(std::string_view word, TextReply* out) {
    if (word.starts_with("http://")) {
      Url* const url = out->add_urls();
      url->set_expanded(std::string(word));
      url->set_shortened(Join("http://short/", std::hash<std::string_view>{}(word) % 1'000'000'000));
      out->mutable_text()->append(url->shortened());
      return;
    }
    if (word.starts_with("@")) out->add_mentions(std::string(word.substr(1)));
    out->mutable_text()->append(word);
  }
};

class UserService final : public Users::Service {
  absl::Status Compose(Context&, const UserRequest& in, Creator* out) override {
    out->set_id(in.id());
    out->set_name(in.name());
    return absl::OkStatus();
  }
};

class MediaService final : public MediaLibrary::Service {
  absl::Status Compose(Context&, const MediaRequest& in, MediaReply* out) override {
    if (in.ids_size() != in.types_size())
      return absl::InvalidArgumentError("a medium needs an id and a type");
    for (int i = 0; i < in.ids_size(); ++i) {
      Media* const one = out->add_media();
      one->set_id(in.ids(i));
      one->set_type(in.types(i));
    }
    return absl::OkStatus();
  }
};

// Milliseconds and a counter, as snowflake numbers are made.
class IdService final : public UniqueIds::Service {
  absl::Status Compose(Context&, const IdRequest&, IdReply* out) override {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Now().time_since_epoch()).count();
    out->set_id((ms << 20 | (counter_.fetch_add(1, std::memory_order_relaxed) & 0xfffff)) & INT64_MAX);
    return absl::OkStatus();
  }

  // Atomic: only its values must differ.
  std::atomic<int64_t> counter_{0};
};

// Keeps the latest posts in memory.
class TimelineService final : public Timeline::Service {
  absl::Status Store(Context&, const Post& in, StoreReply* out) override {
    out->set_id(in.id());
    MutexLock lock(mu_);
    posts_[next_++ % posts_.size()] = in;
    return absl::OkStatus();
  }

  absl::Status Read(Context&, const ReadRequest& in, Post* out) override {
    MutexLock lock(mu_);
    for (const Post& post : posts_) {
      if (post.id() != in.id()) continue;
      *out = post;
      return absl::OkStatus();
    }
    return absl::NotFoundError("no such post among the latest");
  }

  Mutex mu_;
  std::array<Post, 256> posts_ CURTAIL_GUARDED_BY(mu_);
  size_t next_ CURTAIL_GUARDED_BY(mu_) = 0;
};

}  // namespace

std::unique_ptr<Service> MakePart(std::string_view part) {
  if (part == kParts[0]) return std::make_unique<TextService>();
  if (part == kParts[1]) return std::make_unique<UserService>();
  if (part == kParts[2]) return std::make_unique<MediaService>();
  if (part == kParts[3]) return std::make_unique<IdService>();
  return std::make_unique<TimelineService>();
}

}  // namespace curtail::study
