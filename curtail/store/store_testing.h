// SPDX-License-Identifier: Apache-2.0
//
// store_testing.h - real stores for a test: started, stalled, killed and looked into.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/deploy/process/process.h"

namespace curtail {

// A StoreProcess is a store that listens on a Unix socket. It ends with this object, or with the test that started it.
// Thread-compatible.
class StoreProcess {
 public:
  // Starts `words`, a program and its flags, and returns when it accepts connections on the socket `path`.
  StoreProcess(std::string path, std::vector<std::string> words);
  ~StoreProcess() { Kill(); }
  StoreProcess(const StoreProcess&) = delete;
  StoreProcess& operator=(const StoreProcess&) = delete;

  std::string address() const { return "unix:" + path_; }
  // Ends it with all it holds; and starts an empty one.
  void Kill();
  void Start();
  // As Start(). False: the process ended.
  bool TryStart();
  // Returns when it has ended by itself.
  void AwaitEnd();
  // Holds it up, as a machine does that swaps; and lets it go on.
  void Stall();
  void GoOn();

 protected:
  const std::string& path() const { return path_; }

 private:
  // Immutable after construction.
  const std::string path_;
  const std::vector<std::string> words_;

  std::unique_ptr<deploy::Process> process_;
};

// A memcached. Further flags: `extra`.
class MemcachedProcess : public StoreProcess {
 public:
  explicit MemcachedProcess(const std::string& path, std::vector<std::string> extra = {"-I", "2m"});

  // The value that it holds under a key, by the classic text protocol: a second opinion on the codec. Keys that text
  // can carry.
  std::optional<std::string> Look(std::string_view key) const;
};

// A Redis that writes nothing to the disk. Further flags: `extra`. Words before the program: `before`.
class RedisProcess : public StoreProcess {
 public:
  explicit RedisProcess(const std::string& path, std::vector<std::string> extra = {},
                        std::vector<std::string> before = {});
  // As StoreProcess::Start(), and returns when it has loaded the data of `extra`'s files.
  void Start();
};

// A PostgreSQL that `words` start.
class PostgresqlProcess : public StoreProcess {
 public:
  using StoreProcess::StoreProcess;
  // As StoreProcess::Start(). Waits until the parts of a killed server are gone. It may not serve yet.
  void Start();
};

}  // namespace curtail
