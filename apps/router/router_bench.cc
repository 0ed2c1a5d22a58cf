// SPDX-License-Identifier: Apache-2.0
//
// router_bench: what a get through the router costs beside what it is made of.
//
// One process holds a mid-tier and its leaves, each leaf has a memcached process, and a client asks one get
// after the other. Beside it, in slices that take turns so that what disturbs the machine disturbs all: a
// bare get from memcached by one thread that sends and reads (no pool, no parser, no RPC), and a null call
// through a mid-tier that calls a leaf, both with nothing to do. The ratio is that of the router's p50 to the
// sum of these two; a round is one slice of each kind, and its median over the rounds is what counts. Exit
// code 99 if it is above --limit.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/router/leaf_service.h"
#include "apps/router/router_service.h"
#include "apps/router/workload.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/round.h"
#include "bench/common/spread.h"
#include "curtail/base/histogram.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/rpc/server.h"
#include "curtail/store/store_testing.h"

namespace {

using namespace curtail;
using namespace curtail::router;

constexpr Nanos kPatience = std::chrono::seconds(20);
constexpr Method<GetRequest, GetReply> kNullFront{"/bench.Front/Null"};
constexpr Method<GetRequest, GetReply> kNullBack{"/bench.Back/Null"};

struct BenchFlags : bench::CommonFlags {
  std::vector<std::string> configs = {"SIB1", "SDB1-4", "FIB1"};
  int replicas = 2;
  int shards = 2;
  uint64_t records = 1000;
  uint64_t value_bytes = 1000;
  double slice_s = 0.4;
  double limit = 1.3;
};

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "router_bench: " << status << "\n";
  std::exit(1);
}

// Two services that do nothing, the front by calling the back.
class NullService final : public Service {
 public:
  explicit NullService(Channel* back) : back_(back) {}
  std::string_view FullName() const override { return back_ == nullptr ? "bench.Back" : "bench.Front"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Null",
             .handler = curtail::internal::UnaryHandler<GetRequest, GetReply>(
                 [this](Context& ctx, const GetRequest& in, GetReply* out) { return Null(ctx, in, out); })}};
  }

 private:
  absl::Status Null(Context& ctx, const GetRequest& in, GetReply* out) {
    if (back_ == nullptr) return absl::OkStatus();
    auto replies = ctx.Broadcast(std::span<Channel* const>(&back_, 1), kNullBack, in);
    if (!replies[0].ok()) return replies[0].status();
    out->Swap(&*replies[0]);
    return absl::OkStatus();
  }

  Channel* const back_;
};

std::unique_ptr<Server> Serve(const std::string& config, std::unique_ptr<Service> service) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  ServerOptions options;
  options.config = *Config::Parse(config);
  auto server = Server::Start(std::move(options), std::move(services));
  Require(server.status());
  return *std::move(server);
}

// The measurements under one threading model.
class Setup {
 public:
  Setup(const BenchFlags& flags, const std::string& config, std::deque<MemcachedProcess>& memcacheds) {
    std::vector<Channel*> leaves;
    for (MemcachedProcess& memcached : memcacheds) {
      servers_.push_back(Serve(config, std::make_unique<LeafService>(
                                           *StoreAddress::Parse(memcached.address()), MemcachedOptions{})));
      leaves.push_back(Connect(&client_));
    }
    auto replicas = ReplicaSet::Create(
        std::move(leaves),
        {.replicas = flags.replicas, .get_timeout = kPatience, .write_timeout = kPatience});
    Require(replicas.status());
    routing_.replicas = *std::move(replicas);
    servers_.push_back(Serve(config, MakeRouterService(routing_)));
    router_ = Connect(&front_client_);
    servers_.push_back(Serve(config, std::make_unique<NullService>(nullptr)));
    Channel* const back = Connect(&client_);
    servers_.push_back(Serve(config, std::make_unique<NullService>(back)));
    null_ = Connect(&front_client_);
  }
  ~Setup() {
    while (!servers_.empty()) servers_.pop_back();  // callers before the servers that they call
  }

  Channel* router() { return router_; }
  Channel* null() { return null_; }
  Channel* leaf() { return channels_.front().get(); }

