// SPDX-License-Identifier: Apache-2.0
//
// Photos: the pictures of a movie, files beside its video.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "apps/kit/blobs/media_files.h"
#include "apps/media/common/video_catalog.h"
#include "curtail/base/strings.h"
#include "streams.curtail.h"

namespace curtail::media {

struct PhotosService final : Photos::CoroutineService {
  explicit PhotosService(VideoCatalog& c) : catalog(c) {}
  static MadeService Make(VideoCatalog& catalog, Env&, const apps::DataOptions&) {
    return std::make_unique<PhotosService>(catalog);
  }

  Coroutine Of(Context&, const VideoQuery& request, PhotoList* reply) override {
    Video video;
    absl::Status status = co_await catalog.Find(request.movie(), &video);
    if (absl::IsNotFound(status)) co_return absl::OkStatus();
    if (!status.ok()) co_return status;
    co_return co_await Offloading([&] {
      std::error_code error;
      for (const auto& file : std::filesystem::directory_iterator(FolderOf(video), error))
        if (file.path().extension() == ".png") reply->add_names(file.path().filename());
      std::sort(reply->mutable_names()->begin(), reply->mutable_names()->end());
      return absl::OkStatus();
    });
  }

  // Only a name that Of() lists is opened.
  Coroutine Get(Context& ctx, const PhotoRequest& request, google::api::HttpBody* reply) override {
    VideoQuery query;
    query.set_movie(request.movie());
    PhotoList list;
    Video video;
    absl::Status status = co_await Of(ctx, query, &list);
    if (!status.ok()) co_return status;
    if (std::ranges::find(list.names(), request.name()) == list.names().end())
      co_return absl::NotFoundError("the movie has no such photo");
    if (status = co_await catalog.Find(request.movie(), &video); !status.ok()) co_return status;
    co_return co_await Offloading([&] {
      std::ifstream file(Join(FolderOf(video), "/", request.name()), std::ios::binary);
      reply->mutable_data()->assign(std::istreambuf_iterator<char>(file), {});
      const std::string_view type = apps::MediaKindOf(reply->data()).type;
      reply->set_content_type(std::string(type));
      return type.empty() ? absl::DataLossError("the photo is unreadable") : absl::OkStatus();
    });
  }

  std::string FolderOf(const Video& video) const { return Join(catalog.folder(), "/", video.name()); }

  std::vector<DeclaredPath> Paths() const override { return {{"Of", {}}, {"Get", {}}}; }

  VideoCatalog& catalog;
};

HostedService HostedPhotos() { return HostedWithVideos<PhotosService>("photos"); }

}  // namespace curtail::media
