// SPDX-License-Identifier: Apache-2.0
#include "large.h"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <thread>
#include <vector>

#include "mid.h"

namespace curtail::bench {
namespace {

constexpr size_t kFrameHeader = 9;
constexpr size_t kFrameBody = 16 << 10;
constexpr size_t kMaxBytes = 64 << 20;
constexpr int kNoticeTimeoutMs = 10'000;
constexpr std::array<char, kFrameHeader> kHeader{};

size_t Frames(size_t bytes) { return (bytes + kFrameBody - 1) / kFrameBody; }
size_t ReplyBytes(size_t bytes) { return bytes + Frames(bytes) * kFrameHeader; }

absl::Status Writev(int fd, std::vector<iovec> parts, Kernel& kernel) {
  for (size_t first = 0; first < parts.size();) {
    kernel.counters().Called();
    const int count = static_cast<int>(std::min<size_t>(parts.size() - first, IOV_MAX));
    const ssize_t n = writev(fd, &parts[first], count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("writev");
    auto sent = static_cast<size_t>(n);
    while (first < parts.size() && sent >= parts[first].iov_len) sent -= parts[first++].iov_len;
    if (first == parts.size()) break;
    parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + sent;
    parts[first].iov_len -= sent;
  }
  return absl::OkStatus();
}

// One connection of a server.
class LargeConnection {
 public:
  LargeConnection(Reply reply, int fd, Kernel kernel) : reply_(reply), fd_(fd), kernel_(kernel) {}

  absl::Status Serve() {
    const int on = 1;
    if (reply_ == Reply::kZeroCopy && setsockopt(fd_, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) != 0) {
      return ErrnoStatus("SO_ZEROCOPY");
    }
    while (true) {
      uint32_t bytes = 0;
      absl::Status status = kernel_.RecvAll(fd_, &bytes, sizeof(bytes));
      if (!status.ok()) return status;
      if (bytes < sizeof(bytes) || bytes > kMaxBytes) return absl::DataLossError("a bad size");
      body_.resize(ReplyBytes(bytes));  // so that kSend finds it in one piece
      status = kernel_.RecvAll(fd_, body_.data() + sizeof(bytes), bytes - sizeof(bytes));
      if (status.ok()) status = SendReply(bytes);
      if (!status.ok()) return status;
    }
  }

 private:
  absl::Status SendReply(size_t bytes) {
    switch (reply_) {
      case Reply::kSend:
        return kernel_.SendAll(fd_, body_.data(), ReplyBytes(bytes));
      case Reply::kCopyAndSend:
        return CopyAndSend(bytes);
      case Reply::kWritev:
        return Writev(fd_, Parts(bytes), kernel_);
      case Reply::kZeroCopy:
        return ZeroCopy(ReplyBytes(bytes));
    }
    return absl::InternalError("no such reply");
  }

  std::vector<iovec> Parts(size_t bytes) {
    std::vector<iovec> parts;
    for (size_t at = 0; at < bytes; at += kFrameBody) {
      parts.push_back({const_cast<char*>(kHeader.data()), kHeader.size()});
      parts.push_back({body_.data() + at, std::min(kFrameBody, bytes - at)});
    }
    return parts;
  }

  absl::Status CopyAndSend(size_t bytes) {
    out_.clear();
    for (const iovec& part : Parts(bytes)) {
      const auto* data = static_cast<const char*>(part.iov_base);
      out_.insert(out_.end(), data, data + part.iov_len);
    }
    return kernel_.SendAll(fd_, out_.data(), out_.size());
  }

  // The memory is the kernel's until it says that it is done with it: on the error queue, a range of sends.
  absl::Status ZeroCopy(size_t bytes) {
    uint32_t missing = 0;
    for (size_t at = 0; at < bytes;) {
      const ssize_t n = kernel_.Send(fd_, body_.data() + at, bytes - at, MSG_ZEROCOPY);
      if (n < 0 && errno != EINTR) return ErrnoStatus("send with MSG_ZEROCOPY");
      if (n > 0) at += static_cast<size_t>(n), ++missing;
    }
    while (missing > 0) {
      absl::StatusOr<uint32_t> done = AwaitNotice();
      if (!done.ok()) return done.status();
      missing -= std::min(missing, *done);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> AwaitNotice() {
    pollfd event{.fd = fd_, .events = 0};  // POLLERR is always reported
    kernel_.counters().Called();
    if (poll(&event, 1, kNoticeTimeoutMs) <= 0) return absl::DeadlineExceededError("no MSG_ZEROCOPY notice");
    std::array<char, 256> control;
    msghdr message{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    kernel_.counters().Called();
    if (recvmsg(fd_, &message, MSG_ERRQUEUE) < 0) {
      if (event.revents & POLLHUP) return absl::OutOfRangeError("closed by the peer");
      return ErrnoStatus("recvmsg of the error queue");
    }
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr) return absl::DataLossError("an empty notice");
    sock_extended_err notice{};
    std::memcpy(&notice, CMSG_DATA(header), sizeof(notice));
    const uint32_t count = notice.ee_data - notice.ee_info + 1;
    if (notice.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) {
      kernel_.counters().zero_copies_copied.fetch_add(count, std::memory_order_relaxed);
    }
    return count;
  }

  const Reply reply_;
  const int fd_;
  Kernel kernel_;
  std::vector<char> body_;
  std::vector<char> out_;
};

absl::Status Exchange(int fd, std::vector<char>& request, std::vector<char>& reply, Kernel& kernel) {
  absl::Status status = kernel.SendAll(fd, request.data(), request.size());
  return status.ok() ? kernel.RecvAll(fd, reply.data(), reply.size()) : status;
}

}  // namespace

void RunLargeServer(Reply reply, const Listener& listener, Counters* counters) {
  for (size_t n = 0;; ++n) {
    absl::StatusOr<Fd> fd = Accept(listener.fd.get());
    if (!fd.ok()) Die(fd.status());
    std::thread([reply, counters, n, fd = std::move(*fd)] {
      LargeConnection connection(reply, fd.get(), Kernel(counters[n % kCounterSlots]));
      const absl::Status status = connection.Serve();
      if (!IsEnd(status)) Die(status);
    }).detach();  // ends with its connection, or with the process
  }
}

absl::StatusOr<Sample> RunLarge(const std::string& address, uint32_t bytes, Nanos duration) {
  absl::StatusOr<Fd> fd = Connect(address);
  if (!fd.ok()) return fd.status();
  // A server that stalls ends the run and not only this call.
  const timeval patience{.tv_sec = 10};
  setsockopt(fd->get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  std::vector<char> request(bytes);
  std::vector<char> reply(ReplyBytes(bytes));
  std::memcpy(request.data(), &bytes, sizeof(bytes));
  Counters unused;
  Kernel kernel(unused);
  if (absl::Status warm = Exchange(fd->get(), request, reply, kernel); !warm.ok()) return warm;
  Sample sample;
  const TimePoint begin = Now();
  TimePoint last = begin;
  while (last < begin + duration) {
    const TimePoint sent = last;
    if (absl::Status status = Exchange(fd->get(), request, reply, kernel); !status.ok()) return status;
    last = Now();
    sample.latencies_us.push_back(static_cast<float>((last - sent).count()) / 1000.0f);
  }
  sample.seconds = std::chrono::duration<double>(last - begin).count();
  std::sort(sample.latencies_us.begin(), sample.latencies_us.end());
  return sample;
}

}  // namespace curtail::bench
