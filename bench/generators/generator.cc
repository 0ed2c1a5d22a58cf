// SPDX-License-Identifier: Apache-2.0
#include "generator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/common/find_program.h"
#include "bench/common/scratch.h"
#include "output.h"
#include "process.h"
#include "target.h"

namespace curtail::bench {
namespace {

using Words = std::vector<std::string>;

// curtail's exit code for numbers that must not be believed.
constexpr int kVoid = 98;
// An empty gRPC message: not compressed, of length 0.
const std::string kEmptyMessage(5, '\0');
// Streams that h2load may have open in an open loop: so many that it does not wait for replies.
constexpr char kManyStreams[] = "10000";

std::string Count(const TimedLoad& load) {
  return absl::StrCat(std::max<uint64_t>(1, static_cast<uint64_t>(load.load.number * load.seconds)));
}

std::string Seconds(const TimedLoad& load) {
  return absl::StrFormat("%dms", static_cast<int64_t>(load.seconds * 1e3));
}

Words CurtailWords(const std::string& address, const TimedLoad& load, const ScratchFolder& scratch) {
  return {"load",
          address,
          "--method",
          kTargetMethod,
          "--warmup",
          "0ms",
          "--duration",
          Seconds(load),
          load.load.open() ? "--rps" : "--closed",
          absl::StrCat(load.load.number),
          "--json",
          scratch.File("curtail.json")};
}

Words GhzWords(const std::string& address, const TimedLoad& load, bool observe) {
  Words words = {"--insecure", "--call", std::string(kTargetMethod).substr(1), "-d", "{}"};
  if (load.load.open()) {
    words.insert(words.end(), {"--rps", absl::StrCat(load.load.number), "-n", Count(load)});
  } else {
    words.insert(words.end(),
                 {"-c", absl::StrCat(load.load.number), "-z", Seconds(load), "--duration-stop", "wait"});
  }
  if (observe) words.insert(words.end(), {"-O", "json"});
  words.push_back(address);
  return words;
}

Words H2loadWords(const std::string& address, const TimedLoad& load, bool observe,
                  const ScratchFolder& scratch) {
  Words words = {
      "-c", "1", "-H", "content-type: application/grpc", "-H", "te: trailers", "-d", scratch.File("body")};
  if (load.load.open()) {
    words.insert(words.end(),
                 {"--rps", absl::StrCat(load.load.number), "-m", kManyStreams, "-n", Count(load)});
  } else {
    words.insert(words.end(), {"-m", absl::StrCat(load.load.number), "-D", Seconds(load)});
  }
  if (observe) words.push_back("--log-file=" + scratch.File("h2load.log"));
  words.push_back(absl::StrCat("http://", address, kTargetMethod));
  return words;
}

Words WordsFor(const Generator& generator, const std::string& address, const TimedLoad& load, bool observe,
               const ScratchFolder& scratch) {
  switch (generator.program) {
    case Generator::Program::kCurtail:
      return CurtailWords(address, load, scratch);
    case Generator::Program::kGhz:
      return GhzWords(address, load, observe);
    case Generator::Program::kH2load:
      return H2loadWords(address, load, observe, scratch);
  }
  return {};
}

absl::StatusOr<GeneratorRun> ReadH2load(const std::string& out, bool observe, const ScratchFolder& scratch) {
  absl::StatusOr<GeneratorRun> run = ParseH2load(out);
  if (!run.ok() || !observe) return run;
  const absl::StatusOr<Percentiles> latency = ParseH2loadLog(ReadFile(scratch.File("h2load.log")));
  if (!latency.ok()) return latency.status();
  run->latency = *latency;
  return run;
}

absl::StatusOr<GeneratorRun> ReadRun(const Generator& generator, const std::string& out, bool observe,
                                     const ScratchFolder& scratch) {
  switch (generator.program) {
    case Generator::Program::kCurtail:
      return ParseCurtail(ReadFile(scratch.File("curtail.json")));
    case Generator::Program::kGhz:
      return observe ? ParseGhzJson(out) : ParseGhzSummary(out);
    case Generator::Program::kH2load:
      return ReadH2load(out, observe, scratch);
  }
  return absl::InternalError("no such program");
}

absl::StatusOr<GeneratorRun> Run(const Tools& tools, const Generator& generator, const std::string& address,
                                 const TimedLoad& load, bool observe) {
  const std::optional<std::string> path = Find(tools, generator.program);
  if (!path) return absl::NotFoundError(absl::StrCat("there is no program for ", generator.name));
  const ScratchFolder scratch;
  if (!WriteFile(scratch.File("body"), kEmptyMessage))
    return absl::InternalError("cannot write a file in /tmp");
  ProgramOptions process;
  process.argv = WordsFor(generator, address, load, observe, scratch);
  process.argv.insert(process.argv.begin(), *path);
  process.argv.insert(process.argv.end(), generator.flags.begin(), generator.flags.end());
  process.timeout = std::chrono::seconds(30 + static_cast<int64_t>(4 * load.seconds));
  const absl::StatusOr<ProgramResult> result = RunProgram(process);
  if (!result.ok()) return result.status();
  const bool curtail = generator.program == Generator::Program::kCurtail;
  if (result->exit_code != 0 && !(curtail && result->exit_code == kVoid)) {
    return absl::UnavailableError(absl::StrCat(generator.name, " ended with code ", result->exit_code, ": ",
                                               result->err.substr(0, 500), result->out.substr(0, 500)));
  }
  absl::StatusOr<GeneratorRun> run = ReadRun(generator, result->out, observe, scratch);
  if (run.ok()) run->cpu_us = static_cast<double>(result->cpu.count()) / 1e3;
  if (run.ok() && run->answered == 0)
    return absl::UnavailableError(absl::StrCat(generator.name, ": no answers"));
  return run;
}

}  // namespace

std::optional<std::string> Find(const Tools& tools, Generator::Program program) {
  switch (program) {
    case Generator::Program::kCurtail:
      return FindProgram(tools.curtail);
    case Generator::Program::kGhz:
      return FindProgram(tools.ghz);
    case Generator::Program::kH2load:
      return FindProgram(tools.h2load);
  }
  return std::nullopt;
}

absl::StatusOr<GeneratorRun> Observe(const Tools& tools, const Generator& generator,
                                     const std::string& address, const TimedLoad& load) {
  return Run(tools, generator, address, load, true);
}

absl::StatusOr<GeneratorRun> Measure(const Tools& tools, const Generator& generator,
                                     const std::string& address, const TimedLoad& load) {
  return Run(tools, generator, address, load, false);
}

absl::StatusOr<GeneratorRun> MeasureStart(const Tools& tools, const Generator& generator,
                                          const std::string& address) {
  return Run(tools, generator, address, {.load = {Load::Kind::kClosed, 1}, .seconds = 0.001}, false);
}

}  // namespace curtail::bench
