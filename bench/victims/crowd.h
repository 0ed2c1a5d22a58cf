// SPDX-License-Identifier: Apache-2.0
//
// crowd.h - the connections of an attack.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/common/net.h"
#include "bench/victims/attacks.h"

namespace curtail::victims {

// A Crowd attacks an address from its construction to Stop(), by connections that one thread drives. Thread-compatible.
class Crowd {
 public:
  // `bytes` are the attack's, and outlive the Crowd.
  Crowd(std::string address, const Attack& attack, std::string_view bytes);
  ~Crowd() { Stop(); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  // Returns the bytes that were sent.
  uint64_t Stop();

 private:
  struct Peer {
    bench::Fd fd;
    size_t sent = 0;
  };

  void Run();
  void Connect(Peer& peer);
  // Waits for `events`, for the end, and for answers if it reads them.
  void Watch(Peer& peer, int how, uint32_t events);
  void Drive(Peer& peer, uint32_t events);
  // False once the connection is of no more use.
  bool Send(Peer& peer);

  const std::string address_;
  const Manner manner_;
  const std::string_view bytes_;
  std::atomic<bool> stop_{false};  // a flag only
  // The thread's until it has ended.
  const bench::Fd epoll_;
  std::vector<Peer> peers_;
  std::vector<char> answers_;
  uint64_t sent_ = 0;
  std::thread thread_;  // last: it uses the others
};

}  // namespace curtail::victims
