// SPDX-License-Identifier: Apache-2.0
//
// Bare sockets: messages without frames between two threads that block. No stack can be faster than its kernel.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/streams/subject.h"
#include "curtail/base/internal/unique_fd.h"

namespace curtail::bench {
namespace {

using internal::UniqueFd;

enum class Work : uint32_t { kPingPong, kWatch, kUpload };
struct Request {
  Work work;
  uint32_t count;
  uint64_t size;
};

// True once all bytes are through.
bool Send(int fd, const void* data, size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = send(fd, from, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    from += n, size -= static_cast<size_t>(n);
  }
  return true;
}
bool Take(int fd, void* data, size_t size) {
  return size == 0 || recv(fd, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

// One end's part of a work: `sends` and `takes` messages in turn.
bool Exchange(int fd, const Request& request, bool first, bool sends, bool takes) {
  std::string bytes(request.size, 'x');
  for (uint32_t i = 0; i < request.count; ++i) {
    if (first && sends && !Send(fd, bytes.data(), bytes.size())) return false;
    if (takes && !Take(fd, bytes.data(), bytes.size())) return false;
    if (!first && sends && !Send(fd, bytes.data(), bytes.size())) return false;
  }
  return true;
}

void Serve(int fd) {
  Request request;
  while (Take(fd, &request, sizeof request)) {
    const bool done =
        Exchange(fd, request, /*first=*/false, request.work != Work::kUpload, request.work != Work::kWatch);
    if (!done || !Send(fd, &request, sizeof request)) return;
  }
}

class RawSubject final : public StreamSubject {
 public:
  RawSubject(UniqueFd client, UniqueFd server) : client_(std::move(client)), server_(std::move(server)) {}
  ~RawSubject() override {
    shutdown(client_.get(), SHUT_RDWR);
    thread_.join();
  }
  absl::Status PingPong(int count, size_t size) override { return Run(Work::kPingPong, count, size); }
  absl::Status Watch(int count, size_t size) override { return Run(Work::kWatch, count, size); }
  absl::Status Upload(int count, size_t size) override { return Run(Work::kUpload, count, size); }

 private:
  absl::Status Run(Work work, int count, size_t size) {
    Request request = {.work = work, .count = static_cast<uint32_t>(count), .size = size};
    const int fd = client_.get();
    if (Send(fd, &request, sizeof request) &&
        Exchange(fd, request, /*first=*/true, work != Work::kWatch, work != Work::kUpload) &&
        Take(fd, &request, sizeof request)) {
      return absl::OkStatus();
    }
    return absl::InternalError("messages are missing");
  }

  const UniqueFd client_;
  const UniqueFd server_;
  std::thread thread_{[this] { Serve(server_.get()); }};
};

absl::Status Failed(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StreamSubject>> MakeRawSubject() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), at, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), at, &length) != 0) {
    return Failed("listen");
  }
  UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(client.get(), at, length) != 0) return Failed("connect");
  UniqueFd server(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!server) return Failed("accept");
  const int on = 1;
  for (const int fd : {client.get(), server.get()}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return std::make_unique<RawSubject>(std::move(client), std::move(server));
}

}  // namespace curtail::bench
