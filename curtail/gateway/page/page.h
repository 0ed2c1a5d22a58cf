// SPDX-License-Identifier: Apache-2.0
//
// page.h - the page of a server for browsers: a service gives its files, a gateway asks for them
// once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/embedded_file.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/service.h"

namespace curtail::gateway {

// A file whose path is "/NAME"; "index.html" has "/", too.
struct StaticFile {
  std::string name;  // letters, digits, '.', '_', '-' and '/': "index.html"
  std::string bytes;
};

// A service beside a server's own: env.AlsoServe(gateway::MakePage(ShopPage())).
std::unique_ptr<Service> MakePage(std::span<const EmbeddedFile> files);

// A server that has this method has a page.
inline constexpr char kPageService[] = "curtail.gateway.Page", kPageMethod[] = "curtail.gateway.Page/Read";
// The files that `target` gives. Blocks for at most `timeout`. Errors: as the call.
[[nodiscard]] absl::StatusOr<std::vector<StaticFile>> ReadPage(const std::string& target,
                                                               const ChannelOptions& options, Nanos timeout);

}  // namespace curtail::gateway
