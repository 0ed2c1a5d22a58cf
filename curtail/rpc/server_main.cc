// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server_main.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/adapt/policy_kind.h"
#include "curtail/base/strings.h"
#include "curtail/exec/spin_budget.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail {
namespace {

constexpr int kBadConfiguration = 104;
constexpr Nanos kDefaultDrain = std::chrono::seconds(10);

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// `takes_args`: the service is made from ServiceArgs.
int Usage(const char* program, bool takes_args, bool asked) {
  (asked ? std::cout : std::cerr)
      << "usage: " << program << (takes_args ? " [--leaf ADDR]... [WORD]..." : "")
      << " [--listen ADDR]... [--config CONFIG] [--admin ADDR] [--drain SECONDS]\n"
      << "       [--policy POLICY [--profile FILE [--any-machine]] [--slo MS]]\n"
      << "       [--max-threads N] [--fiber-stack KIB]\n"
      << "       [--tls-cert FILE --tls-key FILE [--tls-client-ca FILE]]\n"
      << (takes_args ? "  --leaf ADDR       a server that this one calls\n" : "")
      << "  --listen ADDR     HOST:PORT or unix:PATH; port 0 takes a free one (default 127.0.0.1:0)\n"
      << "  --config CONFIG   threading model and pool sizes (default SIB1)\n"
      << "  --policy POLICY   changes the config by the load (default: nothing does):\n"
      << PolicyHelp("                    ")
      << "  --profile FILE    what the policy goes by: a profile of this service and machine; "
      << PolicyThatUses(ProfileUse::kOptional) << " needs none\n"
      << "  --any-machine     take a profile of another machine, too\n"
      << "  --slo MS          the p99 that a policy must not endanger by trying other configs (default 10)\n"
      << "  --admin ADDR      where `curtail switch` may change the config (default: nowhere)\n"
      << "  --drain SECONDS   how long requests in flight may take to finish after SIGTERM (default 10)\n"
      << "  --max-threads N   threads started; larger pools can be switched to later up to this (default "
         "64)\n"
      << "  --fiber-stack KIB the stack of each request in fiber models (default 256)\n"
      << "  --tls-cert FILE   speak TLS: the server's certificate (chain), PEM; --tls-key FILE: its private "
         "key\n"
      << "  --tls-client-ca FILE  serve only clients whose certificate these authorities vouch for\n"
      << "example: " << program << " --listen 0.0.0.0:8080 --config SDB1-16\n"
      << "         " << program << " --listen 0.0.0.0:8080 --policy online --slo 5\n";
  return asked ? 0 : kBadConfiguration;
}

int Fail(const char* program, std::string_view message) {
  std::cerr << program << ": " << message << "\n";
  return kBadConfiguration;
}

bool ParseInt(std::string_view text, int least, int most, int* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= least && *value <= most;
}

struct Flags {
  ServerOptions server;
  ServerTlsOptions tls;
  Nanos drain = kDefaultDrain;
  bool listen_given = false;
  std::vector<std::string> leaves;
  std::vector<std::string> words;
};

bool TakesValue(std::string_view flag) {
  static constexpr std::string_view kFlags[] = {
      "--listen",      "--config",   "--admin",   "--drain",       "--policy",        "--profile", "--slo",
      "--max-threads", "--tls-cert", "--tls-key", "--fiber-stack", "--tls-client-ca", "--leaf"};
  return std::find(std::begin(kFlags), std::end(kFlags), flag) != std::end(kFlags);
}

absl::Status Wrong(std::string_view flag, std::string_view value, std::string_view right) {
  return absl::InvalidArgumentError(Join(flag, " ", value, ": write ", right));
}

// Whether `text` is a number of at least `least` and at most `most`.
bool ParseReal(const std::string& text, double least, double most, double* value) {
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && *value >= least && *value <= most;
}

absl::Status SetNumber(std::string_view flag, const std::string& value, Flags* flags) {
  using std::chrono::duration_cast;
  double real = 0;
  int whole = 0;
  if (flag == "--drain") {
    if (!ParseReal(value, 0, 86400, &real)) return Wrong(flag, value, "seconds from 0 to 86400");
    flags->drain = duration_cast<Nanos>(std::chrono::duration<double>(real));
  } else if (flag == "--slo") {
    if (!ParseReal(value, 0.001, 3.6e6, &real))
      return Wrong(flag, value, "milliseconds from 0.001 to 3600000");
    flags->server.slo = duration_cast<Nanos>(std::chrono::duration<double, std::milli>(real));
  } else if (flag == "--max-threads") {
    if (!ParseInt(value, 1, 3 * kMaxPoolSize, &whole)) {
      return Wrong(flag, value, Join("a number from 1 to ", 3 * kMaxPoolSize));
    }
    flags->server.max_threads = whole;
  } else {
    if (!ParseInt(value, 16, 65536, &whole)) return Wrong(flag, value, "KiB from 16 to 65536");
    flags->server.fiber_stack_bytes = static_cast<size_t>(whole) << 10;
  }
  return absl::OkStatus();
}

// REQUIRES: TakesValue(flag).
absl::Status Set(std::string_view flag, const std::string& value, Flags* flags) {
  ServerOptions& server = flags->server;
  if (flag == "--listen") {
    if (!std::exchange(flags->listen_given, true)) server.listen.clear();
    server.listen.push_back(value);
  } else if (flag == "--config") {
    absl::StatusOr<Config> config = Config::Parse(value);
    if (!config.ok()) return config.status();
    server.config = *config;
  } else if (flag == "--admin") {
    server.admin = value;
  } else if (flag == "--leaf") {
    const absl::Status known = internal::Address::ResolveAll(value).status();
    if (absl::IsInvalidArgument(known)) return known;
    flags->leaves.push_back(value);
  } else if (flag == "--policy") {
    server.policy = value;
  } else if (flag == "--profile") {
    server.profile = value;
  } else if (flag == "--tls-cert") {
    flags->tls.certificate_file = value;
  } else if (flag == "--tls-key") {
    flags->tls.key_file = value;
  } else if (flag == "--tls-client-ca") {
    flags->tls.client_ca_file = value;
  } else {
    return SetNumber(flag, value, flags);
  }
  return absl::OkStatus();
}

}  // namespace

