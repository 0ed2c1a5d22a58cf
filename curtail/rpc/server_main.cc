// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server_main.h"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include "curtail/base/cpus.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

// Waits for the signal that ends the server. SIGHUP reads TLS keys again, and ends a server that has none.
std::string_view WaitForStop(Server& server) {
  const sigset_t set = StopSignals();
  while (true) {
    int number = 0;
    sigwait(&set, &number);
    if (number == SIGTERM) return "SIGTERM";
    if (number == SIGINT) return "SIGINT";
    const absl::Status reloaded = server.ReloadTls();
    if (absl::IsFailedPrecondition(reloaded)) return "SIGHUP";
    std::cerr << "TLS: "
              << (reloaded.ok() ? "the keys were read again" : Join("the keys stay: ", Message(reloaded)))
              << "\n";
  }
}

}  // namespace

void BlockStopSignals() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

void UnblockStopSignals() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

int ServeUntilSignal(Server& server, Nanos drain) {
  if (server.config().model.reception == Reception::kPoll && UsableCpus() == 1) {
    std::cerr << "oversubscribed: " << server.config().ToString()
              << " polls, but it may use one CPU only; it will block\n";
  }
  for (const std::string& address : server.addresses()) std::cout << "listening on " << address << "\n";
  if (!server.admin_address().empty()) std::cout << "admin on " << server.admin_address() << "\n";
  if (!server.http_admin_address().empty()) {
    std::cout << "HTTP admin on " << server.http_admin_address() << "\n";
  }
  std::cout.flush();
  if (const auto policy = server.Sample().policy; policy && !policy->note.empty()) {
    std::cerr << "note: " << policy->note << "\n";
  }
  const std::string_view stopped_by = WaitForStop(server);
  std::cerr << "draining (" << stopped_by << ")\n";
  // A second signal ends the process at once, by its default action.
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  signal(SIGHUP, SIG_IGN);
  UnblockStopSignals();
  const absl::Status drained = server.Drain(Deadline::In(drain));
  if (!drained.ok()) std::cerr << "drain: " << Message(drained) << "\n";
  // A thread that is stuck in a handler cannot be joined: leave without unwinding.
  std::cout.flush();
  if (absl::IsAborted(drained)) std::_Exit(1);
  return 0;
}

int ServerMain(int argc, char** argv, const std::function<MadeService(Env&)>& make,
               std::vector<const PolicyKind*> policies, std::vector<ServerInterceptor*> interceptors) {
  return internal::ServeOne(argc, argv, /*words=*/true, make, std::move(policies), std::move(interceptors));
}

int ServerMain(int argc, char** argv, std::unique_ptr<Service> service,
               std::vector<const PolicyKind*> policies, std::vector<ServerInterceptor*> interceptors) {
  return internal::ServeOne(
      argc, argv, /*words=*/false, [&service](Env&) -> MadeService { return std::move(service); },
      std::move(policies), std::move(interceptors));
}

}  // namespace curtail
