// SPDX-License-Identifier: Apache-2.0
//
// Media front end: the bytes of images and videos, a file each.
//
// Their type is what the first bytes say. They are their owner's alone until a post has them; then those see them who see
// the owner. An upload in parts is shown once all of it is there.
//
// A download's parts are asked for one after the other, so that of a slow reader no bytes are held here. It has a place, which
// it loses to the next download that needs one (download_places.h). Videos have places of their own: they take none from images.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <utility>

#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/blobs/download_places.h"
#include "apps/kit/blobs/media_files.h"
#include "apps/kit/blobs/range_headers.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/fair_semaphore.h"
#include "apps/kit/once.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/base/clock.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/exec/aside.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "users.curtail.h"

namespace curtail::social {

// So the parts that are being written have 64 MiB at most, and those that are read the same.
constexpr size_t kMostPartBytes = 4u << 20, kReadBytes = 256u << 10;
constexpr int kMostWritten = 16, kMostWrittenOfUser = 2;
constexpr size_t kMostWaiting = 16;  // 64 MiB more
constexpr Nanos kMostWriteWait = std::chrono::seconds(2);
constexpr Nanos kForgetTime = std::chrono::seconds(2), kBetweenLines = std::chrono::seconds(10);
// Of a download at most, also where no other needs its place.
constexpr Nanos kMostReadTime = std::chrono::minutes(5);

struct MediaFrontendOptions {
  Data data;
  uint32_t downloads = 128;
  uint32_t download_kib_s = 64;
};

struct MediaFrontendService final : MediaFrontend::CoroutineService {
  MediaFrontendService(const MediaFrontendOptions& options, std::string folder, Env& e)
      : files(std::move(folder)),
        images(options.downloads, uint64_t{options.download_kib_s} << 10),
        videos(options.downloads, uint64_t{options.download_kib_s} << 10),
        env(e) {}

  static absl::Status CheckUpload(const FileOfUser& request, const apps::MediaKind& kind) {
    const std::string& bytes = request.file().data();
    const std::string& said = request.file().content_type();
    if (kind.type.empty()) return absl::InvalidArgumentError("no png, jpeg, gif, webp, mp4 or webm");
    if (bytes.size() > kMostPartBytes) return absl::InvalidArgumentError("over 4 MiB at once");
    if (!said.empty() && said != kind.type)
      return absl::InvalidArgumentError(Join("its bytes are those of ", kind.type));
    if (request.size() != 0 && request.size() < bytes.size())
      return absl::InvalidArgumentError("more bytes than its size");
    if (std::max<uint64_t>(request.size(), bytes.size()) > kind.most_bytes)
      return absl::InvalidArgumentError(
          Join("a file of ", kind.type, " over ", kind.most_bytes >> 20, " MiB"));
    return absl::OkStatus();
  }

  // The permit of a user to write, for which the caller waits briefly.
  Co<absl::StatusOr<apps::FairSemaphore::Permit>> MayWrite(Context& ctx, uint64_t user) {
    Context brief(&ctx);
    brief.ShortenDeadline(Deadline::In(kMostWriteWait));
    auto permit = co_await written.Acquire(brief, Join(user));
    if (!permit.ok()) co_return TooMany("uploads");
    co_return std::move(permit);
  }

