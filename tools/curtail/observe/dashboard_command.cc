// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/dashboard_command.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/term/exit_code.h"
#include "curtail/term/interrupt.h"
#include "tools/curtail/observe/dashboard.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

constexpr Nanos kBetweenLooks = std::chrono::seconds(5);
constexpr pid_t kPidInContainer = 1;  // of a container's program

absl::Status Wrong(const std::string& flag, const std::string& value, const char* form) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", value, ": write it as ", form));
}

// "NAME=WORD,WORD" in two; none for any other text.
std::optional<std::pair<std::string, std::vector<std::string>>> NamedWords(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos) return std::nullopt;
  std::vector<std::string> words = absl::StrSplit(text.substr(equals + 1), ',');
  if (std::find(words.begin(), words.end(), "") != words.end()) return std::nullopt;
  return std::pair(text.substr(0, equals), std::move(words));
}

bool FindService(const std::vector<observe::DashboardService>& services, const std::string& name) {
  return std::ranges::count(services, name, &observe::DashboardService::name) > 0;
}

absl::Status NoService(const char* flag, const std::string& name,
                       const std::vector<observe::DashboardService>& services) {
  std::vector<std::string> names;
  for (const observe::DashboardService& service : services) names.push_back(service.name);
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": no --service is called ", name, internal::NamesHint(name, names)));
}

observe::DashboardService& ServiceNamed(const std::string& name,
                                        std::vector<observe::DashboardService>* services) {
  const auto found =
      std::find_if(services->begin(), services->end(), [&](const auto& s) { return s.name == name; });
  if (found != services->end()) return *found;
  services->emplace_back().name = name;
  return services->back();
}

// The addresses of a host, in order, without those that are there twice; none if no name server answers. With
// `numeric_only` none is asked, so a name has no answer either.
std::optional<std::vector<std::string>> LookUp(const Watched::Place& place, bool numeric_only) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = numeric_only ? AI_NUMERICHOST : 0;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &list);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, &freeaddrinfo);
  if (error == EAI_AGAIN || (numeric_only && error == EAI_NONAME)) return std::nullopt;
  std::vector<std::string> addresses;
  if (error != 0) return addresses;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    std::array<char, NI_MAXHOST> host;
    if (getnameinfo(at->ai_addr, at->ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      addresses.emplace_back(host.data());
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

std::string HostPort(const std::string& host, const std::string& port) {
  const bool v6 = host.find(':') != host.npos;
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]:" : ":", port);
}

// "leaf-0" of the place hdsearch-leaf-0:9464, since all of the page is of one application; "leaf-0:9464" if the host is that
// of other places, too. The page tells processes apart by their names.
std::string NameOf(const Watched& watched, const Watched::Place& place) {
  const std::string prefix = watched.application + "-";
  const std::string name =
      absl::StartsWith(place.host, prefix) ? place.host.substr(prefix.size()) : place.host;
  const auto places = std::count_if(watched.places.begin(), watched.places.end(),
                                    [&](const auto& other) { return other.host == place.host; });
  return places > 1 ? HostPort(name, place.port) : name;
}

ProcessState StateAt(const Watched& watched, const Watched::Place& place, const std::string& address) {
  ProcessState process;
  process.name = NameOf(watched, place);
  if (place.host != address) absl::StrAppend(&process.name, " ", address);
  process.service = place.service;
  process.state = "ready";
  process.pid = kPidInContainer;
  process.address = process.http_admin = HostPort(address, place.port);
  return process;
}

}  // namespace

absl::StatusOr<Watched> WatchedBy(const DashboardFlags& flags) {
  Watched watched{.application = flags.application};
  for (const std::string& text : flags.services) {
    const auto service = NamedWords(text);
    constexpr char kForm[] = "NAME=HOST:PORT,HOST:PORT";
    if (!service) return Wrong("--service", text, kForm);
    if (FindService(watched.services, service->first)) {
      return absl::InvalidArgumentError(absl::StrCat("--service ", service->first,
                                                     " is given twice; write --service ", service->first,
                                                     "=HOST:PORT,HOST:PORT"));
    }
    ServiceNamed(service->first, &watched.services);
    for (const std::string& address : service->second) {
      const size_t colon = address.rfind(':');
      const std::optional<double> port = curtail::ParseNumber(std::string_view(address).substr(colon + 1));
      if (colon == 0 || colon == address.npos || !port || *port < 1 || *port > 65535)
        return Wrong("--service", text, kForm);
      std::string host = address.substr(0, colon);
      if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
      watched.places.push_back(
          {.service = service->first, .host = std::move(host), .port = address.substr(colon + 1)});
    }
  }
  for (const std::string& text : flags.calls) {
    const auto calls = NamedWords(text);
    if (!calls) return Wrong("--calls", text, "NAME=NAME,NAME");
    // A program without HTTP admin has no --service; but one end of a call has.
    const bool known = FindService(watched.services, calls->first) ||
                       std::ranges::any_of(calls->second, [&](const auto& name) {
                         return FindService(watched.services, name);
                       });
    if (!known) return NoService("--calls", calls->first, watched.services);
    ServiceNamed(calls->first, &watched.services).calls = calls->second;
    for (const std::string& callee : calls->second) ServiceNamed(callee, &watched.services);
  }
  if (flags.entry.empty()) return watched;
  if (!FindService(watched.services, flags.entry)) return NoService("--entry", flags.entry, watched.services);
  ServiceNamed(flags.entry, &watched.services).entry = true;
  return watched;
}

