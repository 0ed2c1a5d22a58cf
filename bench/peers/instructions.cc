// SPDX-License-Identifier: Apache-2.0
#include "instructions.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "generator.h"
#include "servers.h"

namespace curtail::bench {
namespace {

constexpr Nanos kEndTimeout = std::chrono::seconds(60);

// A folder for callgrind's files that goes with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "peers-XXXXXX").string();
    if (!error && mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string FindProgram(absl::string_view name) {
  const char* path = getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    std::string candidate = absl::StrCat(folder, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

// The sum that callgrind writes at the end of its file.
absl::StatusOr<double> ReadTotal(const std::string& file) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    absl::string_view rest = line;
    double total = 0;
    if ((absl::ConsumePrefix(&rest, "totals: ") || absl::ConsumePrefix(&rest, "summary: ")) &&
        absl::SimpleAtod(rest, &total) && total > 0) {
      return total;
    }
  }
  return absl::UnavailableError("valgrind has written no count");
}

// One run: how many instructions the mid-tier took for all its life.
class Counter {
 public:
  Counter(const Options& options, std::string valgrind) : options_(options), valgrind_(std::move(valgrind)) {}

  // The difference between two runs, a request.
  absl::StatusOr<double> PerRequest(const StackInfo& stack, const Setup& setup, uint32_t outstanding) {
    absl::StatusOr<double> few = Run(stack, setup, outstanding, kFewRequests);
    if (!few.ok()) return few;
    absl::StatusOr<double> many = Run(stack, setup, outstanding, kManyRequests);
    if (!many.ok()) return many;
    return (*many - *few) / static_cast<double>(kManyRequests - kFewRequests);
  }

 private:
  absl::StatusOr<double> Run(const StackInfo& stack, const Setup& setup, uint32_t outstanding,
                             uint64_t requests) {
    const std::string file = absl::StrCat(scratch_.path(), "/", ++runs_);
    const std::vector<std::string> wrapper = {valgrind_, "--tool=callgrind", "--quiet",
                                              absl::StrCat("--log-file=", file, ".log"),
                                              absl::StrCat("--callgrind-out-file=", file)};
    absl::StatusOr<Servers> servers = StartServers(stack, setup, options_.leaf_config, wrapper);
    if (!servers.ok()) return servers.status();
    absl::StatusOr<std::unique_ptr<Generator>> generator =
        MakeGenerator(stack.protocol, servers->mid->address(), setup);
    if (!generator.ok()) return generator.status();
    absl::StatusOr<Sample> sample = RunRequests(**generator, outstanding, requests);
    if (!sample.ok()) return sample.status();
    if (!sample->first_error.ok()) return sample->first_error;
    if (absl::Status ended = servers->mid->Terminate(kEndTimeout); !ended.ok()) return ended;
    return ReadTotal(file);
  }

  const Options& options_;
  const std::string valgrind_;
  const ScratchFolder scratch_;
  int runs_ = 0;
};

Instructions Count(Counter& counter, const StackInfo& stack, const Setup& setup) {
  Instructions result{stack.name, setup.label, {}, stack.missing};
  if (result.note.empty() && stack.polls) result.note = "polls: not counted";
  for (const uint32_t outstanding : kCountedLoads) {
    std::optional<double>& one = result.per_request.emplace_back();
    if (!result.note.empty()) continue;
    absl::StatusOr<double> counted = counter.PerRequest(stack, setup, outstanding);
    if (counted.ok()) {
      one = *counted;
    } else {
      result.note = absl::StrCat("under valgrind: ", counted.status().ToString());
    }
  }
  return result;
}

}  // namespace

std::vector<Instructions> CountInstructions(const Options& options,
                                            const std::function<void(const std::string&)>& progress) {
  const std::string valgrind = FindProgram("valgrind");
  // For the children. Go interrupts its own threads by signals, on which callgrind fails; without them Go's scheduler
  // waits until a goroutine calls a function, as these do all the time.
  setenv("GODEBUG", "asyncpreemptoff=1", 1);
  Counter counter(options, valgrind);
  std::vector<Instructions> results;
  for (const Setup& setup : options.setups) {
    for (const std::string& name : options.stacks) {
      absl::StatusOr<StackInfo> stack = DescribeStack(name);
      if (!stack.ok()) continue;  // ParseOptions() has described it
      if (valgrind.empty()) stack->missing = "no valgrind here";
      progress(absl::StrCat("instructions: ", name, setup.label.empty() ? "" : " ", setup.label));
      results.push_back(Count(counter, *stack, setup));
    }
  }
  return results;
}

}  // namespace curtail::bench
