// SPDX-License-Identifier: Apache-2.0
#include "idle.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "curtail/base/clock.h"

namespace curtail::bench {
namespace {

using namespace std::string_view_literals;

// RFC 9113, section 3.4: the client's preface with empty settings, and the acknowledgement of the server's.
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"sv;
constexpr std::string_view kAcknowledge = "\0\0\0\4\1\0\0\0\0"sv;
constexpr Nanos kGreetingTimeout = std::chrono::seconds(5);

absl::Status Greet(int fd) {
  if (absl::Status sent = WriteFull(fd, kPreface.data(), kPreface.size()); !sent.ok()) return sent;
  pollfd event{.fd = fd, .events = POLLIN};
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(kGreetingTimeout);
  if (poll(&event, 1, static_cast<int>(wait.count())) != 1)
    return absl::DeadlineExceededError("no greeting on an idle connection");
  char settings[512];
  if (recv(fd, settings, sizeof(settings), 0) <= 0)
    return absl::UnavailableError("an idle connection was closed");
  return WriteFull(fd, kAcknowledge.data(), kAcknowledge.size());
}

}  // namespace

absl::StatusOr<std::vector<Fd>> OpenIdle(const std::string& address, Protocol protocol, int count) {
  std::vector<Fd> connections;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<Fd> fd = Connect(address);
    absl::Status opened = fd.status();
    if (opened.ok() && protocol == Protocol::kGrpc) opened = Greet(fd->get());
    if (!opened.ok()) {
      return absl::Status(opened.code(),
                          absl::StrCat("idle connection ", i + 1, " of ", count, ": ", opened.message()));
    }
    connections.push_back(std::move(*fd));
  }
  return connections;
}

}  // namespace curtail::bench
