// SPDX-License-Identifier: Apache-2.0
//
// Media front end: the bytes of images, a file each.
//
// The type of an image is what its first bytes say. An image is its owner's alone until a post has it; then those see it
// who see its owner.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "apps/kit/output_file.h"
#include "apps/social/data.h"
#include "apps/social/folder.h"
#include "apps/social/page.h"
#include "content.curtail.h"
#include "curtail/exec/async.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "users.curtail.h"

namespace curtail::social {

constexpr size_t kMostImageBytes = 4u << 20;
constexpr Nanos kForgetTime = std::chrono::seconds(2);

// Empty for what is no image that it knows.
std::string_view ImageTypeOf(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return "image/gif";
  if (bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP") return "image/webp";
  return {};
}

struct MediaFrontendService final : MediaFrontend::CoroutineService {
  MediaFrontendService(std::string f, Env& env)
      : folder(std::move(f)),
        media(env.Stub<Media>("media")),
        block_user(env.Stub<BlockUser>("block-user")) {}

  Coroutine Put(Context& ctx, const ImageOfUser& request, MediaItem* reply) override {
    const std::string& bytes = request.image().data();
    const std::string_view type = ImageTypeOf(bytes);
    if (bytes.size() > kMostImageBytes) co_return absl::InvalidArgumentError("an image over 4 MiB");
    if (type.empty()) co_return absl::InvalidArgumentError("no png, jpeg, gif or webp image");
    if (!request.image().content_type().empty() && request.image().content_type() != type)
      co_return absl::InvalidArgumentError(Join("its bytes are those of ", type));
    OwnedMedia owned;
    owned.set_owner(request.owner());
    owned.mutable_item()->set_type(std::string(type));
    owned.mutable_item()->set_bytes(bytes.size());
    auto [registered] = co_await WhenAll(ctx, Ask(media, Media::kRegister, owned));
    if (!registered.ok()) co_return registered.status();
    if (!registered->expired().empty()) {
      Ids expired;
      expired.mutable_ids()->Swap(registered->mutable_expired());
      // The next upload repeats it if it fails.
      if (Offload([&] { return Remove(expired); }).ok())
        co_await WhenAll(ctx, Ask(media, Media::kDelete, expired));
    }
    MediaItem* const kept = registered->mutable_item();
    absl::Status written = Offload([&] {
      apps::OutputFile file(PathOf(kept->id()));
      absl::Status status = file.Write(bytes);
      return status.ok() ? file.Commit() : status;
    });
    if (!written.ok()) {
      Ids id;
      id.add_ids(kept->id());
      Context last(&ctx, Deadline::In(kForgetTime));
      co_await WhenAll(last, Ask(media, Media::kDelete, id));
      co_return absl::ResourceExhaustedError("the image cannot be kept");
    }
    reply->Swap(kept);
    co_return absl::OkStatus();
  }

  Coroutine Get(Context& ctx, const ImageQuery& request, google::api::HttpBody* reply) override {
    MediaId id;
    id.set_id(request.id());
    auto [found] = co_await WhenAll(ctx, Ask(media, Media::kFind, id));
    if (!found.ok()) co_return found.status();
    LookRequest look;
    look.set_viewer(request.viewer());
    if (request.viewer() != found->owner()) look.add_authors(found->owner());
    auto [hidden] = co_await WhenAll(ctx, Ask(block_user, BlockUser::kHidden, look));
    if (!hidden.ok()) co_return hidden.status();
    const bool shown = found->linked() ? hidden->ids().empty() : request.viewer() == found->owner();
    const bool read = shown && Offload([&] {
                        std::ifstream file(PathOf(request.id()), std::ios::binary);
                        reply->mutable_data()->assign(std::istreambuf_iterator<char>(file), {});
                        return file.good() || file.eof();
                      });
    if (!read || reply->data().empty()) co_return absl::NotFoundError("there is no such image");
    reply->set_content_type(found->item().type());
    co_return absl::OkStatus();
  }

  Coroutine Delete(Context&, const Ids& request, Nothing*) override {
    if (absl::Status status = CheckCount(request.ids_size(), kMostIds, "ids"); !status.ok()) co_return status;
    co_return Offload([&] { return Remove(request); });
  }

  absl::Status Remove(const Ids& ids) const {
    absl::Status status;
    for (const uint64_t id : ids.ids()) {
      if (unlink(PathOf(id).c_str()) != 0 && errno != ENOENT)
        status.Update(absl::InternalError("an image stays"));
    }
    return status;
  }

  std::string PathOf(uint64_t id) const { return Join(folder, "/", id); }

  std::vector<DeclaredPath> Paths() const override {
    const std::string items(Media::kServiceName), blocks(BlockUser::kServiceName);
    return {{"Put", {items}}, {"Get", {items, blocks}}, {"Delete", {}}};
  }

  const std::string folder;
  const Media::Stub media;
  const BlockUser::Stub block_user;
};

HostedService HostedMediaFrontend() {
  auto data = std::make_shared<DataOptions>();
  return {.name = "media-frontend",
          .calls = {"media", "block-user"},
          .flags = [data](Flags& flags) { AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            const absl::StatusOr<std::string> folder = DataFolder(data->folder);
            if (!folder.ok()) return folder.status();
            const absl::StatusOr<std::string> images = DataFolder(*folder + "/media");
            if (!images.ok()) return images.status();
            return std::make_unique<MediaFrontendService>(*images, env);
          }};
}

}  // namespace curtail::social
