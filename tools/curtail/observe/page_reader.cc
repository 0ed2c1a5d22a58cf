// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/page_reader.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/exec/address.h"
#include "curtail/wire/http/http1_reader.h"

namespace curtail::tool {
namespace {

constexpr int kStopLookMs = 100;  // for `stop`
constexpr internal::HttpReplyLimits kLimits{.max_body_bytes = 4u << 20};

// The request for one page and its reply, until `result` has an end.
struct Fetch {
  internal::UniqueFd fd;
  std::string request;
  size_t sent = 0;
  internal::Http1Reader reader{kLimits};
  bool over = false;
  absl::StatusOr<std::string> result = absl::DeadlineExceededError("no answer in time");

  void End(absl::StatusOr<std::string> how) {
    result = std::move(how);
    over = true;
    fd.Reset();
  }
  void Begin(const PageWanted& wanted);
  void Send();
  void Receive();
};

void Fetch::Begin(const PageWanted& wanted) {
  const absl::StatusOr<Address> at = Address::Resolve(wanted.address);
  if (!at.ok()) return End(at.status());
  fd.Reset(socket(at->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return End(absl::ResourceExhaustedError("no file descriptor is left"));
  if (connect(fd.get(), at->raw(), at->size) != 0 && errno != EINPROGRESS) {
    return End(absl::UnavailableError("it cannot be reached"));
  }
  request = absl::StrCat("GET ", wanted.path, " HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  reader.Begin(/*head_only=*/false);
}

void Fetch::Send() {
  const ssize_t n = send(fd.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
  if (n > 0) sent += static_cast<size_t>(n);
  if (n < 0 && errno != EAGAIN && errno != EINTR) End(absl::UnavailableError("it cannot be reached"));
}

void Fetch::Receive() {
  std::array<char, 16384> buffer;
  const ssize_t n = recv(fd.get(), buffer.data(), buffer.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n == 0) reader.End();
  if (n > 0) {
    std::string_view bytes(buffer.data(), static_cast<size_t>(n));
    if (absl::Status read = reader.Read(&bytes); !read.ok()) return End(read);
  }
  if (reader.done()) {
    if (reader.status() == 200) return End(std::move(reader.body()));
    return End(absl::NotFoundError(absl::StrCat("it answers with status ", reader.status())));
  }
  if (n <= 0) End(absl::UnavailableError("it ended the connection"));
}

}  // namespace

std::vector<absl::StatusOr<std::string>> ReadPages(const std::vector<PageWanted>& wanted, Deadline deadline,
                                                   const std::atomic<bool>* stop) {
  std::vector<Fetch> fetches(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) fetches[i].Begin(wanted[i]);
  std::vector<pollfd> sockets(wanted.size());
  while (!deadline.Expired() && (stop == nullptr || !stop->load(std::memory_order_relaxed))) {
    bool some = false;
    for (size_t i = 0; i < fetches.size(); ++i) {
      const Fetch& fetch = fetches[i];
      const bool sending = fetch.sent < fetch.request.size();
      sockets[i] = {fetch.over ? -1 : fetch.fd.get(), static_cast<short>(sending ? POLLOUT : POLLIN), 0};
      some = some || !fetch.over;
    }
    if (!some) break;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Remaining());
    if (poll(sockets.data(), sockets.size(),
             static_cast<int>(std::min<int64_t>(left.count(), kStopLookMs))) <= 0)
      continue;
    for (size_t i = 0; i < fetches.size(); ++i) {
      if (fetches[i].over || sockets[i].revents == 0) continue;
      if (fetches[i].sent < fetches[i].request.size()) {
        fetches[i].Send();
      } else {
        fetches[i].Receive();
      }
    }
  }
  std::vector<absl::StatusOr<std::string>> results;
  for (Fetch& fetch : fetches) results.push_back(std::move(fetch.result));
  return results;
}

}  // namespace curtail::tool
