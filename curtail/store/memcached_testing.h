// SPDX-License-Identifier: Apache-2.0
//
// memcached_testing.h - a real memcached for a test: started, stopped, killed and looked into.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace curtail {

// A folder for one test, removed with all it holds.
class TestDir {
 public:
  TestDir();
  ~TestDir();
  TestDir(const TestDir&) = delete;
  TestDir& operator=(const TestDir&) = delete;
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// A MemcachedProcess ends with this object, or with the test that started it. Thread-compatible.
class MemcachedProcess {
 public:
  // Starts one on the socket `path` and returns when it accepts connections. Further flags of memcached:
  // `extra`.
  explicit MemcachedProcess(std::string path, std::vector<std::string> extra = {"-I", "2m"});
  ~MemcachedProcess() { Kill(); }
  MemcachedProcess(const MemcachedProcess&) = delete;
  MemcachedProcess& operator=(const MemcachedProcess&) = delete;

  std::string address() const { return "unix:" + path_; }
  // Ends it with all it holds; and starts an empty one.
  void Kill();
  void Start();
  // Holds it up, as a machine does that swaps; and lets it go on.
  void Stall();
  void GoOn();

  // The value that it holds under a key, by the classic text protocol: a second opinion on the codec. Keys that text
  // can carry.
  std::optional<std::string> Look(std::string_view key) const;

 private:
  // Immutable after construction.
  const std::string path_;
  const std::vector<std::string> extra_;

  pid_t pid_ = -1;
};

}  // namespace curtail
