// SPDX-License-Identifier: Apache-2.0
//
// soak: calls of all kinds for an hour, while deadlines pass, calls are cancelled, connections are reset, and servers
// switch their threading models, drain, are killed and start again.
//
// It checks every answer and every status, that no call outlasts its deadline, that the server that is never restarted
// ends without calls, connections and bytes of clients, and that memory and descriptors stay flat.
//
// Three kinds of threads: callers, one that makes event-driven calls, and this one, which disturbs the servers.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "caller.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/transport/tls_testing.h"
#include "fleet.h"
#include "heap.h"
#include "memory.h"
#include "nlohmann/json.hpp"
#include "soak.curtail.h"

namespace curtail::soak {
namespace {

constexpr int kSchemaVersion = 1;
// Shorter runs say nothing of memory.
constexpr double kJudgeMemoryFrom = 300;

struct Flags {
  double seconds = 3600;
  uint64_t seed = 1;
  int callers = 4;
  double rate = 500;  // calls a second, of all threads
  double disturb_every_s = 1.5;
  double bound_s = 10;
  std::string json;
};

std::atomic<bool> interrupted{false};

// A thread of calls: the seed, and when the next may begin.
class Pace {
 public:
  Pace(uint64_t seed, double rate) : rng_(seed), gap_s_(1 / rate) {}
  // True, once for each call, when its time has come. A thread that is late makes no calls up for it.
  bool Due() {
    const TimePoint now = Now();
    if (now < next_) return false;
    next_ = std::max(next_, now - std::chrono::milliseconds(100)) + FromSeconds(rng_.Exponential(gap_s_));
    return true;
  }
  TimePoint next() const { return next_; }

 private:
  Rng rng_;
  const double gap_s_;
  TimePoint next_ = Now();
};

// Both ends of a run: when it is over, and the threads that wait for that.
class End {
 public:
  explicit End(double seconds) : at_(Now() + FromSeconds(seconds)) {}
  bool Reached() const { return Now() >= at_ || interrupted.load(std::memory_order_relaxed); }
  // Waits, in parts that notice an interruption.
  void WaitUntil(TimePoint when) const {
    while (!Reached() && Now() < when)
      std::this_thread::sleep_until(std::min(when, Now() + std::chrono::milliseconds(200)));
  }

 private:
  const TimePoint at_;
};

// Channels of one client, by all ways to the servers.
class Routes {
 public:
  Routes(const Fleet& fleet, std::shared_ptr<const ClientTls> tls) {
    Add("steady", fleet.steady_target(), false, {});
    Add("steady, gzip", fleet.steady_target(), false, {.encoding = wire::Encoding::kGzip});
    Add("plain", fleet.plain_target(), true, {});
    Add("plain TCP, deflate", fleet.plain_tcp(), true,
        {.encoding = wire::Encoding::kDeflate, .connections = 2});
    Add("tls", fleet.tls_tcp(), true, {.tls = tls});
    Add("tls, gzip", fleet.tls_tcp(), true, {.tls = tls, .encoding = wire::Encoding::kGzip});
  }

  Client& client() { return client_; }
  const std::vector<Route>& routes() const { return routes_; }

 private:
  void Add(const char* name, const std::string& target, bool restarts, ChannelOptions options) {
    options.max_backoff = std::chrono::milliseconds(500);
    channels_.push_back(std::make_unique<Channel>(&client_, target, std::move(options)));
    routes_.push_back({channels_.back().get(), name, restarts});
  }

  Client client_{{.lanes = 2}};
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Route> routes_;
};

// One run and its results.
class Soak {
 public:
  Soak(const Flags& flags, const std::string& folder)
      : flags_(flags),
        certificate_(CertificateText{.names = "DNS:localhost,IP:127.83.65.75"}),
        fleet_(folder, CURTAIL_SOAK_SERVER, certificate_.file(), certificate_.key_file()),
        watch_(FromSeconds(flags.bound_s)) {}

  absl::Status Run();
  std::string Table() const;
  nlohmann::json Json() const;
  bool failed() const { return tally_.fault_count() > 0; }

 private:
  std::vector<std::thread> StartThreads(Routes& blocking, Routes& events, const End& end);
  void Disturb(const End& end);
  void Progress(TimePoint begun) const;
  void Note(const absl::Status& status) {
    if (!status.ok()) tally_.Fault(std::string(status.message()));
  }

