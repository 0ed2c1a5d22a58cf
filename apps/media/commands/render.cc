// SPDX-License-Identifier: Apache-2.0
//
// Render: videos of a test picture, by ffmpeg. A video is rendered in a folder beside its own. All take their names together, once
// they are complete: services keep the first videos that they find, and must not find a part of them.
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "apps/kit/output_file.h"
#include "apps/media/common/videos.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/process/process.h"

namespace curtail::media {
namespace {

constexpr Nanos kMostRenderTime = std::chrono::minutes(30);
constexpr int kFramesPerS = 25, kSegmentS = 4, kHuesApart = 45;

struct Form {
  const char* name;
  int kbit_s;
  const char* size;
};
constexpr Form kForms[] = {{"300k", 300, "320x180"}, {"800k", 800, "640x360"}, {"2500k", 2500, "1280x720"}};

absl::Status Run(std::vector<std::string> argv) {
  const std::string program = argv[0];
  auto process = deploy::Process::Spawn({.name = program, .argv = std::move(argv)});
  if (absl::IsNotFound(process.status()))
    return absl::FailedPreconditionError(Join(
        program, " is not there; install it (Debian: apt-get install ffmpeg), or name it with --ffmpeg"));
  if (!process.ok()) return process.status();
  const bool ended = (*process)->AwaitEnd(Deadline::In(kMostRenderTime));
  absl::Status status = (*process)->End(Nanos(0));
  if (ended && status.ok()) return status;
  return absl::FailedPreconditionError(Join(program, " failed: ", Message(status)));
}

std::string PictureOf(const char* size, uint32_t seconds) {
  return Join("testsrc2=size=", size, ":rate=", kFramesPerS, ":duration=", seconds);
}

absl::Status RenderOne(const RenderOptions& options, uint32_t number, const std::string& folder) {
  const std::string hue = Join("hue=h=", number * kHuesApart);
  const std::vector<std::string> begin = {options.ffmpeg, "-hide_banner", "-loglevel", "error", "-nostdin",
                                          "-y",           "-f",           "lavfi",     "-i"};
  const auto with = [&](std::vector<std::string> rest) {
    rest.insert(rest.begin(), begin.begin(), begin.end());
    return rest;
  };
  std::string main = "#EXTM3U\n";
  for (const Form& form : kForms) {
    const std::string into = Join(folder, "/", form.name), rate = Join(form.kbit_s, "k");
    std::error_code error;
    std::filesystem::create_directories(into, error);
    if (error) return absl::FailedPreconditionError(Join(into, ": ", error.message()));
    const std::string group = Join(kFramesPerS * kSegmentS);
    absl::Status status = Run(with({PictureOf(form.size, options.seconds),
                                    "-vf",
                                    hue,
                                    "-c:v",
                                    "libx264",
                                    "-preset",
                                    "veryfast",
                                    "-pix_fmt",
                                    "yuv420p",
                                    "-b:v",
                                    rate,
                                    "-maxrate",
                                    rate,
                                    "-bufsize",
                                    rate,
                                    "-g",
                                    group,
                                    "-keyint_min",
                                    group,
                                    "-sc_threshold",
                                    "0",
                                    "-f",
                                    "hls",
                                    "-hls_time",
                                    Join(kSegmentS),
                                    "-hls_playlist_type",
                                    "vod",
                                    "-hls_list_size",
                                    "0",
                                    "-hls_segment_filename",
                                    into + "/seg%03d.ts",
                                    into + "/index.m3u8"}));
    if (!status.ok()) return status;
    main += Join("#EXT-X-STREAM-INF:BANDWIDTH=", form.kbit_s, "000,RESOLUTION=", form.size, "\n", form.name,
                 "/index.m3u8\n");
  }
  absl::Status status =
      Run(with({PictureOf("640x360", 1), "-vf", hue, "-frames:v", "1", folder + "/poster.png"}));
  apps::OutputFile list(folder + "/main.m3u8");
  if (status.ok()) status = list.Write(main);
  return status.ok() ? list.Commit() : status;
}

}  // namespace

absl::Status RenderVideos(const RenderOptions& options) {
  const absl::StatusOr<std::string> folder = VideoFolder(options.data);
  if (!folder.ok()) return folder.status();
  std::error_code error;
  std::vector<uint32_t> rendered;
  for (uint32_t i = 0; i < options.videos; ++i) {
    if (std::filesystem::exists(Join(*folder, "/", i), error)) continue;
    const std::string unfinished = Join(*folder, "/.", i);
    std::filesystem::remove_all(unfinished, error);
    absl::Status status = RenderOne(options, i, unfinished);
    if (!status.ok()) return status;
    rendered.push_back(i);
  }
  for (const uint32_t i : rendered) {
    std::filesystem::rename(Join(*folder, "/.", i), Join(*folder, "/", i), error);
    if (error) return absl::FailedPreconditionError(Join(*folder, "/", i, ": ", error.message()));
  }
  return absl::OkStatus();
}

}  // namespace curtail::media