 private:
  Channel* Connect(Client* client) {
    channels_.push_back(std::make_unique<Channel>(client, servers_.back()->addresses()[0]));
    return channels_.back().get();
  }

  Client client_, front_client_;
  std::deque<std::unique_ptr<Channel>> channels_;
  Routing routing_;
  std::vector<std::unique_ptr<Server>> servers_;
  Channel* router_ = nullptr;
  Channel* null_ = nullptr;
};

// A get as short as it can be.
class BareGet {
 public:
  explicit BareGet(const std::string& address) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{.sun_family = AF_UNIX};
    std::strncpy(name.sun_path, address.c_str() + 5, sizeof name.sun_path - 1);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
      Require(absl::UnavailableError("cannot connect to " + address));
    }
  }
  ~BareGet() { close(fd_); }
  BareGet(const BareGet&) = delete;
  BareGet& operator=(const BareGet&) = delete;

  void operator()(const std::string& key, size_t value_bytes) {
    const std::string command = "mg " + key + " v\r\n";
    const size_t whole = Join("VA ", value_bytes, "\r\n").size() + value_bytes + 2;
    if (send(fd_, command.data(), command.size(), MSG_NOSIGNAL) < 0) Require(absl::InternalError("send"));
    answer_.resize(whole);
    for (size_t got = 0; got < whole;) {
      const ssize_t n = recv(fd_, answer_.data() + got, whole - got, 0);
      if (n <= 0 || (got == 0 && answer_[0] != 'V')) Require(absl::NotFoundError(key));
      got += static_cast<size_t>(n);
    }
  }

 private:
  const int fd_;
  std::string answer_;
};

struct Kind {
  std::string name;
  std::function<void(uint64_t)> call;  // of a number
  std::vector<double> p50_us = {};     // by round
};

double P50OfSlice(const Kind& kind, double seconds, uint64_t* number) {
  Histogram histogram;
  const Deadline end =
      Deadline::In(std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(seconds)));
  for (TimePoint from = Now(); from < end.when();) {
    kind.call((*number)++);
    const TimePoint to = Now();
    histogram.Record(to - from);
    from = to;
  }
  return static_cast<double>(histogram.Percentile(50).count()) / 1e3;
}

void CallGet(Channel* channel, std::string_view path, const std::string& key, size_t value_bytes) {
  GetRequest request;
  GetReply reply;
  request.set_key(key);
  Context ctx(kPatience);
  Require(channel->Call(ctx, path, request, &reply));
  if (reply.value().size() != value_bytes) Require(absl::NotFoundError(key));
}

struct Outcome {
  std::string config;
  std::vector<Kind> kinds;
  std::vector<double> ratios;  // by round
};

Outcome Measure(const BenchFlags& flags, const std::string& config, std::deque<MemcachedProcess>& memcacheds,
                bench::Session& session) {
  Setup setup(flags, config, memcacheds);
  std::vector<std::string> keys, of_first;  // all, and those of the first leaf
  for (uint64_t i = 0; i < flags.records; ++i) {
    keys.push_back(KeyOf(Mix{}, i));
    if (ShardOf(HashOf(keys.back()), static_cast<size_t>(flags.shards)) == 0) of_first.push_back(keys.back());
    SetRequest request;
    request.set_key(keys.back());
    request.set_value(ValueOf(keys.back(), 0, flags.value_bytes));
    SetReply reply;
    Context ctx(kPatience);
    Require(Router::Stub(setup.router()).Set(ctx, request, &reply));
  }
  BareGet bare(memcacheds.front().address());
  const auto some = [](const std::vector<std::string>& of, uint64_t n) { return of[n * 7919 % of.size()]; };
  Outcome outcome{.config = config};
  outcome.kinds = {
      {"bare memcached get", [&](uint64_t n) { bare(some(of_first, n), flags.value_bytes); }},
      {"two null hops", [&](uint64_t n) { CallGet(setup.null(), kNullFront.path, some(keys, n), 0); }},
      {"leaf get, one hop",
       [&](uint64_t n) { CallGet(setup.leaf(), Store::kGet.path, some(of_first, n), flags.value_bytes); }},
      {"router get",
       [&](uint64_t n) { CallGet(setup.router(), Router::kGet.path, some(keys, n), flags.value_bytes); }},
  };
  uint64_t number = 0;
  for (const Kind& kind : outcome.kinds) P50OfSlice(kind, flags.slice_s, &number);  // warm
  const bench::RoundPlan plan{
      .rounds = flags.rounds, .subjects = outcome.kinds.size(), .stop = &session.stop()};
  const absl::Status ended = bench::RunRounds(plan, [&](const bench::Turn& turn) {
    Kind& kind = outcome.kinds[turn.subject];
    session.Progress(absl::StrCat(bench::RoundText(plan, turn), config, "  ", kind.name));
    kind.p50_us.push_back(P50OfSlice(kind, flags.slice_s, &number));
    return absl::OkStatus();
  });
  for (size_t i = 0; i < outcome.kinds.back().p50_us.size(); ++i) {
    outcome.ratios.push_back(outcome.kinds[3].p50_us[i] /
                             (outcome.kinds[0].p50_us[i] + outcome.kinds[1].p50_us[i]));
  }
  if (!ended.ok()) session.Note("interrupted: the report is partial");
  return outcome;
}