  const Flags flags_;
  const TestCertificate certificate_;
  Fleet fleet_;
  Tally tally_;
  Watch watch_;
  std::vector<Series> series_;
  double ran_s_ = 0;
};

// Asks a server for its heap.
std::function<std::optional<uint64_t>()> HeapOf(Channel& channel) {
  return [&channel]() -> std::optional<uint64_t> {
    Context ctx(std::chrono::milliseconds(500));
    Heap heap;
    if (!Self::Stub(&channel).Measure(ctx, Packet(), &heap).ok()) return std::nullopt;
    return heap.in_use();
  };
}

absl::Status Soak::Run() {
  if (absl::Status started = fleet_.Start(); !started.ok()) return started;
  auto tls = ClientTls::Load({.ca_file = certificate_.file()});
  if (!tls.ok()) return tls.status();
  const int descriptors = HeldBy(getpid()).descriptors;
  const TimePoint begun = Now();
  {
    Routes blocking(fleet_, *tls), events(fleet_, *tls);
    Client client;
    Channel steady(&client, fleet_.steady_target()), leaf(&client, fleet_.leaf().address());
    series_ = {{"caller", getpid(), &HeapInUse},
               {"steady", fleet_.steady().pid(), HeapOf(steady)},
               {"leaf", fleet_.leaf().pid(), HeapOf(leaf)}};
    const End end(flags_.seconds);
    std::vector<std::thread> threads = StartThreads(blocking, events, end);
    Disturb(end);
    for (std::thread& thread : threads) thread.join();
  }
  ran_s_ = InSeconds(Now() - begun);
  Note(fleet_.AwaitRest());
  // The admin interfaces have a connection each.
  if (const int left = HeldBy(getpid()).descriptors - descriptors; left > 4)
    tally_.Fault(absl::StrCat(left, " descriptors are left behind"));
  if (ran_s_ >= kJudgeMemoryFrom) {
    for (const Series& one : series_) Note(one.CheckFlat());
  }
  Note(fleet_.Stop());
  return absl::OkStatus();
}

std::vector<std::thread> Soak::StartThreads(Routes& blocking, Routes& events, const End& end) {
  std::vector<std::thread> threads;
  const double rate = flags_.rate / (flags_.callers + 1);
  for (int i = 0; i < flags_.callers; ++i) {
    const uint64_t seed = flags_.seed * 1000 + static_cast<uint64_t>(i);
    threads.emplace_back([this, seed, rate, &blocking, &end] {
      Caller caller(seed, blocking.routes(), {fleet_.steady_target(), fleet_.plain_target()}, watch_, tally_);
      for (Pace pace(seed, rate); !end.Reached(); end.WaitUntil(pace.next())) {
        if (pace.Due()) caller.CallOnce();
      }
    });
  }
  threads.emplace_back([this, rate, &events, &end] {
    const uint64_t seed = flags_.seed * 1000 + 999;
    Pace pace(seed, rate);
    CallByEvents(
        seed, events.client(), events.routes(), 16, watch_, tally_, [&] { return end.Reached(); },
        [&] { return pace.Due(); });
  });
  return threads;
}

void Soak::Disturb(const End& end) {
  Rng rng(flags_.seed);
  const TimePoint begun = Now();
  TimePoint next_sample = begun, next_event = begun + FromSeconds(rng.Exponential(flags_.disturb_every_s));
  while (!end.Reached()) {
    if (Now() >= next_sample) {
      for (Series& one : series_) one.Sample();
      next_sample += std::chrono::seconds(1);
      Progress(begun);
    }
    if (Now() >= next_event) {
      Note(fleet_.CheckAllRun());
      Note(fleet_.Disturb(rng));
      next_event = Now() + FromSeconds(rng.Exponential(flags_.disturb_every_s));
    }
    end.WaitUntil(std::min(next_sample, next_event));
  }
}

void Soak::Progress(TimePoint begun) const {
  if (!isatty(STDERR_FILENO)) return;
  const Events& events = fleet_.events();
  std::cerr << absl::StrFormat("\r%5.0f of %.0f s  %d calls  %d switches  %d restarts  %d faults  ",
                               InSeconds(Now() - begun), flags_.seconds, tally_.calls(), events.switches,
                               events.kills + events.terminations, tally_.fault_count());
}

std::string Soak::Table() const {
  std::string out = absl::StrFormat("%-24s %9s %9s %9s  %s\n", "calls", "count", "p50 ms", "p99 ms", "ends");
  for (const auto& [kind, counts] : tally_.kinds()) {
    std::string ends;
    for (const auto& [status, count] : counts.ends) absl::StrAppend(&ends, status, " ", count, "  ");
    out += absl::StrFormat("%-24s %9d %9.1f %9.1f  %s\n", kind, counts.took.count(),
                           InMillis(counts.took.Percentile(50)), InMillis(counts.took.Percentile(99)), ends);
  }
  out +=
      absl::StrFormat("\n%-24s %9s %9s %9s  %s\n", "resident, MiB", "early", "late", "most", "descriptors");
  for (const Series& one : series_) {
    const Growth g = one.growth();
    out += absl::StrFormat("%-24s %9.1f %9.1f %9.1f  %d, %d, %d\n", one.name(), g.early.resident_mib,
                           g.late.resident_mib, g.most.resident_mib, g.early.descriptors, g.late.descriptors,
                           g.most.descriptors);
    out += absl::StrFormat("%-24s %9.1f %9.1f %9.1f\n", "  of it in use", g.early.heap_mib, g.late.heap_mib,
                           g.most.heap_mib);
  }
  const Events& events = fleet_.events();
  absl::StrAppendFormat(
      &out, "\n%.0f s, seed %d: %d calls, %d switches, %d SIGKILL, %d SIGTERM, %d stalls; %d faults\n",
      ran_s_, flags_.seed, tally_.calls(), events.switches, events.kills, events.terminations,
      watch_.stalls(), tally_.fault_count());
  for (const std::string& fault : tally_.faults()) absl::StrAppend(&out, "fault: ", fault, "\n");
  return out;
}

nlohmann::json Soak::Json() const {
  nlohmann::json calls, memory;
  for (const auto& [kind, counts] : tally_.kinds()) {
    calls.push_back({{"kind", kind},
                     {"count", counts.took.count()},
                     {"p50_ms", InMillis(counts.took.Percentile(50))},
                     {"p99_ms", InMillis(counts.took.Percentile(99))},
                     {"ends", counts.ends}});
  }
  for (const Series& one : series_) {
    const Growth g = one.growth();
    memory.push_back({{"process", one.name()},
                      {"early_mib", g.early.resident_mib},
                      {"late_mib", g.late.resident_mib},
                      {"most_mib", g.most.resident_mib},
                      {"early_heap_mib", g.early.heap_mib},
                      {"late_heap_mib", g.late.heap_mib},
                      {"early_descriptors", g.early.descriptors},
                      {"late_descriptors", g.late.descriptors}});
  }
  const Events& events = fleet_.events();
  return {{"schema_version", kSchemaVersion},
          {"seconds", ran_s_},
          {"seed", flags_.seed},
          {"switches", events.switches},
          {"sigkills", events.kills},
          {"sigterms", events.terminations},
          {"stalls", watch_.stalls()},
          {"calls", calls},
          {"memory", memory},
          {"faults", tally_.faults()},
          {"fault_count", tally_.fault_count()}};
}

int Main(const Flags& flags) {
  for (const int number : {SIGINT, SIGTERM}) signal(number, [](int) { interrupted = true; });
  signal(SIGPIPE, SIG_IGN);
  std::string folder = (std::filesystem::temp_directory_path() / "curtail_soak.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return std::perror(folder.c_str()), 1;
  bool failed = false;
  {
    Soak soak(flags, folder);
    const absl::Status ran = soak.Run();
    if (!ran.ok()) std::cerr << "soak: " << ran << "\n";
    failed = soak.failed() || !ran.ok();
    std::cout << "\n" << soak.Table();
    if (!flags.json.empty()) failed |= !(std::ofstream(flags.json) << soak.Json().dump(2) << "\n");
  }
  if (failed) std::cerr << "soak: the servers' logs are in " << folder << "\n";
  if (!failed) std::filesystem::remove_all(folder);
  return failed ? 1 : interrupted ? 105 : 0;
}

}  // namespace
}  // namespace curtail::soak

int main(int argc, char** argv) {
  curtail::soak::Flags flags;
  CLI::App app("Do all kinds of calls work for an hour, whatever befalls their servers?", "soak");
  app.footer(
      "Exit codes: 0 ok, 1 a fault was found, 104 bad flags, 105 interrupted.\n"
      "Example: soak --seconds 3600 --seed 7 --json soak.json");
  app.add_option("--seconds", flags.seconds, "How long; memory is judged from 300 on")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "Of all that is left to chance")->capture_default_str();
  app.add_option("--callers", flags.callers, "Threads that make calls that block")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--rate", flags.rate, "Calls a second")->check(CLI::Range(1.0, 1e6))->capture_default_str();
  app.add_option("--disturb-every", flags.disturb_every_s,
                 "Seconds from a switch, or a server's end, to the next")
      ->check(CLI::Range(0.05, 1e6))
      ->capture_default_str();
  app.add_option("--bound", flags.bound_s, "Seconds by which a call may outlast its deadline")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app.add_option("--json", flags.json, "Write the results here");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 104;
  }
  return curtail::soak::Main(flags);
}
