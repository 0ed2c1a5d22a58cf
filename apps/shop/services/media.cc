// SPDX-License-Identifier: Apache-2.0
//
// Media: the pictures of products, a file each in the folder `pictures`, which `shop fill` has written.
#include <cstdio>
#include <string>

#include "apps/kit/blobs/media_files.h"
#include "apps/kit/data/folder.h"
#include "apps/shop/common/pictures.h"
#include "apps/shop/data.h"
#include "curtail/exec/aside.h"
#include "goods.curtail.h"

namespace curtail::shop {

struct PicturesService final : Pictures::CoroutineService {
  explicit PicturesService(std::string folder) : files(std::move(folder)) {}

  Coroutine Get(Context&, const PictureQuery& request, google::api::HttpBody* reply) override {
    co_return co_await Offloading([&] {
      const apps::MediaFiles::Reader file = files.Open(request.picture());
      if (file == nullptr) return absl::NotFoundError(Join("there is no picture ", request.picture()));
      std::string& bytes = *reply->mutable_data();
      bytes.resize(kMostPictureBytes);
      bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
      const std::string_view type = apps::MediaKindOf(bytes).type;
      reply->set_content_type(std::string(type));
      return type.empty() ? absl::DataLossError(Join("picture ", request.picture(), " is unreadable"))
                          : absl::OkStatus();
    });
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Get", {}}}; }

  const apps::MediaFiles files;
};

HostedService HostedMedia() {
  return apps::HostedOnData(kApplication, "media", [](Env&, const apps::DataOptions& data) -> MadeService {
    const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data.folder);
    if (!folder.ok()) return folder.status();
    return std::make_unique<PicturesService>(Join(*folder, "/", kPicturesFolder));
  });
}

}  // namespace curtail::shop