UpState FindProcesses(Watched* watched) {
  UpState state{.application = watched->application, .entry = {}, .settings = {}, .processes = {}};
  bool answers = true;
  for (Watched::Place& place : watched->places) {
    if (auto found = LookUp(place, /*numeric_only=*/!answers)) {
      place.addresses = *std::move(found);
    } else {
      answers = false;
    }
    if (!place.addresses) continue;
    for (const std::string& address : *place.addresses)
      state.processes.push_back(StateAt(*watched, place, address));
    if (place.addresses->empty()) {
      ProcessState& none = state.processes.emplace_back();
      none.name = NameOf(*watched, place);
      none.service = place.service;
      none.state = "no pod";
    }
  }
  for (const observe::DashboardService& service : watched->services) {
    const bool placed = std::any_of(watched->places.begin(), watched->places.end(),
                                    [&](const auto& place) { return place.service == service.name; });
    if (placed) continue;
    ProcessState& other = state.processes.emplace_back();
    other.name = other.service = service.name;
    other.state = "external";
  }
  return state;
}

int RunDashboard(const DashboardFlags& flags, Console& console, const std::atomic<bool>& stop) {
  const auto fail = [&](const absl::Status& status, const char* hint) {
    if (LogsJson()) {
      Log(Severity::kError, Message(status));
    } else {
      console.Error(std::string(Message(status)), hint);
    }
    return kBadConfig;
  };
  absl::StatusOr<Watched> watched = WatchedBy(flags);
  if (!watched.ok()) return fail(watched.status(), "see curtail dashboard --help");
  const absl::StatusOr<std::unique_ptr<Dashboard>> dashboard =
      Dashboard::Start(flags.listen, watched->application, watched->services);
  if (!dashboard.ok()) return fail(dashboard.status(), "--listen takes another address");
  const std::string where = absl::StrCat("the dashboard is at http://", (*dashboard)->address(), "/");
  if (LogsJson()) {
    Log(Severity::kInfo, where, {{"address", (*dashboard)->address()}});
  } else {
    console.Print(where + "\n");
  }
  do {
    (*dashboard)->Update(FindProcesses(&*watched));
  } while (WaitUntil(Now() + kBetweenLooks, stop));
  return kOk;
}

Command AddDashboard(CLI::App& app) {
  const auto f = std::make_shared<DashboardFlags>();
  CLI::App* command = app.add_subcommand(
      "dashboard", "Show an application to a browser that others started, such as a cluster");
  command->add_option("APP", f->application, "Its name")->required();
  command->add_option("--listen", f->listen, "A port of this machine, or HOST:PORT")->capture_default_str();
  command
      ->add_option(
          "--service", f->services,
          "NAME=HOST:PORT,...: a service and its HTTP admin ports; a name may have several addresses")
      ->required()
      ->allow_extra_args(false);
  command
      ->add_option("--calls", f->calls,
                   "NAME=NAME,...: the services that a service calls; those without --service are not read")
      ->allow_extra_args(false);
  command->add_option("--entry", f->entry, "The service that clients call");
  command->footer(
      "Names are looked up every 5 s, so processes come and go. What curtail up starts has its own: "
      "--dashboard.\n"
      "curtail render starts it on a cluster.\n"
      "Example:\n"
      "  curtail dashboard shop --service front=shop-front:9464 --service "
      "leaf=shop-leaf-0:9464,shop-leaf-1:9464 "
      "\\\n"
      "                         --calls front=leaf --entry front");
  return {command, [f](const Invocation& given) { return RunDashboard(*f, given.console, given.stop); },
          /*keeps_log_format=*/true};
}

}  // namespace curtail::tool
