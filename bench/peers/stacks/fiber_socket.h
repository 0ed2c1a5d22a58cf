// SPDX-License-Identifier: Apache-2.0
//
// fiber_socket.h - a Thrift transport on a non-blocking socket that suspends its Boost fiber where a blocking one
// would hold up its thread.
#pragma once

#include <thrift/transport/TTransport.h>
#include <thrift/transport/TVirtualTransport.h>

#include <boost/fiber/context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "bench/common/net.h"

namespace curtail::bench {

// A FiberSocket serves one fiber at a time, on the thread of its reactor.
class FiberSocket final : public apache::thrift::transport::TVirtualTransport<FiberSocket> {
 public:
  explicit FiberSocket(Fd fd);
  ~FiberSocket() override;

  bool isOpen() const override { return fd_.get() >= 0; }
  void close() override;
  // As TTransport has them. Throw TTransportException when the connection has failed.
  uint32_t read(uint8_t* to, uint32_t size);
  void write(const uint8_t* from, uint32_t size);

 private:
  friend class FiberReactor;

  // Takes what the socket has, at most `size`; suspends until there is something. 0 at the end.
  uint32_t Receive(uint8_t* to, uint32_t size);
  void Await(const bool& condition);
  // Of the reactor: something happened to the socket.
  void OnEvents(uint32_t events);

  Fd fd_;
  // The presumed state of the socket: cleared when it says otherwise, set by its events (edge-triggered).
  bool readable_ = false;
  bool writable_ = true;
  boost::fibers::context* waiting_ = nullptr;
  std::vector<uint8_t> buffer_;  // read ahead, so that a frame costs one system call
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
};

// A FiberReactor is an epoll set and the thread that resumes fibers when their sockets are ready. Belongs to that
// thread.
class FiberReactor {
 public:
  FiberReactor();
  absl::Status Add(FiberSocket* socket);
  // Accepts from `listener` for ever; each connection gets a fiber that runs `serve` and ends with it.
  absl::Status Run(int listener, const std::function<void(std::shared_ptr<FiberSocket>)>& serve);

 private:
  absl::Status AcceptOne(int listener, const std::function<void(std::shared_ptr<FiberSocket>)>& serve);
  const Fd epoll_;
};

}  // namespace curtail::bench