void AddTo(const Outcome& outcome, bench::Table* table) {
  const auto least = [](const bench::Spread& s) { return bench::Short(s.min); };
  const auto most = [](const bench::Spread& s) { return bench::Short(s.max); };
  const auto add = [&](const std::string& what, const std::vector<double>& rounds) {
    table->Add({{"config", "config", outcome.config},
                {"what", "p50 in us of", what},
                {"p50_us_or_ratio", "median", rounds},
                {"", "min", rounds, least},
                {"", "max", rounds, most}});
  };
  for (const Kind& kind : outcome.kinds) add(kind.name, kind.p50_us);
  add("router / (memcached + null hops)", outcome.ratios);
}

int Run(const BenchFlags& flags) {
  bench::Session session(flags);
  const bench::Machine machine = bench::LookAtMachine();
  session.Note(bench::ToString(machine));
  const TempDir dir;
  std::deque<MemcachedProcess> memcacheds;
  for (int i = 0; i < flags.shards * flags.replicas; ++i) {
    memcacheds.emplace_back(dir.File("m" + std::to_string(i)));
  }
  bench::Table table("results", 2);
  bool failed = false;
  for (const std::string& config : flags.configs) {
    if (session.stop()) break;
    const Outcome outcome = Measure(flags, config, memcacheds, session);
    AddTo(outcome, &table);
    failed = failed || bench::SpreadOf(outcome.ratios).median > flags.limit;
  }
  bench::Report report("router", flags, machine);
  report.Set("slice_s", flags.slice_s).Set("value_bytes", flags.value_bytes).Set("limit", flags.limit);
  report.Add(std::move(table)).Say(failed ? absl::StrFormat("a ratio is above %.2f", flags.limit) : "");
  return session.Finish("router_bench", report, absl::OkStatus(), failed ? kThreshold : kOk);
}

}  // namespace

int main(int argc, char** argv) {
  BenchFlags flags;
  flags.rounds = 7;
  CLI::App app("What a get through the router costs beside what it is made of.", "router_bench");
  app.add_option("--configs", flags.configs, "Threading models of all servers")->delimiter(',');
  app.add_option("--shards", flags.shards)->check(CLI::Range(1, 16))->capture_default_str();
  app.add_option("--replicas", flags.replicas)->check(CLI::Range(1, 4))->capture_default_str();
  app.add_option("--records", flags.records)->check(CLI::Range(100, 1000000))->capture_default_str();
  app.add_option("--value-bytes", flags.value_bytes)->check(CLI::Range(16, 1 << 20))->capture_default_str();
  app.add_option("--slice", flags.slice_s, "Seconds")->check(CLI::Range(0.001, 60.0))->capture_default_str();
  app.add_option("--limit", flags.limit, "Of the ratio; above it the exit code is 99")->capture_default_str();
  bench::AddCommonFlags(app, &flags, {});
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags)) return *code;
  for (const std::string& config : flags.configs) {
    if (const auto parsed = Config::Parse(config); !parsed.ok()) {
      return bench::Fail("router_bench", parsed.status());
    }
  }
  return Run(flags);
}
