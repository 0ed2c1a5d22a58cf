// SPDX-License-Identifier: Apache-2.0
//
// An nginx that serves the videos. Its auth_request asks CheckStream(), whose answer it keeps for less than 10 s: so a viewer costs one
// check in that time, and a refund takes effect after it. Playlists and segments are kept apart, as the first segment ends the right to a refund.
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "apps/kit/output_file.h"
#include "apps/media/common/videos.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/process/process.h"

namespace curtail::media {
namespace {

// @folder@: of this nginx; @videos@: of the videos; @listen@ and @check@: as of NginxOptions.
constexpr char kConfig[] = R"(daemon off;
worker_processes 1;
pid "@folder@/pid";
error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path "@folder@/body";
  proxy_temp_path "@folder@/proxy";
  fastcgi_temp_path "@folder@/fastcgi";
  uwsgi_temp_path "@folder@/uwsgi";
  scgi_temp_path "@folder@/scgi";
  proxy_cache_path "@folder@/checks" keys_zone=checks:8m inactive=1m use_temp_path=off;
  types {
    application/vnd.apple.mpegurl m3u8;
    video/mp2t ts;
  }
  map $file $kind {
    ~\.ts$ segment;
    default playlist;
  }
  server {
    listen @listen@;
    location / { return 403; }
    location ~ "^/v1/streams/(?<movie>[0-9]+)/(?<pass>[-_.A-Za-z0-9]+)/(?<file>[a-z0-9/]+\.(?:m3u8|ts))$" {
      auth_request /check;
      auth_request_set $video $upstream_http_grpc_metadata_video;
      error_page 401 = @ended;
      alias "@videos@/$video/$file";
    }
    location @ended { return 410; }
    location = /check {
      internal;
      proxy_pass http://@check@/v1/streams/check?movie=$movie&pass=$pass&file=$file;
      proxy_pass_request_body off;
      proxy_pass_request_headers off;
      proxy_method GET;
      proxy_cache checks;
      proxy_cache_key "$movie $pass $kind";
      proxy_cache_valid 200 9s;
    }
  }
}
)";

std::string Filled(std::string text, std::string_view name, const std::string& value) {
  for (size_t at = 0; (at = text.find(name, at)) != text.npos; at += value.size())
    text.replace(at, name.size(), value);
  return text;
}

}  // namespace

absl::Status BecomeNginx(const NginxOptions& options) {
  const absl::StatusOr<std::string> videos = VideoFolder(options.data);
  if (!videos.ok()) return videos.status();
  const std::string folder = std::filesystem::path(*videos).parent_path().string() + "/nginx";
  if (folder.find_first_of("\"$\\") != folder.npos)
    return absl::InvalidArgumentError(
        Join("an nginx cannot have the folder ", folder, ": it has one of \"$\\"));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::FailedPreconditionError(Join(folder, ": ", error.message()));
  std::string config = Filled(kConfig, "@folder@", folder);
  if (geteuid() == 0) config.insert(0, "user root;\n");  // the data is this user's alone
  config = Filled(Filled(config, "@videos@", *videos), "@listen@", options.listen);
  apps::OutputFile file(folder + "/nginx.conf");
  absl::Status status = file.Write(Filled(config, "@check@", options.check));
  if (status.ok()) status = file.Commit();
  if (!status.ok()) return status;
  return deploy::BecomeProgram({options.nginx, "-e", "stderr", "-p", folder, "-c", folder + "/nginx.conf"});
}

}  // namespace curtail::media
