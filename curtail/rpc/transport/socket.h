// SPDX-License-Identifier: Apache-2.0
//
// socket.h - sockets that listen and connect, with errors a person can act on.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/exec/address.h"
#include "curtail/exec/internal/calls_kernel.h"

namespace curtail::internal {

// A listening, non-blocking socket. Takes over a Unix socket that nobody serves any more, but no other file.
// Errors: ALREADY_EXISTS when the port or path is in use, PERMISSION_DENIED, INVALID_ARGUMENT.
absl::StatusOr<UniqueFd> Listen(const Address& address);
// The names that clients may have for a server that listens at `address`: the one in it, if that is not numeric, and
// the machine's own. As http_host.h has them.
std::vector<std::string> OwnNames(const std::string& address);
// The address a listening socket is bound to (with the real port).
std::string BoundAddress(int fd);

// Lets the process have as many descriptors as its hard limit allows. Returns how many.
size_t RaiseDescriptorLimit();

// A socket whose connection has at least begun; `*connected` says whether it is complete already.
absl::StatusOr<UniqueFd> StartConnect(const Address& address, bool* connected);
// The error a connection attempt ended with, 0 for success.
int ConnectError(int fd);

// recv() and send(), which does not raise SIGPIPE.
inline ssize_t Receive(int fd, char* to, size_t size) {
#if CURTAIL_CALLS_KERNEL
  return syscall(SYS_recvfrom, fd, to, size, 0, nullptr, nullptr);
#else
  return recv(fd, to, size, 0);
#endif
}
inline ssize_t Send(int fd, const char* from, size_t size) {
#if CURTAIL_CALLS_KERNEL
  return syscall(SYS_sendto, fd, from, size, MSG_NOSIGNAL, nullptr, 0);
#else
  return send(fd, from, size, MSG_NOSIGNAL);
#endif
}

// Has the kernel note when bytes arrive at a TCP socket. False: it does not, as for Unix sockets.
bool StampArrivals(int fd);
// recvmsg() into `first` and then `second`. Sets `*arrived` to when the kernel had the last of these bytes, by the clock
// of Now(); zero: not known.
ssize_t ReceiveStamped(int fd, std::span<char> first, std::span<char> second, TimePoint* arrived);

// For TCP: no Nagle delay, and a peer that has vanished is noticed after 20 s. Does nothing to other sockets.
void SetTcpOptions(int fd);

}  // namespace curtail::internal