  Coroutine Put(Context& ctx, const FileOfUser& request, MediaItem* reply) override {
    const std::string& bytes = request.file().data();
    const apps::MediaKind kind = apps::MediaKindOf(bytes);
    if (absl::Status status = CheckUpload(request, kind); !status.ok()) co_return status;
    const auto permit = co_await MayWrite(ctx, request.owner());
    if (!permit.ok()) co_return permit.status();
    OwnedMedia owned;
    owned.set_owner(request.owner());
    owned.mutable_item()->set_type(std::string(kind.type));
    owned.mutable_item()->set_bytes(std::max<uint64_t>(request.size(), bytes.size()));
    owned.set_partial(request.size() > bytes.size());
    const apps::Once once(ctx, request.owner());
    Context named(&ctx);
    once.HandOn(named);
    auto [registered] = co_await WhenAll(named, Ask(media, Media::kRegister, owned));
    if (!registered.ok()) co_return registered.status();
    if (!registered->expired().empty()) {
      Ids expired;
      expired.mutable_ids()->Swap(registered->mutable_expired());
      // The next upload repeats it if it fails.
      const absl::Status removed = co_await Offloading([&] { return Remove(expired); });
      if (removed.ok()) co_await WhenAll(ctx, Ask(media, Media::kDelete, expired));
    }
    MediaItem* const kept = registered->mutable_item();
    const absl::Status created = co_await Offloading([&] {
      // That of the first request of this name has further parts, perhaps.
      if (once.named() && files.Open(kept->id()) != nullptr) return absl::OkStatus();
      return files.Create(kept->id(), bytes);
    });
    if (!created.ok()) {
      Ids id;
      id.add_ids(kept->id());
      Context last(&ctx, Deadline::In(kForgetTime));
      co_await WhenAll(last, Ask(media, Media::kDelete, id));
      co_return NotKept(created);
    }
    reply->Swap(kept);
    co_return absl::OkStatus();
  }

  Coroutine Append(Context& ctx, const PartOfUser& request, MediaItem* reply) override {
    const std::string& bytes = request.part().data();
    if (bytes.size() > kMostPartBytes) co_return absl::InvalidArgumentError("over 4 MiB at once");
    const auto permit = co_await MayWrite(ctx, request.owner());
    if (!permit.ok()) co_return permit.status();
    MediaId id;
    id.set_id(request.id());
    auto [found] = co_await WhenAll(ctx, Ask(media, Media::kFind, id));
    if (!found.ok()) co_return found.status();
    const uint64_t whole = found->item().bytes();
    if (found->owner() != request.owner()) co_return absl::NotFoundError("there is no such upload");
    if (request.from() > whole || bytes.size() > whole - request.from())
      co_return absl::InvalidArgumentError(Join("the upload has ", whole, " bytes"));
    *reply = found->item();
    if (!found->partial()) co_return absl::OkStatus();  // the part came before
    const absl::StatusOr<uint64_t> there =
        co_await Offloading([&] { return files.Append(request.id(), request.from(), bytes, whole); });
    if (absl::IsInternal(there.status())) co_return NotKept(there.status());
    if (!there.ok()) co_return there.status();
    if (*there < whole) co_return absl::OkStatus();
    auto [completed] = co_await WhenAll(ctx, Ask(media, Media::kComplete, *found));
    co_return completed.status();
  }

  Coroutine Get(Context& ctx, AsyncServerStream<FileQuery, google::api::HttpBody>& stream) override {
    FileQuery query;
    if (!co_await stream.Read(&query)) co_return NotThere();
    MediaItem item;
    if (absl::Status seen = co_await See(ctx, query, &item); !seen.ok()) co_return seen;
    const absl::StatusOr<apps::ByteRange> range = apps::RangeOf(query.range(), item.bytes());
    apps::AddRangeHeaders(ctx, range, item.bytes());
    stream.SendInitialMetadata();
    if (!range.ok()) co_return range.status();
    apps::DownloadPlaces::Hold place(item.type().starts_with("video/") ? videos : images,
                                     std::string(ctx.metadata().Find(apps::kClientAddress).value_or("")),
                                     ctx);
    if (!place) co_return TooMany("downloads");
    ctx.ShortenDeadline(Deadline::In(kMostReadTime));
    const absl::Status sent = co_await Send(item, *range, place, stream);
    if (!place.End()) co_return Lost();
    co_return sent;
  }

  // A part each time that the other end asks for one.
  Coroutine Send(const MediaItem& item, apps::ByteRange range, apps::DownloadPlaces::Hold& place,
                 AsyncServerStream<FileQuery, google::api::HttpBody>& stream) {
    const apps::MediaFiles::Reader file =
        co_await Offloading([&] { return files.Open(item.id(), range.from); });
    if (file == nullptr) co_return NotThere();
    FileQuery query;
    bool asks = true;
    for (uint64_t left = range.bytes, bytes = 0; left > 0; left -= bytes) {
      if (asks && left < range.bytes) asks = co_await stream.Read(&query);
      if (!asks && !stream.status().ok()) co_return stream.status();
      bytes = std::min<uint64_t>(left, kReadBytes);
      if (!place.Ask(bytes)) co_return Lost();
      google::api::HttpBody part;  // gone while the next is waited for
      part.set_content_type(item.type());
      std::string& into = *part.mutable_data();
      into.resize(bytes);
      const size_t got =
          co_await Offloading([&] { return std::fread(into.data(), 1, into.size(), file.get()); });
      if (got != bytes) co_return absl::DataLossError("bytes of the file are missing");
      if (!co_await stream.Write(part)) co_return stream.status();
    }
    co_return absl::OkStatus();
  }

