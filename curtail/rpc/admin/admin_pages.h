// SPDX-License-Identifier: Apache-2.0
//
// admin_pages.h - a server's HTTP admin port: which pages it has. docs/observe.md describes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/observe/http_admin.h"
#include "curtail/observe/trace/tracer.h"
#include "curtail/rpc/admin/server_metrics.h"

namespace curtail::internal {

class ServerCore;

// The HTTP admin port of a server.
struct AdminPages {
  std::string address;  // with the real port
  std::unique_ptr<observe::HttpAdmin> http;
};

// `text` is an address, or a port alone, with a colon or without: then the port is on 127.0.0.1 only. The server and the
// metrics, which observe it, and the tracer outlive the port; the tracer may be null. `token` as ServerOptions::admin_token.
absl::StatusOr<AdminPages> StartAdminPages(const std::string& text, const std::string& token,
                                           ServerCore* core, const CallMetrics* calls,
                                           const observe::Tracer* tracer);

// The same with pages of the caller's own.
absl::StatusOr<AdminPages> StartAdminPort(const std::string& text, const std::string& token,
                                          std::vector<observe::HttpAdminPage> served);

}  // namespace curtail::internal
