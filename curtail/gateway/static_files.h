// SPDX-License-Identifier: Apache-2.0
//
// static_files.h - a table of files as answers of HTTP, such as a page for browsers.
//
// Nothing but the table is served: a path is a key of it, and no file system is behind.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/gateway/http_codec.h"
#include "curtail/gateway/page/page.h"

namespace curtail::gateway {

// A StaticFiles holds the answers. Immutable; thread-safe.
class StaticFiles {
 public:
  struct File {
    std::string type;  // by the ending of its name
    std::string etag;  // of its bytes
    std::string bytes;
  };

  // Errors: INVALID_ARGUMENT for a wrong name, one that comes twice, or an ending of no known type.
  [[nodiscard]] static absl::StatusOr<StaticFiles> Make(std::vector<StaticFile> files);

  // Null if there is none at that path, which has no query.
  const File* Find(std::string_view path) const;
  std::vector<std::string_view> paths() const;

  // 200, or 304 if the client has these bytes. The page may load from its own origin only.
  // Errors: UNIMPLEMENTED for other verbs than GET and HEAD, which the message lists.
  [[nodiscard]] static absl::StatusOr<HttpReply> Answer(const File& file, const HttpRequest& request);

 private:
  std::map<std::string, File, std::less<>> files_;
};

}  // namespace curtail::gateway
