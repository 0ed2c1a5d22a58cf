// SPDX-License-Identifier: Apache-2.0
//
// relay.h - a relay that puts a link in front of a server: callers see it behind a network.
//
//  R1  One thread owns all sockets. It never blocks but in ppoll().
//  R2  A direction that holds kMostHeld bytes more than its link does by itself is not read from,
//      so that the sender waits, as behind a full network.
//  R3  The end of a stream travels like its bytes. A reset ends both sides at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/deploy/link/link.h"
#include "curtail/exec/address.h"

namespace curtail::deploy {

struct RelayOptions {
  std::string listen = "127.0.0.1:0";
  std::string to;  // the server: HOST:PORT or unix:PATH
  LinkShape shape;
  uint64_t seed = 1;
};

// A Relay copies bytes between callers and one server. Thread-safe.
class Relay {
 public:
  static constexpr size_t kMostHeld = size_t{1} << 20;
  // More wait until one ends; fewer where the process may have few descriptors.
  static constexpr size_t kMostConnections = 1000;

  // Listens. Errors: as Address::Resolve(); ALREADY_EXISTS, PERMISSION_DENIED of the socket.
  static absl::StatusOr<std::unique_ptr<Relay>> Start(const RelayOptions& options);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  const std::string& address() const { return address_; }
  // Breaks every connection, as if the server had died, and accepts no more.
  void Cut();

 private:
  struct Direction;
  struct Connection;

  Relay(Address to, const LinkShape& shape, uint64_t seed, internal::UniqueFd listener);
  void Run();
  void Accept();

  // Immutable after construction.
  const Address to_;
  const LinkShape shape_;
  const size_t most_held_;
  const size_t most_connections_;
  const std::string address_;
  const internal::UniqueFd stop_;  // eventfd

  // Owned by thread_.
  uint64_t seed_;
  internal::UniqueFd listener_;
  std::vector<std::unique_ptr<Connection>> connections_;

  std::thread thread_;
};

}  // namespace curtail::deploy
