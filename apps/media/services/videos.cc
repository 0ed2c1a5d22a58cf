// SPDX-License-Identifier: Apache-2.0
//
// Videos: the renditions of a movie's video, their segments and lengths. Movies share the videos of the folder.
#include "apps/media/common/video_catalog.h"
#include "streams.curtail.h"

namespace curtail::media {

struct VideosService final : Videos::CoroutineService {
  VideosService(VideoCatalog& c, Env& e) : catalog(c), env(e) {}
  static MadeService Make(VideoCatalog& catalog, Env& env, const apps::DataOptions&) {
    return std::make_unique<VideosService>(catalog, env);
  }

  Coroutine Of(Context& ctx, const VideoQuery& request, Video* reply) override {
    auto [found] = co_await WhenAll(ctx, Ask(info, MovieInfo::kRead, IdsOf(request.movie())));
    if (!found.ok()) co_return found.status();
    if (found->movies().empty()) co_return absl::NotFoundError("there is no such movie");
    co_return co_await catalog.Find(request.movie(), reply);
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Of", {info}}}; }

  VideoCatalog& catalog;
  Env& env;
  const MovieInfo::Stub info = env.Stub<MovieInfo>("movie-info");
};

HostedService HostedVideos() { return HostedWithVideos<VideosService>("videos"); }

}  // namespace curtail::media
