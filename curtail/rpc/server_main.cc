// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server_main.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "curtail/base/strings.h"
#include "curtail/exec/spin_budget.h"

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

int Usage(const char* program, bool asked) {
  (asked ? std::cout : std::cerr)
      << "usage: " << program << " [--listen ADDR]... [--config CONFIG] [--admin ADDR] [--drain SECONDS]\n"
      << "       [--max-threads N] [--fiber-stack KIB]\n"
      << "       [--tls-cert FILE --tls-key FILE [--tls-client-ca FILE]]\n"
      << "  --listen ADDR     HOST:PORT or unix:PATH; port 0 takes a free one (default 127.0.0.1:0)\n"
      << "  --config CONFIG   threading model and pool sizes (default SIB1)\n"
      << "  --admin ADDR      where `curtail switch` may change the config (default: nowhere)\n"
      << "  --drain SECONDS   how long requests in flight may take to finish after SIGTERM (default 10)\n"
      << "  --max-threads N   threads started; larger pools can be switched to later up to this (default "
         "64)\n"
      << "  --fiber-stack KIB the stack of each request in fiber models (default 256)\n"
      << "  --tls-cert FILE   speak TLS: the server's certificate (chain), PEM; --tls-key FILE: its private "
         "key\n"
      << "  --tls-client-ca FILE  serve only clients whose certificate these authorities vouch for\n"
      << "example: " << program << " --listen 0.0.0.0:8080 --config SDB1-16\n";
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

int ServerMain(int argc, char** argv, std::unique_ptr<Service> service) {
  BlockStopSignals();
  ServerOptions options;
  Nanos drain = kDefaultDrain;
  ServerTlsOptions tls;
  bool listen_given = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--help" || flag == "-h") return Usage(argv[0], true);
    static constexpr std::string_view kFlags[] = {"--listen",      "--config",      "--admin",
                                                  "--drain",       "--tls-cert",    "--tls-key",
                                                  "--max-threads", "--fiber-stack", "--tls-client-ca"};
    if (i + 1 == argc || std::find(std::begin(kFlags), std::end(kFlags), flag) == std::end(kFlags)) {
      Fail(argv[0], Join(flag, ": unknown flag, or its value is missing"));
      return Usage(argv[0], false);
    }
    const std::string value = argv[++i];
    if (flag == "--listen") {
      if (!listen_given) options.listen.clear();
      listen_given = true;
      options.listen.push_back(value);
    } else if (flag == "--admin") {
      options.admin = value;
    } else if (flag == "--tls-cert") {
      tls.certificate_file = value;
    } else if (flag == "--tls-key") {
      tls.key_file = value;
    } else if (flag == "--tls-client-ca") {
      tls.client_ca_file = value;
    } else if (flag == "--config") {
      absl::StatusOr<Config> config = Config::Parse(value);
      if (!config.ok()) return Fail(argv[0], Message(config.status()));
      options.config = *config;
    } else if (flag == "--max-threads") {
      if (!ParseInt(value, 1, 3 * kMaxPoolSize, &options.max_threads)) {
        return Fail(argv[0], Join("--max-threads ", value, ": write a number from 1 to ", 3 * kMaxPoolSize));
      }
    } else if (flag == "--fiber-stack") {
      int kib = 0;
      if (!ParseInt(value, 16, 65536, &kib)) {
        return Fail(argv[0], Join("--fiber-stack ", value, ": write KiB from 16 to 65536"));
      }
      options.fiber_stack_bytes = static_cast<size_t>(kib) << 10;
    } else {
      char* end = nullptr;
      const double seconds = std::strtod(value.c_str(), &end);
      if (value.empty() || *end != '\0' || !(seconds >= 0 && seconds <= 86400)) {
        return Fail(argv[0], Join("--drain ", value, ": write seconds from 0 to 86400"));
      }
      drain = std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(seconds));
    }
  }
  if (!tls.certificate_file.empty() || !tls.key_file.empty() || !tls.client_ca_file.empty()) {
    absl::StatusOr<std::shared_ptr<const ServerTls>> loaded = ServerTls::Load(tls);
    if (!loaded.ok()) return Fail(argv[0], Message(loaded.status()));
    options.tls = *std::move(loaded);
  }
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options), std::move(services));
  if (!server.ok()) return Fail(argv[0], Message(server.status()));
  return ServeUntilSignal(**server, drain);
}

}  // namespace curtail
