// SPDX-License-Identifier: Apache-2.0
//
// ring.h - an io_uring of one thread over the connections of a mid-tier.
#pragma once

#include <liburing.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "mid.h"

namespace curtail::bench {

// A Ring belongs to the thread that opened it.
class Ring {
 public:
  enum class Kind : uint32_t { kSend, kReceive, kPoll };
  struct Completion {
    Kind kind;
    size_t connection;
    int result;  // as of the system call: negative is an error number
    uint32_t flags;
  };

  Ring() = default;
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Call once, first. Errors: as io_uring_setup says, PERMISSION_DENIED in many containers.
  absl::Status Open(const Sockets& sockets, bool defer_taskrun, bool registered_files);

  // Add to the next submission. Memory stays untouched until the completion.
  void Send(size_t connection, const void* data, size_t size);
  void Receive(size_t connection, void* data, size_t size, bool poll_first);
  // Into buffers that the kernel picks; REQUIRES: ProvideBuffers(). Armed until a completion lacks F_MORE.
  void ReceiveMany(size_t connection);
  void PollMany(size_t connection);

  absl::Status ProvideBuffers();
  // The bytes of a completion of ReceiveMany(), until ReturnBuffer().
  const char* BufferOf(const Completion& completion) const;
  void ReturnBuffer(const Completion& completion);

  // One system call: submits, and waits until `wait_nr` completions are there, unreaped ones included.
  absl::Status SubmitAndWait(unsigned wait_nr, Kernel& kernel);
  // Hands on what has completed; stops at the first error.
  absl::Status Reap(const std::function<absl::Status(const Completion&)>& handle);

 private:
  io_uring_sqe* Next(size_t connection, Kind kind);
  int FileOf(size_t connection) const;
  void Provide(unsigned buffer);

  io_uring ring_{};
  bool open_ = false;
  bool registered_files_ = false;
  Sockets sockets_{};
  std::unique_ptr<char[]> buffers_;
  void* buffer_ring_ = nullptr;
};

}  // namespace curtail::bench
