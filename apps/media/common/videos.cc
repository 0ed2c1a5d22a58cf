// SPDX-License-Identifier: Apache-2.0
#include "apps/media/common/videos.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "apps/kit/data/folder.h"
#include "curtail/base/strings.h"

namespace curtail::media {
namespace {

constexpr std::string_view kStream = "#EXT-X-STREAM-INF:BANDWIDTH=", kLength = "#EXTINF:";

absl::StatusOr<Rendition> ReadRendition(const std::string& folder, const std::string& line) {
  Rendition rendition;
  rendition.set_name(line.substr(0, line.find('/')));
  std::ifstream list(Join(folder, "/", line));
  uint32_t length_ms = 0;
  for (std::string entry; std::getline(list, entry);) {
    if (entry.starts_with(kLength))
      length_ms = static_cast<uint32_t>(std::lround(1000 * std::atof(entry.c_str() + kLength.size())));
    if (entry.empty() || entry.starts_with('#')) continue;
    Segment* const segment = rendition.add_segments();
    segment->set_file(Join(rendition.name(), "/", entry));
    segment->set_length_ms(length_ms);
  }
  if (rendition.segments().empty()) return absl::DataLossError(Join(folder, "/", line, " has no segments"));
  return rendition;
}

absl::StatusOr<Video> ReadVideo(const std::string& folder) {
  Video video;
  video.set_name(std::filesystem::path(folder).filename());
  std::ifstream main(folder + "/main.m3u8");
  uint32_t bits_per_s = 0;
  for (std::string line; std::getline(main, line);) {
    if (line.starts_with(kStream))
      bits_per_s = static_cast<uint32_t>(std::atol(line.c_str() + kStream.size()));
    if (line.empty() || line.starts_with('#')) continue;
    absl::StatusOr<Rendition> rendition = ReadRendition(folder, line);
    if (!rendition.ok()) return rendition.status();
    rendition->set_bits_per_s(bits_per_s);
    *video.add_renditions() = *std::move(rendition);
  }
  if (video.renditions().empty()) return absl::DataLossError(Join(folder, "/main.m3u8 has no renditions"));
  for (const Segment& segment : video.renditions(0).segments())
    video.set_length_ms(video.length_ms() + segment.length_ms());
  return video;
}

}  // namespace

absl::StatusOr<std::string> VideoFolder(const apps::DataOptions& data) {
  absl::StatusOr<std::string> folder = apps::DataFolder(data.application, data.folder);
  return folder.ok() ? apps::DataFolder(data.application, *folder + "/videos") : folder;
}

absl::StatusOr<std::vector<Video>> ReadVideos(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (entry.is_directory(error) && !name.starts_with('.')) names.push_back(entry.path());
  }
  std::ranges::sort(names);
  std::vector<Video> videos;
  for (const std::string& name : names) {
    absl::StatusOr<Video> video = ReadVideo(name);
    if (!video.ok()) return video.status();
    videos.push_back(*std::move(video));
  }
  return videos;
}

bool IsVideoFile(std::string_view file) {
  const size_t dot = file.rfind('.');
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '/'; };
  return dot != file.npos && dot > 0 && file[0] != '/' && std::ranges::all_of(file.substr(0, dot), plain) &&
         (file.substr(dot) == ".ts" || file.substr(dot) == ".m3u8");
}

std::string_view TypeOf(std::string_view file) {
  return IsSegment(file) ? "video/mp2t" : "application/vnd.apple.mpegurl";
}

}  // namespace curtail::media
