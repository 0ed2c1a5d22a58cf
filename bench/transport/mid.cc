// SPDX-License-Identifier: Apache-2.0
#include "mid.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iostream>
#include <thread>

#include "variants.h"

namespace curtail::bench {
namespace {

void ServeConnection(const std::string& variant, const Fd& caller, const std::vector<std::string>& leaves,
                     Counters& counters) {
  std::array<Fd, kLeaves> fds;
  Sockets sockets{};
  sockets[kCaller] = caller.get();
  for (size_t i = 0; i < kLeaves; ++i) {
    absl::StatusOr<Fd> fd = Connect(leaves[i]);
    if (!fd.ok()) Die(fd.status());
    fds[i] = std::move(*fd);
    sockets[i] = fds[i].get();
  }
  const absl::Status status = MakeMid(variant)->Serve(sockets, Kernel(counters));
  if (!IsEnd(status)) Die(status);
}

// Level-triggered, the fewest lines there are.
void LeafTurn(int epoll, const Listener& listener, std::vector<Fd>& connections, Kernel& kernel) {
  static char buffer[64 << 10];
  std::array<epoll_event, 64> events;
  const int n = kernel.EpollWait(epoll, events.data(), events.size());
  if (n < 0 && errno != EINTR) Die(ErrnoStatus("epoll_wait"));
  for (int i = 0; i < n; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    if (fd == listener.fd.get()) {
      absl::StatusOr<Fd> accepted = Accept(fd);
      if (!accepted.ok()) Die(accepted.status());
      epoll_event event{.events = EPOLLIN, .data = {.fd = accepted->get()}};
      epoll_ctl(epoll, EPOLL_CTL_ADD, accepted->get(), &event);
      connections.push_back(std::move(*accepted));
      continue;
    }
    const ssize_t got = kernel.Recv(fd, buffer, sizeof(buffer));
    if (got > 0 && kernel.SendAll(fd, buffer, static_cast<size_t>(got)).ok()) continue;
    std::erase_if(connections, [fd](const Fd& each) { return each.get() == fd; });
  }
}

}  // namespace

void Die(const absl::Status& status) {
  std::cerr << "transport_bench: a server failed: " << status.ToString() << "\n";
  _exit(1);
}

void RunMid(const std::string& variant, const Listener& listener, const std::vector<std::string>& leaves,
            Counters* counters) {
  for (size_t n = 0;; ++n) {
    absl::StatusOr<Fd> caller = Accept(listener.fd.get());
    if (!caller.ok()) Die(caller.status());
    std::thread([&variant, &leaves, counters, n, caller = std::move(*caller)] {
      ServeConnection(variant, caller, leaves, counters[n % kCounterSlots]);
    }).detach();  // ends with its connection, or with the process
  }
}

void RunLeaf(const Listener& listener) {
  const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener.fd.get()}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, listener.fd.get(), &event) != 0) Die(ErrnoStatus("epoll_ctl"));
  std::vector<Fd> connections;
  Counters counters;
  Kernel kernel(counters);
  while (true) LeafTurn(epoll.get(), listener, connections, kernel);
}

}  // namespace curtail::bench
