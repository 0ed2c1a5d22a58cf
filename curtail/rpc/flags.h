// SPDX-License-Identifier: Apache-2.0
//
// flags.h - the flags that a service adds to its host's.
//
// A service names each flag once, with the variable that it sets. The parser behind it is a heavy
// header, which this one does not include.
//
// Code: host/flags.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace curtail {

// The least and the greatest value that a flag takes.
struct FlagRange {
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
};

// A Flags collects the flags of one command. The variables outlive the parsing, and hold the
// defaults before it. Two services of one program may add a flag of one name: it sets the variables
// of both. Not thread-safe.
class Flags {
 public:
  // `app` outlives the object. For the host.
  explicit Flags(CLI::App* app);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  // `name` is "--shard"; `help` is one line without a full stop. REQUIRES: flags of one name have
  // variables of one type.
  Flags& Add(const std::string& name, std::string* value, const std::string& help);
  Flags& Add(const std::string& name, int* value, const std::string& help, FlagRange range = {});
  Flags& Add(const std::string& name, uint32_t* value, const std::string& help, FlagRange range = {});
  Flags& Add(const std::string& name, uint64_t* value, const std::string& help, FlagRange range = {});
  Flags& Add(const std::string& name, float* value, const std::string& help, FlagRange range = {});
  Flags& Add(const std::string& name, double* value, const std::string& help, FlagRange range = {});
  // A switch, which takes no value.
  Flags& Add(const std::string& name, bool* value, const std::string& help);
  // May be given several times; each value is added. A name without dashes names the words that are
  // not flags.
  Flags& Add(const std::string& name, std::vector<std::string>* values, const std::string& help);
  // Has the parser refuse a command line without the flag that was added last.
  Flags& Required();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace curtail
