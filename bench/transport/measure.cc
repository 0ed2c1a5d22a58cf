// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. All servers are started first and live through the whole run; one that is not being asked sleeps in
// the kernel and costs nothing. So variants can take turns within a fraction of a second of each other, and
// what disturbs the machine disturbs all of them.
#include "measure.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "bench/common/round.h"
#include "generator.h"
#include "large.h"
#include "mid.h"
#include "tools/curtail/deploy/process.h"
#include "variants.h"

namespace curtail::bench {
namespace {

// Connections of a variant that serves one request at a time on each, under open load.
constexpr uint32_t kOpenConnections = 16;
constexpr double kOverheadSeconds = 0.06;  // a cell's connections and first requests

// Counters of one server, in memory that its process shares with this one.
class SharedCounters {
 public:
  SharedCounters()
      : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0)) {
    for (size_t i = 0; memory_ != MAP_FAILED && i < kCounterSlots; ++i) new (&slots()[i]) Counters;
  }
  ~SharedCounters() {
    if (memory_ != MAP_FAILED) munmap(memory_, kBytes);
  }
  SharedCounters(const SharedCounters&) = delete;
  SharedCounters& operator=(const SharedCounters&) = delete;

  bool ok() const { return memory_ != MAP_FAILED; }
  Counters* slots() const { return static_cast<Counters*>(memory_); }
  double Sum(std::atomic<uint64_t> Counters::* field) const {
    uint64_t sum = 0;
    for (size_t i = 0; i < kCounterSlots; ++i) sum += (slots()[i].*field).load(std::memory_order_relaxed);
    return static_cast<double>(sum);
  }

 private:
  static constexpr size_t kBytes = kCounterSlots * sizeof(Counters);
  void* const memory_;
};

struct Server {
  Listener listener;
  std::unique_ptr<SharedCounters> counters;
  std::unique_ptr<tool::Process> process;
};

// The CPU time that a server has consumed since it started.
struct Usage {
  explicit Usage(const Server& server)
      : process(server.process->Usage()),
        system_calls(server.counters->Sum(&Counters::system_calls)),
        copied(server.counters->Sum(&Counters::zero_copies_copied)) {}
  tool::ProcessUsage process;
  double system_calls;
  double copied;  // MSG_ZEROCOPY sends that were copied
};

absl::StatusOr<Server> StartServer(const std::function<void(const Listener&, Counters*)>& run) {
  absl::StatusOr<Listener> listener = Listen();
  if (!listener.ok()) return listener.status();
  Server server{.listener = std::move(*listener), .counters = std::make_unique<SharedCounters>()};
  if (!server.counters->ok()) return ErrnoStatus("mmap");
  auto process = tool::Process::Spawn(
      {.name = "server", .counted = true, .run = [&] { run(server.listener, server.counters->slots()); }});
  if (!process.ok()) return process.status();
  server.process = std::move(*process);
  return server;
}

absl::StatusOr<Server> StartVariant(const Variant& variant, const std::vector<std::string>& leaves) {
  if (variant.uring) {
    if (absl::Status available = UringAvailable(); !available.ok()) return available;
  }
  return StartServer([&](const Listener& listener, Counters* counters) {
    if (variant.large) RunLargeServer(ReplyOf(variant.name), listener, counters);
    RunMid(variant.name, listener, leaves, counters);
  });
}

absl::StatusOr<std::unique_ptr<Generator>> MakeGenerator(const Options& options, const Variant& variant,
                                                         const Load& cell, const std::string& address) {
  const uint32_t own = cell.kind == Load::Kind::kOpen ? kOpenConnections : cell.number;
  return Generator::Make(address, variant.one_at_a_time ? own : std::min(options.callers, own),
                         variant.one_at_a_time);
}

