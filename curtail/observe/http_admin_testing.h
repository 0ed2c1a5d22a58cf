// SPDX-License-Identifier: Apache-2.0
//
// http_admin_testing.h - a client of HTTP/1.1 that tests misbehave with.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "curtail/base/internal/unique_fd.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/exec/address.h"

namespace curtail::observe {

// An HttpPeer is one connection. Each wait is bounded by kMaxTestWait.
class HttpPeer {
 public:
  struct Reply {
    int status = 0;  // 0: the connection ended instead
    std::string head;
    std::string body;
  };

  explicit HttpPeer(const std::string& address, int receive_buffer = 0) {
    const absl::StatusOr<Address> to = Address::Resolve(address);
    EXPECT_TRUE(to.ok()) << to.status();
    fd_.Reset(socket(to->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto wait = std::chrono::duration_cast<std::chrono::seconds>(Nanos(kMaxTestWait));
    const timeval timeout = {.tv_sec = wait.count(), .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (receive_buffer > 0) {
      setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    EXPECT_EQ(connect(fd_.get(), to->raw(), to->size), 0) << address;
  }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;  // the other end has closed: Read() says so
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

  // The next reply; `head_only` for the reply to a HEAD.
  Reply Read(bool head_only = false) {
    Reply reply;
    size_t end = std::string::npos;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill()) return reply;
    }
    reply.head = in_.substr(0, end + 2);
    in_.erase(0, end + 4);
    const size_t length = reply.head.find("content-length: ");
    const size_t size = length == std::string::npos || head_only
                            ? 0
                            : static_cast<size_t>(std::atoll(reply.head.c_str() + length + 16));
    while (in_.size() < size) {
      if (!Fill()) return reply;
    }
    reply.status = std::atoi(reply.head.c_str() + std::string_view("HTTP/1.1 ").size());
    reply.body = in_.substr(0, size);
    in_.erase(0, size);
    return reply;
  }

  // True once the other end has closed the connection, whatever it sends before.
  bool Closed() {
    while (Fill()) in_.clear();
    return ended_;
  }

  Reply Get(std::string_view path, std::string_view headers = "") {
    Send(Join("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", headers, "\r\n"));
    return Read();
  }

 private:
  bool Fill() {
    char buffer[4096];
    const ssize_t n = recv(fd_.get(), buffer, sizeof buffer, 0);
    ended_ = n == 0 || (n < 0 && errno == ECONNRESET);
    if (n > 0) in_.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }

  curtail::internal::UniqueFd fd_;
  std::string in_;
  bool ended_ = false;
};

}  // namespace curtail::observe