void BlockStopSignals() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int ServeUntilSignal(Server& server, Nanos drain) {
  if (server.config().model.reception == Reception::kPoll && UsableCpus() == 1) {
    std::cerr << "oversubscribed: " << server.config().ToString()
              << " polls, but there is one CPU only; it will block\n";
  }
  for (const std::string& address : server.addresses()) std::cout << "listening on " << address << "\n";
  if (!server.admin_address().empty()) std::cout << "admin on " << server.admin_address() << "\n";
  std::cout.flush();
  if (const auto policy = server.Sample().policy; policy && !policy->note.empty()) {
    std::cerr << "note: " << policy->note << "\n";
  }
  const sigset_t set = StopSignals();
  int signal_number = 0;
  sigwait(&set, &signal_number);
  std::cerr << "draining (" << (signal_number == SIGTERM ? "SIGTERM" : "SIGINT") << ")\n";
  // A second signal ends the process at once, by its default action.
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  const absl::Status drained = server.Drain(Deadline::In(drain));
  if (!drained.ok()) std::cerr << "drain: " << Message(drained) << "\n";
  // A thread that is stuck in a handler cannot be joined: leave without unwinding.
  std::cout.flush();
  if (absl::IsAborted(drained)) std::_Exit(1);
  return 0;
}

namespace {

// Reads the command line; returns the exit code if the program ends here.
std::optional<int> ReadFlags(int argc, char** argv, bool takes_args, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const bool known = TakesValue(flag) && (takes_args || flag != "--leaf");
    if (flag == "--help" || flag == "-h") return Usage(argv[0], takes_args, true);
    if (flag == "--any-machine") {
      flags->server.any_machine = true;
    } else if (takes_args && !flag.empty() && flag[0] != '-') {
      flags->words.emplace_back(flag);
    } else if (!known || i + 1 == argc) {
      Fail(argv[0], Join(flag, known ? ": its value is missing" : ": unknown flag"));
      return Usage(argv[0], takes_args, false);
    } else if (absl::Status set = Set(flag, argv[++i], flags); !set.ok()) {
      return Fail(argv[0], Message(set));
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<Server>> Start(Flags flags, std::unique_ptr<Service> service) {
  const ServerTlsOptions& tls = flags.tls;
  if (!tls.certificate_file.empty() || !tls.key_file.empty() || !tls.client_ca_file.empty()) {
    absl::StatusOr<std::shared_ptr<const ServerTls>> loaded = ServerTls::Load(tls);
    if (!loaded.ok()) return loaded.status();
    flags.server.tls = *std::move(loaded);
  }
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  return Server::Start(std::move(flags.server), std::move(services));
}

int ServeMade(int argc, char** argv, bool takes_args,
              const std::function<MadeService(const ServiceArgs&)>& make) {
  BlockStopSignals();
  Flags flags;
  if (const std::optional<int> code = ReadFlags(argc, argv, takes_args, &flags)) return *code;
  Client client;
  std::deque<Channel> leaves;
  ServiceArgs args{.leaves = {}, .words = flags.words};
  for (const std::string& address : flags.leaves)
    args.leaves.push_back(&leaves.emplace_back(&client, address));
  MadeService service = make(args);
  if (!service.ok()) return Fail(argv[0], Message(service.status()));
  absl::StatusOr<std::unique_ptr<Server>> server = Start(flags, *std::move(service));
  if (!server.ok()) return Fail(argv[0], Message(server.status()));
  return ServeUntilSignal(**server, flags.drain);
}

}  // namespace

int ServerMain(int argc, char** argv, const std::function<MadeService(const ServiceArgs&)>& make) {
  return ServeMade(argc, argv, true, make);
}

int ServerMain(int argc, char** argv, std::unique_ptr<Service> service) {
  return ServeMade(argc, argv, false, [&](const ServiceArgs&) { return std::move(service); });
}

}  // namespace curtail
