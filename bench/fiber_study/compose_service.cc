// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The handler is a template over what starts a part of the request beside it, so that the variants differ
// in that and in nothing else. As in DeathStarBench's ComposePost every part is one call, the handler joins the
// four in the order in which it started them, and only then stores the post.
#include "compose_service.h"

#include <sys/resource.h>

#include <atomic>
#include <future>
#include <utility>

#include "compose.curtail.h"
#include "curtail/rpc/async.h"

namespace curtail::study {
namespace {

using namespace compose;

// A part of a request on a thread of its own. Its Context is made and ends on the request's thread; the future
// is destroyed first, and its destructor joins.
class ThreadPart {
 public:
  template <class F>
  ThreadPart(Context& ctx, F f)
      : context_(std::make_unique<Context>(&ctx)),
        future_(std::async(std::launch::async,
                           [part = context_.get(), f = std::move(f)]() mutable { return f(*part); })) {}
  absl::Status get() { return future_.get(); }

 private:
  std::unique_ptr<Context> context_;
  std::future<absl::Status> future_;
};

struct StdAsync {
  template <class F>
  static ThreadPart Start(Context& ctx, F f) {
    return ThreadPart(ctx, std::move(f));
  }
};

struct CurtailAsync {
  template <class F>
  static auto Start(Context& ctx, F f) {
    return curtail::async(ctx, std::move(f));
  }
};

uint64_t Microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

TextRequest TextPart(const PostRequest& in) {
  TextRequest request;
  request.set_text(in.text());
  return request;
}

UserRequest UserPart(const PostRequest& in) {
  UserRequest request;
  request.set_id(in.user_id());
  request.set_name(in.user_name());
  return request;
}

MediaRequest MediaPart(const PostRequest& in) {
  MediaRequest request;
  *request.mutable_ids() = in.media_ids();
  *request.mutable_types() = in.media_types();
  return request;
}

template <class Async>
class ComposerService final : public Composer::Service {
 public:
  ComposerService(Client* client, const std::vector<std::string>& addresses)
      : text_channel_(client, addresses[0]),
        users_channel_(client, addresses[1]),
        media_channel_(client, addresses[2]),
        ids_channel_(client, addresses[3]),
        timeline_channel_(client, addresses[4]) {}

  absl::Status Compose(Context& ctx, const PostRequest& in, StoreReply* out) override {
    requests_.fetch_add(1, std::memory_order_relaxed);
    TextReply text;
    Creator creator;
    MediaReply media;
    IdReply id;
    absl::Status outcomes[kParallelCalls];
    {
      auto a = Async::Start(ctx, [&](Context& part) { return text_.Compose(part, TextPart(in), &text); });
      auto b = Async::Start(ctx, [&](Context& part) { return users_.Compose(part, UserPart(in), &creator); });
      auto c = Async::Start(ctx, [&](Context& part) { return media_.Compose(part, MediaPart(in), &media); });
      auto d = Async::Start(ctx, [&](Context& part) { return ids_.Compose(part, IdRequest(), &id); });
      outcomes[0] = a.get();
      outcomes[1] = b.get();
      outcomes[2] = c.get();
      outcomes[3] = d.get();
    }
    for (absl::Status& outcome : outcomes) {
      if (!outcome.ok()) return std::move(outcome);
    }
    Post post;
    post.set_id(id.id());
    *post.mutable_creator() = std::move(creator);
    post.set_text(std::move(*text.mutable_text()));
    post.mutable_mentions()->Swap(text.mutable_mentions());
    post.mutable_urls()->Swap(text.mutable_urls());
    post.mutable_media()->Swap(media.mutable_media());
    return timeline_.Store(ctx, post, out);
  }

  // Not what /proc says of the threads: those that std::async started have ended by now, and their share with them.
  absl::Status Usage(Context&, const UsageRequest&, UsageReply* out) override {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    out->set_requests(requests_.load(std::memory_order_relaxed));
    out->set_cpu_us(Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime));
    out->set_voluntary_switches(static_cast<uint64_t>(usage.ru_nvcsw));
    out->set_involuntary_switches(static_cast<uint64_t>(usage.ru_nivcsw));
    return absl::OkStatus();
  }

 private:
  Channel text_channel_, users_channel_, media_channel_, ids_channel_, timeline_channel_;
  const TextParser::Stub text_{&text_channel_};
  const Users::Stub users_{&users_channel_};
  const MediaLibrary::Stub media_{&media_channel_};
  const UniqueIds::Stub ids_{&ids_channel_};
  const Timeline::Stub timeline_{&timeline_channel_};
  // Atomic, for statistics only.
  std::atomic<uint64_t> requests_{0};
};

}  // namespace

std::unique_ptr<Service> MakeComposer(bench::AsyncKind async, Client* client,
                                      const std::vector<std::string>& addresses) {
  if (async == bench::AsyncKind::kStd) return std::make_unique<ComposerService<StdAsync>>(client, addresses);
  return std::make_unique<ComposerService<CurtailAsync>>(client, addresses);
}

}  // namespace curtail::study