double At(const std::vector<float>& sorted, double quantile) {
  const auto index = static_cast<size_t>(quantile * static_cast<double>(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

std::optional<double> PerAnswer(std::optional<double> before, std::optional<double> after, double answers) {
  if (!before || !after) return std::nullopt;
  return (*after - *before) / answers;
}

absl::StatusOr<Measurement> Evaluate(const absl::StatusOr<Sample>& sample, const Usage& earlier,
                                     const Usage& later) {
  if (!sample.ok()) return sample.status();
  if (sample->latencies_us.empty()) return absl::UnavailableError("no answers");
  const auto answers = static_cast<double>(sample->latencies_us.size());
  const tool::ProcessUsage &before = earlier.process, &after = later.process;
  return Measurement{
      .p50_us = At(sample->latencies_us, 0.5),
      .p99_us = At(sample->latencies_us, 0.99),
      .answers_per_second = answers / sample->seconds,
      .cpu_us = (after.cpu_us - before.cpu_us) / answers,
      .user_ticks = after.user_ticks - before.user_ticks,
      .system_ticks = after.system_ticks - before.system_ticks,
      .context_switches = (after.context_switches - before.context_switches) / answers,
      .system_calls = (later.system_calls - earlier.system_calls) / answers,
      .copied = (later.copied - earlier.copied) / answers,
      .user_instructions = PerAnswer(before.user_instructions, after.user_instructions, answers),
      .kernel_instructions = PerAnswer(before.kernel_instructions, after.kernel_instructions, answers),
  };
}

absl::StatusOr<Measurement> RunCell(const Options& options, const Variant& variant, const Server& server,
                                    const Load& cell, uint64_t seed) {
  const auto duration = std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(options.seconds));
  if (variant.large) {
    const Usage before(server);
    const absl::StatusOr<Sample> sample = RunLarge(server.listener.address, cell.number, duration);
    return Evaluate(sample, before, Usage(server));
  }
  absl::StatusOr<std::unique_ptr<Generator>> generator =
      MakeGenerator(options, variant, cell, server.listener.address);
  if (!generator.ok()) return generator.status();
  const Usage before(server);
  const absl::StatusOr<Sample> sample = cell.kind == Load::Kind::kOpen
                                            ? (*generator)->RunOpenLoop(cell.number, duration, seed)
                                            : (*generator)->RunClosedLoop(cell.number, duration);
  return Evaluate(sample, before, Usage(server));
}

bool Fits(const Variant& variant, const Load& cell) {
  return variant.large == (cell.kind == Load::Kind::kEcho);
}

class Run {
 public:
  explicit Run(const Options& options) : options_(options) {}

  absl::Status StartLeaves() {
    for (size_t i = 0; i < kLeaves; ++i) {
      absl::StatusOr<Server> leaf =
          StartServer([](const Listener& listener, Counters*) { RunLeaf(listener); });
      if (!leaf.ok()) return leaf.status();
      addresses_.push_back(leaf->listener.address);
      leaves_.push_back(std::move(*leaf));
    }
    return absl::OkStatus();
  }

  void StartVariants() {
    for (const std::string& name : options_.variants) {
      absl::StatusOr<Server> server = StartVariant(*FindVariant(name), addresses_);
      results_.push_back({.variant = name, .first_error = server.status()});
      servers_.push_back(server.ok() ? std::move(*server) : Server{});
    }
  }

  void Take(const Turn& turn) {
    VariantResults& results = results_[turn.subject];
    const Variant& variant = *FindVariant(results.variant);
    const Load& cell = options_.cells[turn.load];
    if (!results.first_error.ok() || !Fits(variant, cell)) return;
    const uint64_t seed = options_.seed + static_cast<uint64_t>(turn.round);  // the same arrivals for all
    absl::StatusOr<Measurement> measured = RunCell(options_, variant, servers_[turn.subject], cell, seed);
    results.first_error.Update(measured.status());
    if (measured.ok()) results.rounds[cell].push_back(*measured);
  }

  std::vector<VariantResults> Finish() { return std::move(results_); }

 private:
  const Options& options_;
  std::vector<std::string> addresses_;
  std::vector<Server> leaves_;
  std::vector<Server> servers_;  // by variant, as results_
  std::vector<VariantResults> results_;
};

}  // namespace

double ExpectedSeconds(const Options& options) {
  double cells = 0;
  for (const std::string& name : options.variants) {
    for (const Load& cell : options.cells) cells += Fits(*FindVariant(name), cell) ? 1 : 0;
  }
  return cells * (options.seconds + kOverheadSeconds) * options.rounds;
}

absl::StatusOr<std::vector<VariantResults>> Measure(const Options& options, Session& session) {
  prctl(PR_SET_TIMERSLACK, 1);  // or each wait for a due request would end up to 50 us late
  Run run(options);
  if (absl::Status started = run.StartLeaves(); !started.ok()) return started;
  run.StartVariants();
  const RoundPlan plan{.rounds = options.rounds,
                       .loads = options.cells.size(),
                       .subjects = options.variants.size(),
                       .order = Order::kRotateByRound,
                       .stop = &session.stop()};
  const absl::Status ended = RunRounds(plan, [&](const Turn& turn) {
    session.Progress(absl::StrCat(RoundText(plan, turn), options.cells[turn.load].Name(), "  ",
                                  options.variants[turn.subject]));
    run.Take(turn);
    return absl::OkStatus();
  });
  if (!ended.ok()) session.Note("interrupted: the report is partial");
  return run.Finish();
}

std::string BusyPollNote() {
  absl::StatusOr<Listener> listener = Listen();
  absl::StatusOr<Fd> client = listener.ok() ? Connect(listener->address) : listener.status();
  absl::StatusOr<Fd> server = client.ok() ? Accept(listener->fd.get()) : client.status();
  char byte = 0;
  unsigned napi = 0;
  socklen_t size = sizeof(napi);
  if (!server.ok() || send(client->get(), "x", 1, 0) != 1 || recv(server->get(), &byte, 1, 0) != 1 ||
      getsockopt(server->get(), SOL_SOCKET, SO_INCOMING_NAPI_ID, &napi, &size) != 0) {
    return "SO_BUSY_POLL: SO_INCOMING_NAPI_ID cannot be read here";
  }
  if (napi == 0) {
    return "SO_BUSY_POLL: not honoured by loopback (a socket that has received has SO_INCOMING_NAPI_ID 0: no "
           "device queue to poll); epoll-busy can only be epoll-et";
  }
  return absl::StrCat("SO_BUSY_POLL: honoured, SO_INCOMING_NAPI_ID ", napi);
}

}  // namespace curtail::bench
