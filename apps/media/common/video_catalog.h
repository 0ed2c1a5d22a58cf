// SPDX-License-Identifier: Apache-2.0
//
// video_catalog.h - the videos of the folder, and the video of each movie, for services that read them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/accounts/id_source.h"
#include "apps/media/common/videos.h"
#include "apps/media/data.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/aside.h"

namespace curtail::media {

// A VideoCatalog reads the folder until it has found videos, and keeps them. Movies share them by their ids. Thread-safe.
class VideoCatalog {
 public:
  explicit VideoCatalog(std::string folder) : folder_(std::move(folder)) {}
  const std::string& folder() const { return folder_; }

  // NOT_FOUND: there is no video. Other errors: those of ReadVideos().
  Coroutine Find(uint64_t movie, Video* video) {
    if (Take(movie, video)) co_return absl::OkStatus();
    absl::StatusOr<std::vector<Video>> read = co_await Offloading([this] { return ReadVideos(folder_); });
    if (!read.ok()) co_return read.status();
    Keep(*std::move(read));
    if (Take(movie, video)) co_return absl::OkStatus();
    co_return absl::NotFoundError("no movie has a video; the operator renders some by `media render`");
  }

 private:
  bool Take(uint64_t movie, Video* video) {
    const MutexLock lock(mu_);
    if (!videos_.empty()) *video = videos_[apps::PartOf(movie, videos_.size())];
    return !videos_.empty();
  }
  void Keep(std::vector<Video> videos) {
    const MutexLock lock(mu_);
    videos_ = std::move(videos);
  }

  const std::string folder_;
  Mutex mu_;
  std::vector<Video> videos_ CURTAIL_GUARDED_BY(mu_);
};

// A service of a VideoCatalog, its Env and its DataOptions.
template <class Made>
HostedService HostedWithVideos(std::string name) {
  return apps::HostedOnData(
      kApplication, std::move(name), [](Env& env, const apps::DataOptions& data) -> MadeService {
        auto folder = VideoFolder(data);
        if (!folder.ok()) return folder.status();
        return Made::Make(env.Keep(std::make_unique<VideoCatalog>(*std::move(folder))), env, data);
      });
}

}  // namespace curtail::media
