// SPDX-License-Identifier: Apache-2.0
//
// videos.h - the folder of videos, which movies share: FOLDER/3/main.m3u8, FOLDER/3/300k/index.m3u8, FOLDER/3/300k/seg000.ts,
// FOLDER/3/poster.png. It is what nginx serves, too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/kit/data/data.h"
#include "media.pb.h"

namespace curtail::media {

// The folder of the videos below --data. Errors: those of DataFolder().
absl::StatusOr<std::string> VideoFolder(const apps::DataOptions& data);

// The videos of the folder, by their names. Blocks. DATA_LOSS: a playlist is missing or unreadable.
absl::StatusOr<std::vector<Video>> ReadVideos(const std::string& folder);

// True for names that are playlists or segments: no "..", no hidden file.
bool IsVideoFile(std::string_view file);
inline bool IsSegment(std::string_view file) { return file.ends_with(".ts"); }
std::string_view TypeOf(std::string_view file);

struct RenderOptions {
  apps::DataOptions data;
  uint32_t videos = 8, seconds = 60;
  std::string ffmpeg = "ffmpeg";
};
// Renders the videos that are not there, by ffmpeg: a test picture with the time in it, in three bit rates. FAILED_PRECONDITION: there is no
// ffmpeg, or it failed.
absl::Status RenderVideos(const RenderOptions& options);

struct NginxOptions {
  apps::DataOptions data;
  std::string listen, check;  // HOST:PORT; where Media.CheckStream() is
  std::string nginx = "nginx";
};
// Serves the videos by an nginx in this process's place, which asks `check` about passes, once in 10 s. Returns only if that fails.
absl::Status BecomeNginx(const NginxOptions& options);

}  // namespace curtail::media
