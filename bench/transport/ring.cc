// SPDX-License-Identifier: Apache-2.0
#include "ring.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>

namespace curtail::bench {
namespace {

constexpr unsigned kEntries = 64;
constexpr unsigned kBuffers = 64;  // a power of two
constexpr size_t kBufferBytes = 4096;
constexpr int kBufferGroup = 0;
constexpr size_t kBufferRingBytes = kBuffers * sizeof(io_uring_buf);

absl::Status Failed(int negative, const char* what) { return absl::ErrnoToStatus(-negative, what); }

}  // namespace

Ring::~Ring() {
  if (open_) io_uring_queue_exit(&ring_);
  if (buffer_ring_ != nullptr) munmap(buffer_ring_, kBufferRingBytes);
}

absl::Status Ring::Open(const Sockets& sockets, bool defer_taskrun, bool registered_files) {
  sockets_ = sockets;
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_SUBMIT_ALL |
                 (defer_taskrun ? IORING_SETUP_DEFER_TASKRUN : IORING_SETUP_COOP_TASKRUN);
  if (int error = io_uring_queue_init_params(kEntries, &ring_, &params); error != 0) {
    return Failed(error, "io_uring_setup");
  }
  open_ = true;
  // The ring's own descriptor, too, is looked up once and not with each call. It returns how many were
  // registered.
  if (int n = io_uring_register_ring_fd(&ring_); n < 0) return Failed(n, "io_uring_register_ring_fd");
  registered_files_ = registered_files;
  if (!registered_files) return absl::OkStatus();
  if (int error = io_uring_register_files(&ring_, sockets.data(), sockets.size()); error != 0) {
    return Failed(error, "io_uring_register_files");
  }
  return absl::OkStatus();
}

int Ring::FileOf(size_t connection) const {
  return registered_files_ ? static_cast<int>(connection) : sockets_[connection];
}

// A turn adds at most two operations a connection, so there is room.
io_uring_sqe* Ring::Next(size_t connection, Kind kind) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  sqe->user_data = (uint64_t{static_cast<uint32_t>(kind)} << 32) | connection;
  return sqe;
}

// io_uring_prep_*() clear user_data or leave it, depending on the version: so it is set again, after them.
void Ring::Send(size_t connection, const void* data, size_t size) {
  io_uring_sqe* sqe = Next(connection, Kind::kSend);
  const uint64_t tag = sqe->user_data;
  io_uring_prep_send(sqe, FileOf(connection), data, size, MSG_NOSIGNAL);
  if (registered_files_) sqe->flags |= IOSQE_FIXED_FILE;
  sqe->user_data = tag;
}

void Ring::Receive(size_t connection, void* data, size_t size, bool poll_first) {
  io_uring_sqe* sqe = Next(connection, Kind::kReceive);
  const uint64_t tag = sqe->user_data;
  io_uring_prep_recv(sqe, FileOf(connection), data, size, 0);
  if (registered_files_) sqe->flags |= IOSQE_FIXED_FILE;
  if (poll_first) sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
  sqe->user_data = tag;
}

void Ring::ReceiveMany(size_t connection) {
  io_uring_sqe* sqe = Next(connection, Kind::kReceive);
  const uint64_t tag = sqe->user_data;
  io_uring_prep_recv_multishot(sqe, FileOf(connection), nullptr, 0, 0);
  sqe->flags |= IOSQE_BUFFER_SELECT;
  if (registered_files_) sqe->flags |= IOSQE_FIXED_FILE;
  sqe->buf_group = kBufferGroup;
  sqe->user_data = tag;
}

void Ring::PollMany(size_t connection) {
  io_uring_sqe* sqe = Next(connection, Kind::kPoll);
  const uint64_t tag = sqe->user_data;
  io_uring_prep_poll_multishot(sqe, FileOf(connection), POLLIN | POLLRDHUP);
  if (registered_files_) sqe->flags |= IOSQE_FIXED_FILE;
  sqe->user_data = tag;
}

absl::Status Ring::ProvideBuffers() {
  buffers_ = std::make_unique<char[]>(kBuffers * kBufferBytes);
  void* memory = mmap(nullptr, kBufferRingBytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
  if (memory == MAP_FAILED) return ErrnoStatus("mmap");
  buffer_ring_ = memory;
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uint64_t>(memory);
  registration.ring_entries = kBuffers;
  registration.bgid = kBufferGroup;
  if (int error = io_uring_register_buf_ring(&ring_, &registration, 0); error != 0) {
    return Failed(error, "io_uring_register_buf_ring");
  }
  io_uring_buf_ring_init(static_cast<io_uring_buf_ring*>(buffer_ring_));
  for (unsigned i = 0; i < kBuffers; ++i) Provide(i);
  return absl::OkStatus();
}

void Ring::Provide(unsigned buffer) {
  auto* shared = static_cast<io_uring_buf_ring*>(buffer_ring_);
  io_uring_buf_ring_add(shared, buffers_.get() + buffer * kBufferBytes, kBufferBytes,
                        static_cast<unsigned short>(buffer), io_uring_buf_ring_mask(kBuffers), 0);
  io_uring_buf_ring_advance(shared, 1);
}

const char* Ring::BufferOf(const Completion& completion) const {
  return buffers_.get() + (completion.flags >> IORING_CQE_BUFFER_SHIFT) * kBufferBytes;
}

void Ring::ReturnBuffer(const Completion& completion) {
  if (completion.flags & IORING_CQE_F_BUFFER) Provide(completion.flags >> IORING_CQE_BUFFER_SHIFT);
}

absl::Status Ring::SubmitAndWait(unsigned wait_nr, Kernel& kernel) {
  kernel.counters().Called();
  const int submitted = io_uring_submit_and_wait(&ring_, wait_nr);
  if (submitted < 0 && submitted != -EINTR) return Failed(submitted, "io_uring_enter");
  return absl::OkStatus();
}

absl::Status Ring::Reap(const std::function<absl::Status(const Completion&)>& handle) {
  absl::Status status;
  unsigned head = 0, seen = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    ++seen;
    const auto kind = static_cast<Kind>(cqe->user_data >> 32);
    status = handle({kind, static_cast<size_t>(cqe->user_data & 0xffffffff), cqe->res, cqe->flags});
    if (!status.ok()) break;
  }
  io_uring_cq_advance(&ring_, seen);
  return status;
}

absl::Status UringAvailable() {
  Ring probe;
  // Descriptors to register: any will do.
  return probe.Open({0, 0, 0, 0, 0}, /*defer_taskrun=*/true, /*registered_files=*/false);
}

}  // namespace curtail::bench
