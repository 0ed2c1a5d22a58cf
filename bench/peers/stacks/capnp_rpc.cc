// SPDX-License-Identifier: Apache-2.0
//
// capnp_rpc.cc - Cap'n Proto RPC as its documentation has it: one thread with its event loop, promises, one connection
// to each leaf that all calls share. Its generator is a client of the same library.

#include <capnp/message.h>
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/peers/generator.h"
#include "bench/peers/stack.h"
#include "curtail/base/clock.h"
#include "fanout.capnp.h"

namespace curtail::bench {
namespace {

// Turns what the library throws into a status.
template <class F>
absl::Status Run(F&& f) {
  KJ_IF_MAYBE (thrown, kj::runCatchingExceptions(std::forward<F>(f)))
    return absl::UnavailableError(thrown->getDescription().cStr());
  return absl::OkStatus();
}

class LeafService final : public capnp_peer::Leaf::Server {
  kj::Promise<void> null(NullContext context) override {
    context.getResults().setPayload(context.getParams().getPayload());
    return kj::READY_NOW;
  }
};

// A connection to a server, and what it calls there.
class Peer {
 public:
  Peer(kj::AsyncIoContext& io, const std::string& address)
      : stream_(io.provider->getNetwork()
                    .parseAddress(address.c_str())
                    .wait(io.waitScope)
                    ->connect()
                    .wait(io.waitScope)),
        client_(*stream_) {}

  template <class Interface>
  typename Interface::Client As() {
    return client_.bootstrap().castAs<Interface>();
  }

 private:
  kj::Own<kj::AsyncIoStream> stream_;
  capnp::TwoPartyClient client_;
};

class MidService final : public capnp_peer::Mid::Server {
 public:
  MidService(kj::AsyncIoContext& io, const std::vector<std::string>& leaves) {
    for (const std::string& leaf : leaves) {
      peers_.push_back(std::make_unique<Peer>(io, leaf));
      leaves_.push_back(peers_.back()->As<capnp_peer::Leaf>());
    }
  }

 private:
  using Reply = capnp::Response<capnp_peer::Leaf::NullResults>;

  kj::Promise<void> query(QueryContext context) override {
    const capnp::Data::Reader payload = context.getParams().getPayload();
    auto calls = kj::heapArrayBuilder<kj::Promise<Reply>>(leaves_.size());
    for (capnp_peer::Leaf::Client& leaf : leaves_) {
      auto request = leaf.nullRequest();
      request.setPayload(payload);
      calls.add(request.send());
    }
    return kj::joinPromises(calls.finish()).then([context](kj::Array<Reply> replies) mutable {
      context.getResults().setPayload(replies.back().getPayload());
    });
  }

  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<capnp_peer::Leaf::Client> leaves_;
};

class CapnpStack final : public Stack {
 public:
  absl::Status RunLeaf(const Ready& ready) override {
    return Serve(ready, [](kj::AsyncIoContext&) { return kj::heap<LeafService>(); });
  }
  absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) override {
    return Serve(ready, [&leaves](kj::AsyncIoContext& io) { return kj::heap<MidService>(io, leaves); });
  }

 private:
  template <class Make>
  static absl::Status Serve(const Ready& ready, const Make& make) {
    return Run([&] {
      kj::AsyncIoContext io = kj::setupAsyncIo();
      capnp::TwoPartyServer server(make(io));
      kj::Own<kj::ConnectionReceiver> listener =
          io.provider->getNetwork().parseAddress("127.0.0.1:0").wait(io.waitScope)->listen();
      ready(absl::StrCat("127.0.0.1:", listener->getPort()));
      server.listen(*listener).wait(io.waitScope);
    });
  }
};

class CapnpGenerator final : public Generator, private kj::TaskSet::ErrorHandler {
 public:
  CapnpGenerator(const std::string& address, const Setup& setup) : payload_(setup.payload, '\0') {
    for (int i = 0; i < std::max(1, setup.connections); ++i) {
      peers_.push_back(std::make_unique<Peer>(io_, address));
      mids_.push_back(peers_.back()->As<capnp_peer::Mid>());
    }
  }

  ~CapnpGenerator() noexcept override = default;  // the members' may throw

  uint32_t slots() const override { return 2048; }
  bool in_turn() const override { return false; }

  void Send(uint32_t slot) override {
    auto request = mids_[next_++ % mids_.size()].queryRequest();
    request.setPayload(
        capnp::Data::Reader(reinterpret_cast<const kj::byte*>(payload_.data()), payload_.size()));
    calls_.add(request.send().then(
        [this, slot](auto&& reply) {
          Finish(slot, reply.getPayload().size() == payload_.size()
                           ? absl::OkStatus()
                           : absl::DataLossError("a reply of another length"));
        },
        [this, slot](kj::Exception&& e) {
          Finish(slot, absl::UnavailableError(e.getDescription().cStr()));
        }));
  }

  absl::Status Poll(Deadline deadline, std::vector<Done>* done) override {
    absl::Status status = Run([&] {
      io_.waitScope.poll();
      if (finished_.empty() && !deadline.Expired()) {
        auto [answered, tell] = kj::newPromiseAndFulfiller<void>();
        answered_ = std::move(tell);
        const auto left = std::chrono::nanoseconds(deadline.when() - Now()).count();
        io_.provider->getTimer()
            .afterDelay(std::max<int64_t>(left, 0) * kj::NANOSECONDS)
            .exclusiveJoin(std::move(answered))
            .wait(io_.waitScope);
      }
    });
    for (Done& finished : finished_) done->push_back(std::move(finished));
    finished_.clear();
    return status;
  }

 private:
  void Finish(uint32_t slot, absl::Status status) {
    finished_.push_back({slot, std::move(status)});
    if (answered_.get() != nullptr) std::exchange(answered_, nullptr)->fulfill();
  }
  // No call leaves its error to its task.
  void taskFailed(kj::Exception&&) override {}

  const std::string payload_;
  std::vector<Done> finished_;
  kj::Own<kj::PromiseFulfiller<void>> answered_;  // of the Poll() that waits
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<capnp_peer::Mid::Client> mids_;
  size_t next_ = 0;
  kj::TaskSet calls_{*this};
};

}  // namespace

std::unique_ptr<Stack> MakeCapnp() { return std::make_unique<CapnpStack>(); }

absl::StatusOr<std::unique_ptr<Generator>> MakeCapnpGenerator(const std::string& address,
                                                              const Setup& setup) {
  std::unique_ptr<Generator> generator;
  if (absl::Status made = Run([&] { generator = std::make_unique<CapnpGenerator>(address, setup); });
      !made.ok())
    return made;
  return generator;
}

}  // namespace curtail::bench
