// SPDX-License-Identifier: Apache-2.0
//
// relay.h - a TCP relay in front of a server, which the test can cut as if the server had died.
#pragma once

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace curtail::interop {

// A Relay copies bytes between its callers and one server. Thread-safe.
class Relay {
 public:
  // `target` is "127.0.0.1:port".
  explicit Relay(const std::string& target);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // "127.0.0.1:port"
  const std::string& address() const { return address_; }
  // Breaks every connection (both sides see a reset or an end) and accepts no more.
  void Cut();

 private:
  void Run();
  void Accept();
  // True if the connection lives on.
  static bool Copy(int from, int to);

  const std::string target_;
  std::string address_;
  int listener_ = -1;
  int stop_ = -1;                                 // eventfd
  std::vector<std::pair<int, int>> connections_;  // owned by thread_
  std::thread thread_;
};

// A blocking TCP connection to "127.0.0.1:port", or -1.
int ConnectTo(const std::string& address);

}  // namespace curtail::interop
