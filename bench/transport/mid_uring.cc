// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A turn is one io_uring_enter: it submits the sends of the last turn and the receives to come, and
// waits. How many completions it waits for is what the variants differ in:
//  1. Each send under way completes, too, almost always within the submission itself. So the sends are added
//     to the number that is waited for, or the call would return at once.
//  2. With one request under way its missing replies can be waited for together, and the thread wakes once.
//  3. With several, or none, it waits for one completion: to wait for more would delay a request that is
//     complete for the sake of another. A request that arrives while replies are waited for counts as a
//     completion and ends the wait early, which costs a turn and no more.
// Not offered: IOSQE_CQE_SKIP_SUCCESS on sends, because then nothing says when their memory is free.
//
// The sockets block: io_uring does not wait for one that is O_NONBLOCK, but completes with EAGAIN.
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "mid.h"
#include "ring.h"
#include "sender.h"

namespace curtail::bench {
namespace {

constexpr size_t kReceiveBytes = 16 << 10;

// The sends under way, at most one a connection.
class Sends {
 public:
  // Adds what `router` has for idle connections to the next submission.
  void Start(Ring& ring, Router& router) {
    for (size_t i = 0; i < kConnections; ++i) {
      if (!out_[i].empty() || router.out(i).empty()) continue;
      out_[i].swap(router.out(i));
      ring.Send(i, out_[i].data(), out_[i].size());
      ++under_way_;
    }
  }
  absl::Status Complete(Ring& ring, const Ring::Completion& sent) {
    --under_way_;
    if (sent.result == -EPIPE || sent.result == -ECONNRESET)
      return absl::OutOfRangeError("closed by the peer");
    if (sent.result < 0) return absl::ErrnoToStatus(-sent.result, "send");
    std::string& out = out_[sent.connection];
    out.erase(0, static_cast<size_t>(sent.result));
    if (out.empty()) return absl::OkStatus();
    ring.Send(sent.connection, out.data(), out.size());  // it was cut short
    ++under_way_;
    return absl::OkStatus();
  }
  unsigned under_way() const { return under_way_; }

 private:
  std::array<std::string, kConnections> out_;
  unsigned under_way_ = 0;
};

class UringMid final : public Mid {
 public:
  explicit UringMid(const UringOptions& options) : options_(options) {}

  absl::Status Serve(const Sockets& sockets, Kernel kernel) override {
    absl::Status status = ring_.Open(sockets, options_.defer_taskrun, options_.registered_files);
    if (status.ok() && options_.multishot) status = ring_.ProvideBuffers();
    if (!status.ok()) return status;
    for (size_t i = 0; i < kConnections; ++i) Arm(i);
    while (status.ok()) {
      sends_.Start(ring_, router_);
      status = ring_.SubmitAndWait(sends_.under_way() + ToWaitFor(), kernel);
      if (!status.ok()) break;
      status = ring_.Reap([&](const Ring::Completion& done) { return Handle(done, sockets, kernel); });
    }
    return status;
  }

 private:
  unsigned ToWaitFor() const {
    if (!options_.wait_for_all || router_.under_way() != 1) return 1;
    return static_cast<unsigned>(router_.missing_replies());
  }

  void Arm(size_t connection) {
    if (options_.readiness) {
      ring_.PollMany(connection);
    } else if (options_.multishot) {
      ring_.ReceiveMany(connection);
    } else {
      ring_.Receive(connection, in_[connection].data(), kReceiveBytes, options_.poll_first);
    }
  }

  absl::Status Handle(const Ring::Completion& done, const Sockets& sockets, Kernel& kernel) {
    if (done.kind == Ring::Kind::kSend) return sends_.Complete(ring_, done);
    if (done.result == -EINTR || done.result == -ENOBUFS) return Arm(done.connection), absl::OkStatus();
    if (done.result < 0 && done.result != -ECONNRESET) return absl::ErrnoToStatus(-done.result, "receive");
    if (done.result <= 0) return absl::OutOfRangeError("closed by the peer");
    absl::Status status;
    if (options_.readiness) {
      status = Drain(done.connection, sockets, kernel);
    } else {
      const char* bytes = options_.multishot ? ring_.BufferOf(done) : in_[done.connection].data();
      status = router_.Receive(done.connection, bytes, static_cast<size_t>(done.result));
      if (options_.multishot) ring_.ReturnBuffer(done);
    }
    // An operation that is armed for one completion never has F_MORE.
    if (!(done.flags & IORING_CQE_F_MORE)) Arm(done.connection);
    return status;
  }

  // Multishot poll reports edges, so the socket is read until it is empty.
  absl::Status Drain(size_t connection, const Sockets& sockets, Kernel& kernel) {
    std::array<char, kReceiveBytes>& buffer = in_[connection];
    while (true) {
      const ssize_t n = kernel.Recv(sockets[connection], buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno == ECONNRESET)) return absl::OutOfRangeError("closed by the peer");
      if (n < 0) return errno == EAGAIN ? absl::OkStatus() : ErrnoStatus("recv");
      absl::Status routed = router_.Receive(connection, buffer.data(), static_cast<size_t>(n));
      if (!routed.ok() || static_cast<size_t>(n) < buffer.size()) return routed;
    }
  }

  const UringOptions options_;
  Router router_;
  Sends sends_;
  std::array<std::array<char, kReceiveBytes>, kConnections> in_;
  Ring ring_;  // last: its end is the end of all operations that use the memory above
};

class RingSender final : public Sender {
 public:
  absl::Status Open(const Sockets& sockets) { return ring_.Open(sockets, true, true); }

  absl::Status SendAll(const Sockets&, Router& router, Kernel& kernel) override {
    sends_.Start(ring_, router);
    while (sends_.under_way() > 0) {
      absl::Status status = ring_.SubmitAndWait(sends_.under_way(), kernel);
      if (status.ok()) {
        status = ring_.Reap([&](const Ring::Completion& done) { return sends_.Complete(ring_, done); });
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  Sends sends_;
  Ring ring_;
};

}  // namespace

std::unique_ptr<Mid> MakeUringMid(const UringOptions& options) { return std::make_unique<UringMid>(options); }

absl::StatusOr<std::unique_ptr<Sender>> MakeRingSender(const Sockets& sockets) {
  auto sender = std::make_unique<RingSender>();
  if (absl::Status opened = sender->Open(sockets); !opened.ok()) return opened;
  return sender;
}

}  // namespace curtail::bench
