// SPDX-License-Identifier: Apache-2.0
//
// thrift_fiber.cc - Apache Thrift on Boost fibers: one thread, a fiber a connection, straight-line handlers over
// non-blocking sockets. The mid-tier sends all requests, each on a connection that no other request uses, then takes
// the replies.

#include <deque>

#include "bench/peers/stack.h"
#include "bench/peers/stacks/fiber_socket.h"
#include "bench/peers/stacks/thrift_common.h"

namespace curtail::bench {
namespace {

using apache::thrift::TProcessor;
using apache::thrift::protocol::TBinaryProtocol;
using apache::thrift::transport::TFramedTransport;
using apache::thrift::transport::TTransportException;

// Connections to one leaf, made when none is free.
class FiberPool {
 public:
  FiberPool(FiberReactor* reactor, std::string address) : reactor_(reactor), address_(std::move(address)) {}

  std::unique_ptr<ThriftClient> Take() {
    if (free_.empty()) return Make();
    std::unique_ptr<ThriftClient> client = std::move(free_.back());
    free_.pop_back();
    return client;
  }
  void Return(std::unique_ptr<ThriftClient> client) { free_.push_back(std::move(client)); }

 private:
  std::unique_ptr<ThriftClient> Make() {
    absl::StatusOr<Fd> fd = Connect(address_);
    if (!fd.ok())
      throw TTransportException(TTransportException::NOT_OPEN, std::string(fd.status().message()));
    auto socket = std::make_shared<FiberSocket>(std::move(*fd));
    if (!reactor_->Add(socket.get()).ok()) throw TTransportException(TTransportException::NOT_OPEN);
    return std::make_unique<ThriftClient>(std::move(socket));
  }

  FiberReactor* const reactor_;
  const std::string address_;
  std::vector<std::unique_ptr<ThriftClient>> free_;
};

class FiberMidHandler final : public thrift_peer::MidIf {
 public:
  FiberMidHandler(FiberReactor* reactor, const std::vector<std::string>& leaves) {
    for (const std::string& leaf : leaves) leaves_.emplace_back(reactor, leaf);
  }

  // A connection on which a call failed is closed.
  void Query(ThriftBlob& reply, const ThriftBlob& request) override {
    std::vector<std::unique_ptr<ThriftClient>> clients;
    clients.reserve(leaves_.size());
    for (FiberPool& leaf : leaves_) {
      clients.push_back(leaf.Take());
      clients.back()->stub().send_Null(request);
    }
    for (size_t i = 0; i < clients.size(); ++i) {
      clients[i]->stub().recv_Null(reply);
      leaves_[i].Return(std::move(clients[i]));
    }
  }

 private:
  std::deque<FiberPool> leaves_;
};

absl::Status Serve(FiberReactor& reactor, const std::shared_ptr<TProcessor>& processor, const Ready& ready) {
  absl::StatusOr<Listener> listener = Listen();
  if (!listener.ok()) return listener.status();
  ready(listener->address);
  return reactor.Run(listener->fd.get(), [&processor](std::shared_ptr<FiberSocket> socket) {
    const auto protocol =
        std::make_shared<TBinaryProtocol>(std::make_shared<TFramedTransport>(std::move(socket)));
    try {
      while (processor->process(protocol, protocol, nullptr)) {
      }
    } catch (const TTransportException&) {
      // The caller has closed.
    }
  });
}

class ThriftFiber final : public Stack {
 public:
  absl::Status RunLeaf(const Ready& ready) override {
    FiberReactor reactor;
    return Serve(reactor, std::make_shared<thrift_peer::LeafProcessor>(std::make_shared<ThriftLeafHandler>()),
                 ready);
  }
  absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) override {
    FiberReactor reactor;
    return Serve(
        reactor,
        std::make_shared<thrift_peer::MidProcessor>(std::make_shared<FiberMidHandler>(&reactor, leaves)),
        ready);
  }
};

}  // namespace

std::unique_ptr<Stack> MakeThriftFiber() { return std::make_unique<ThriftFiber>(); }

}  // namespace curtail::bench
