// SPDX-License-Identifier: Apache-2.0
//
// http_admin.h - pages for operators and their tools over HTTP/1.1, on a thread of their own.
//
// For a few readers who may be hostile, not for users: one thread, few connections, a bounded rate. What exceeds a bound
// waits in its socket or is closed, and counts in HttpAdminStats; requests of the service do not notice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/observe/http_admin_guard.h"
#include "curtail/wire/http/http_codec.h"

namespace curtail::observe {

struct HttpAdminOptions {
  HttpAdminAccess access;
  wire::HttpLimits http{.max_head_bytes = 8u << 10, .max_body_bytes = 4u << 10};
  size_t max_connections = 64;
  // Of requests and answers of all connections. Beyond it requests wait until readers have taken theirs.
  size_t max_held_bytes = 64u << 20;
  // From the first byte of a request to its last, and for its reader to take all of the answer.
  Nanos client_time = std::chrono::seconds(5);
  // A connection without a request is closed after so long. Prometheus comes once a minute by default.
  Nanos idle_time = std::chrono::seconds(150);
  // Beyond max_connections a newcomer takes the place of the client that has been silent longest: of one without a whole
  // request so far, or else of one that is silent for so long. Readers that take nothing for so long also make room
  // for the answers of others.
  Nanos eviction_time = std::chrono::milliseconds(200);
  // Requests answered in a second, and at once after a pause. Others wait, which bounds the CPU that readers take.
  int rate = 100;
  int burst = 50;
};

struct HttpAdminStats {
  uint64_t connections = 0;  // open
  uint64_t requests = 0;     // answered
  uint64_t refused = 0;      // of these answered 403
  uint64_t malformed = 0;    // ... or not read: they are not HTTP/1.1, or too long
  uint64_t paced = 0;        // times that requests had to wait for the rate
  uint64_t held_back = 0;    // times that requests had to wait for room
  uint64_t evicted = 0;      // connections closed for a newcomer, or for the answers of others
  uint64_t timed_out = 0;    // connections closed as their clients were slow or idle
  uint64_t held = 0;         // bytes of requests and answers, now
};

// A page: its answers to GET and to POST, which are given the counters of the port itself. They run on the thread of the
// HttpAdmin and must not block.
struct HttpAdminPage {
  using Answer = std::function<wire::HttpReply(const wire::HttpRequest&, const HttpAdminStats&)>;
  std::string path;
  Answer get;
  Answer post = nullptr;  // null: 405
};

// A reply of one body. `type` is its Content-Type.
wire::HttpReply HttpAdminReply(int status, std::string_view type, std::string body);

// An HttpAdmin serves pages until it is destroyed. Thread-safe.
class HttpAdmin {
 public:
  // `listener` is a listening socket that does not block. Errors: RESOURCE_EXHAUSTED without descriptors.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<HttpAdmin>> Start(curtail::internal::UniqueFd listener,
                                                                        HttpAdminOptions options,
                                                                        std::vector<HttpAdminPage> pages);
  // Closes all connections. Pages run no more once it returns.
  ~HttpAdmin();
  HttpAdmin(const HttpAdmin&) = delete;
  HttpAdmin& operator=(const HttpAdmin&) = delete;

  HttpAdminStats stats() const;

 private:
  class Impl;
  explicit HttpAdmin(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace curtail::observe
