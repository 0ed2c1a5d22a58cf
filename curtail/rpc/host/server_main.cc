// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server_main.h"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include "curtail/base/cpus.h"
#include "curtail/base/log.h"
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

// A line on stdout for whoever started the process; where the log is JSON, a line of that.
void Announce(std::string_view what, const std::string& address) {
  if (LogsJson()) return Log(Severity::kInfo, Join(what, address), {{"address", address}});
  std::cout << what << address << "\n";
}

// Waits for the signal that ends the server. SIGHUP reads TLS keys again, and ends a server that has none.
std::string_view WaitForStop(std::string_view program, Server& server) {
  const sigset_t set = StopSignals();
  while (true) {
    int number = 0;
    sigwait(&set, &number);
    if (number == SIGTERM) return "SIGTERM";
    if (number == SIGINT) return "SIGINT";
    const absl::Status reloaded = server.ReloadTls();
    if (absl::IsFailedPrecondition(reloaded)) return "SIGHUP";
    if (reloaded.ok()) {
      Log(Severity::kInfo, "TLS: the keys were read again", {}, program);
    } else {
      Log(Severity::kError, Join("TLS: the keys stay: ", Message(reloaded)), {}, program);
    }
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
  for (const std::string& address : server.addresses()) Announce("listening on ", address);
  return internal::ServeAs("curtail", server, drain);
}

int internal::ServeAs(std::string_view program, Server& server, Nanos drain) {
  if (server.config().model.reception == Reception::kPoll && UsableCpus() == 1) {
    const std::string config = server.config().ToString();
    Log(Severity::kWarning,
        Join("oversubscribed: ", config, " polls, but it may use one CPU only; it will block"),
        {{"config", config}}, program);
  }
  if (!server.admin_address().empty()) Announce("admin on ", server.admin_address());
  if (!server.http_admin_address().empty()) Announce("HTTP admin on ", server.http_admin_address());
  std::cout.flush();
  if (const auto policy = server.Sample().policy; policy && !policy->note.empty()) {
    Log(Severity::kInfo, Join("note: ", policy->note), {}, program);
  }
  const std::string_view stopped_by = WaitForStop(program, server);
  Log(Severity::kInfo, Join("draining (", stopped_by, ")"), {{"signal", stopped_by}}, program);
  // A second signal ends the process at once, by its default action.
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  signal(SIGHUP, SIG_IGN);
  UnblockStopSignals();
  const absl::Status drained = server.Drain(Deadline::In(drain));
  if (!drained.ok()) Log(Severity::kError, Join("drain: ", Message(drained)), {}, program);
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
