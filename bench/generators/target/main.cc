// SPDX-License-Identifier: Apache-2.0
//
// curtail-load-target: the service of target.h as a program, to try a load generator by hand.

#include <signal.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "absl/strings/str_format.h"
#include "curtail/rpc/server_main.h"
#include "target.h"

namespace curtail::bench {
namespace {

constexpr int kBadFlag = 104;

struct Flags {
  TargetOptions target;
  double service_us = 0;
  double stall_us = 0;
  std::string log;
};

void AddFlags(CLI::App& app, Flags* flags) {
  TargetOptions& target = flags->target;
  app.add_option("--listen", target.listen, "HOST:PORT")->capture_default_str();
  app.add_option("--workers", target.workers, "Requests that run at once; 1: they wait for each other")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--service-us", flags->service_us, "How long a request takes, in microseconds; 0: no time")
      ->check(CLI::Range(0.0, 1e8))
      ->capture_default_str();
  app.add_flag("--exponential", target.exponential, "That is the mean of an exponential distribution");
  app.add_option("--seed", target.seed, "Of the distribution")->capture_default_str();
  app.add_option("--stall-at", target.stall_at, "The number of the request that stalls, from 0");
  app.add_option("--stall-us", flags->stall_us, "How much longer it takes")->check(CLI::Range(0.0, 1e8));
  app.add_option("--log", flags->log, "Write what each request took here, at the end (CSV)");
}

Nanos FromUs(double us) { return Nanos(static_cast<int64_t>(us * 1e3)); }

// False when that fails.
bool WriteLog(const std::string& path, const std::vector<ServedRequest>& log) {
  std::ofstream file(path);
  file << "number,drawn_us,took_us\n";
  for (const ServedRequest& one : log) {
    file << absl::StrFormat("%d,%.3f,%.3f\n", one.number, static_cast<double>(one.drawn.count()) / 1e3,
                            static_cast<double>((one.ended - one.began).count()) / 1e3);
  }
  file.close();
  return file.good();
}

// Until SIGTERM or SIGINT.
void AwaitStop() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  int signal = 0;
  sigwait(&stop, &signal);
}

int Main(int argc, char** argv) {
  BlockStopSignals();
  Flags flags;
  CLI::App app("curtail-load-target - a gRPC service whose response time is known");
  AddFlags(app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadFlag;
  }
  flags.target.service = FromUs(flags.service_us);
  flags.target.stall = FromUs(flags.stall_us);
  const absl::StatusOr<std::unique_ptr<Target>> target = Target::Start(flags.target);
  if (!target.ok()) {
    std::cerr << "curtail-load-target: " << target.status().message() << "\n";
    return kBadFlag;
  }
  std::cout << "listening on " << (*target)->address() << ", serves " << kTargetMethod << std::endl;
  AwaitStop();
  if (flags.log.empty() || WriteLog(flags.log, (*target)->TakeLog())) return 0;
  std::cerr << "curtail-load-target: cannot write " << flags.log << "\n";
  return 1;
}

}  // namespace
}  // namespace curtail::bench

int main(int argc, char** argv) { return curtail::bench::Main(argc, argv); }