  // NOT_FOUND: the viewer may not see it, or not yet.
  Coroutine See(Context& ctx, const FileQuery& query, MediaItem* item) {
    MediaId id;
    id.set_id(query.id());
    auto [found] = co_await WhenAll(ctx, Ask(media, Media::kFind, id));
    if (!found.ok()) co_return found.status();
    LookRequest look;
    look.set_viewer(query.viewer());
    if (query.viewer() != found->owner()) look.add_authors(found->owner());
    auto [hidden] = co_await WhenAll(ctx, Ask(block_user, BlockUser::kHidden, look));
    if (!hidden.ok()) co_return hidden.status();
    const bool shown = found->linked() ? hidden->ids().empty() : query.viewer() == found->owner();
    if (!shown || found->partial()) co_return NotThere();
    item->Swap(found->mutable_item());
    co_return absl::OkStatus();
  }

  Coroutine Delete(Context&, const Ids& request, Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    co_return co_await Offloading([&] { return Remove(request); });
  }

  absl::Status Remove(const Ids& ids) {
    absl::Status status;
    for (const uint64_t id : ids.ids()) status.Update(files.Remove(id));
    if (status.ok()) return status;
    Tell(status);
    return absl::InternalError("the files cannot be removed");
  }

  absl::Status NotKept(const absl::Status& why) {
    Tell(why);
    return absl::ResourceExhaustedError("the file cannot be kept");
  }

  // Tells the operator what clients do not learn, as it names files of this machine.
  void Tell(const absl::Status& why) {
    const int64_t now = Nanos(Now().time_since_epoch()).count();
    int64_t before = told.load(std::memory_order_relaxed);
    if (before != 0 && now - before < kBetweenLines.count()) return;
    if (told.compare_exchange_strong(before, now, std::memory_order_relaxed))
      Log(Severity::kError, Join("media-frontend: ", Message(why)));
  }

  static absl::Status Lost() { return absl::DeadlineExceededError("another reader needs the place"); }
  static absl::Status NotThere() { return absl::NotFoundError("there is no such media"); }
  static absl::Status TooMany(std::string_view what) {
    return absl::ResourceExhaustedError(Join("too many ", what, " at once; try again"));
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Put", {media}}, {"Append", {media}}, {"Get", {media, block_user}}, {"Delete", {}}};
  }

  const apps::MediaFiles files;
  apps::FairSemaphore written{kMostWritten, kMostWrittenOfUser, kMostWaiting};
  apps::DownloadPlaces images, videos;
  // Atomic; relaxed, the time of the last line to the operator, 0 before the first.
  std::atomic<int64_t> told{0};
  Env& env;
  const Media::Stub media = env.Stub<Media>("media");
  const BlockUser::Stub block_user = env.Stub<BlockUser>("block-user");
};

HostedService HostedMediaFrontend() {
  auto options = std::make_shared<MediaFrontendOptions>();
  return {.name = "media-frontend",
          .flags =
              [options](Flags& flags) {
                apps::AddDataFlags(flags, &options->data);
                flags.Add("--downloads", &options->downloads,
                          "media-frontend: images that are read at once, and as many videos", {1, 4096});
                flags.Add("--download-rate", &options->download_kib_s,
                          "media-frontend: KiB a second with which a reader is sure of its place",
                          {1, 100'000});
              },
          .make = [options](Env& env) -> MadeService {
            const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, options->data.folder);
            if (!folder.ok()) return folder.status();
            const absl::StatusOr<std::string> images = apps::DataFolder(kApplication, *folder + "/media");
            if (!images.ok()) return images.status();
            return std::make_unique<MediaFrontendService>(*options, *images, env);
          }};
}

}  // namespace curtail::social
