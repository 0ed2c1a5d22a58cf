// SPDX-License-Identifier: Apache-2.0
//
// raw_threads.cc - a thread a connection, blocking sockets: the simplest server there is, and the limit for a
// thread that waits for its replies. Each connection of the mid-tier has a connection of its own to every
// leaf.

#include <functional>
#include <thread>

#include "message.h"
#include "net.h"
#include "stack.h"

namespace curtail::bench {
namespace {

// Accepts for ever; `serve` runs on a thread of its own, which ends with the connection.
absl::Status ServeConnections(const Ready& ready, const std::function<void(Fd)>& serve) {
  absl::StatusOr<Listener> listener = Listen();
  if (!listener.ok()) return listener.status();
  ready(listener->address);
  while (true) {
    absl::StatusOr<Fd> fd = Accept(listener->fd.get());
    if (!fd.ok()) return fd.status();
    std::thread([serve, fd = std::move(*fd)]() mutable { serve(std::move(fd)); }).detach();
  }
}

void EchoUntilClosed(const Fd& caller) {
  Message message;
  while (ReadFull(caller.get(), &message, sizeof(message)).ok() && WellFormed(message) &&
         WriteFull(caller.get(), &message, sizeof(message)).ok()) {
  }
}

void FanOutUntilClosed(const Fd& caller, const std::vector<std::string>& leaf_addresses) {
  std::vector<Fd> leaves;
  for (const std::string& address : leaf_addresses) {
    absl::StatusOr<Fd> leaf = Connect(address);
    if (!leaf.ok()) return;
    leaves.push_back(std::move(*leaf));
  }
  Message message;
  while (ReadFull(caller.get(), &message, sizeof(message)).ok() && WellFormed(message)) {
    for (const Fd& leaf : leaves) {
      if (!WriteFull(leaf.get(), &message, sizeof(message)).ok()) return;
    }
    for (const Fd& leaf : leaves) {
      if (!ReadFull(leaf.get(), &message, sizeof(message)).ok()) return;
    }
    if (!WriteFull(caller.get(), &message, sizeof(message)).ok()) return;
  }
}

class RawThreads final : public Stack {
 public:
  absl::Status RunLeaf(const Ready& ready) override {
    return ServeConnections(ready, [](Fd caller) { EchoUntilClosed(caller); });
  }
  absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) override {
    return ServeConnections(ready, [leaves](Fd caller) { FanOutUntilClosed(caller, leaves); });
  }
};

}  // namespace

std::unique_ptr<Stack> MakeRawThreads() { return std::make_unique<RawThreads>(); }

}  // namespace curtail::bench
