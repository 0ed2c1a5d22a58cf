// SPDX-License-Identifier: Apache-2.0
//
// thrift_async.cc - Apache Thrift as DeathStarBench uses it: TThreadedServer, a thread a connection; each leaf call
// through std::async, on a client from the leaf's pool.

#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TServerSocket.h>

#include <deque>
#include <future>

#include "absl/strings/str_cat.h"
#include "bench/peers/stack.h"
#include "bench/peers/stacks/thrift_common.h"

namespace curtail::bench {
namespace {

using apache::thrift::TProcessor;
using apache::thrift::protocol::TBinaryProtocolFactory;
using apache::thrift::server::TServerEventHandler;
using apache::thrift::server::TThreadedServer;
using apache::thrift::transport::TFramedTransport;
using apache::thrift::transport::TServerSocket;
using apache::thrift::transport::TSocket;
using apache::thrift::transport::TTransport;
using apache::thrift::transport::TTransportFactory;

// A TFramedTransport of Thrift 0.17 that only reads, as a server's do, fails after 100 MiB: its count of a message's
// bytes goes on from one message to the next. This one counts anew.
class LastingTransport final : public TFramedTransport {
 public:
  using TFramedTransport::TFramedTransport;
  uint32_t readEnd() override {
    const uint32_t bytes = TFramedTransport::readEnd();
    resetConsumedMessageSize();
    return bytes;
  }
};

class LastingTransportFactory final : public TTransportFactory {
 public:
  std::shared_ptr<TTransport> getTransport(std::shared_ptr<TTransport> socket) override {
    return std::make_shared<LastingTransport>(std::move(socket));
  }
};

// Connections to one leaf, made when none is free. Thread-safe.
class ClientPool {
 public:
  explicit ClientPool(const std::string& address) : port_(ThriftPort(address)) {}

  // A connection that failed is not used again.
  ThriftBlob Call(const ThriftBlob& request) {
    std::unique_ptr<ThriftClient> client = Take();
    ThriftBlob reply;
    client->stub().Null(reply, request);
    std::lock_guard lock(mu_);
    free_.push_back(std::move(client));
    return reply;
  }

 private:
  std::unique_ptr<ThriftClient> Take() {
    {
      std::lock_guard lock(mu_);
      if (!free_.empty()) {
        std::unique_ptr<ThriftClient> client = std::move(free_.back());
        free_.pop_back();
        return client;
      }
    }
    auto socket = std::make_shared<TSocket>("127.0.0.1", port_);
    socket->open();
    return std::make_unique<ThriftClient>(std::move(socket));
  }

  const int port_;
  std::mutex mu_;
  std::vector<std::unique_ptr<ThriftClient>> free_;  // guarded by mu_
};

class MidHandler final : public thrift_peer::MidIf {
 public:
  explicit MidHandler(const std::vector<std::string>& leaves) {
    for (const std::string& leaf : leaves) leaves_.emplace_back(leaf);
  }

  void Query(ThriftBlob& reply, const ThriftBlob& request) override {
    std::vector<std::future<ThriftBlob>> calls;
    calls.reserve(leaves_.size());
    for (ClientPool& leaf : leaves_) {
      calls.push_back(std::async(std::launch::async, [&leaf, &request] { return leaf.Call(request); }));
    }
    for (std::future<ThriftBlob>& call : calls) reply = call.get();
  }

 private:
  std::deque<ClientPool> leaves_;
};

// Hears when the server listens.
class Announcer final : public TServerEventHandler {
 public:
  Announcer(std::shared_ptr<TServerSocket> socket, const Ready& ready)
      : socket_(std::move(socket)), ready_(ready) {}
  void preServe() override { ready_(absl::StrCat("127.0.0.1:", socket_->getPort())); }

 private:
  const std::shared_ptr<TServerSocket> socket_;
  const Ready ready_;
};

absl::Status Serve(std::shared_ptr<TProcessor> processor, const Ready& ready) {
  const auto socket = std::make_shared<TServerSocket>("127.0.0.1", 0);
  socket->setAcceptBacklog(4096);
  // To interrupt a connection by stop() would cost it a poll() before every read.
  socket->setInterruptableChildren(false);
  TThreadedServer server(std::move(processor), socket, std::make_shared<LastingTransportFactory>(),
                         std::make_shared<TBinaryProtocolFactory>());
  server.setServerEventHandler(std::make_shared<Announcer>(socket, ready));
  try {
    server.serve();
  } catch (const apache::thrift::TException& e) {
    return absl::UnavailableError(e.what());
  }
  return absl::OkStatus();
}

class ThriftAsync final : public Stack {
 public:
  absl::Status RunLeaf(const Ready& ready) override {
    return Serve(std::make_shared<thrift_peer::LeafProcessor>(std::make_shared<ThriftLeafHandler>()), ready);
  }
  absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) override {
    return Serve(std::make_shared<thrift_peer::MidProcessor>(std::make_shared<MidHandler>(leaves)), ready);
  }
};

}  // namespace

std::unique_ptr<Stack> MakeThriftAsync() { return std::make_unique<ThriftAsync>(); }

}  // namespace curtail::bench
