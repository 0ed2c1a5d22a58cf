// SPDX-License-Identifier: Apache-2.0
//
// The changes of a whole topology; Set(), which reads a value as the file has it, is in topology.cc.
#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "curtail/base/internal/closest.h"
#include "curtail/deploy/internal/address_form.h"
#include "curtail/deploy/internal/command_flags.h"
#include "curtail/deploy/link/link.h"
#include "curtail/deploy/topology.h"
#include "curtail/fence/fence.h"
#include "curtail/observe/trace/trace_exporter.h"

namespace curtail::deploy {

absl::Status Topology::Scale() {
  if (scale.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        application,
        " has no key scale in its topology, which --scale alone sets; --scale N is for N instances"));
  }
  for (const auto& [name, value] : scale) {
    if (absl::Status set = Set(name, value); !set.ok()) return set;
  }
  return Check();
}

absl::Status Topology::Replicate(int count) {
  bool any = false;
  for (ServiceSpec& s : services) {
    if (!s.scales || s.shards != 1) continue;
    s.replicas = count;
    any = true;
  }
  if (any) return Check();
  return absl::FailedPreconditionError(
      absl::StrCat(application, " has no service that scales (scales: true in its topology, and no shards)"));
}

absl::Status Topology::BringIn(std::string_view store) {
  // Other programs that services call, and that are no curtail services. Replicas may call each other.
  std::vector<std::string> stores;
  bool any = false;
  for (ServiceSpec& s : services) {
    const bool calls_others = std::any_of(s.calls.begin(), s.calls.end(),
                                          [&](const Wiring& call) { return call.service != s.name; });
    if (s.IsHosted() || calls_others) continue;
    stores.push_back(s.name);
    if (s.replicas == 0 && (store == s.name || store == kAllStores)) s.replicas = 1, any = true;
  }
  if (!any && std::find(stores.begin(), stores.end(), store) == stores.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--stores ", std::string(store), ": ", application, " has ",
        stores.empty() ? "no stores" : absl::StrCat("the stores ", absl::StrJoin(stores, ", "))));
  }
  return absl::OkStatus();
}

absl::Status Topology::LeaveOutAbsent() {
  if (entry().instances() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(entry().name, " is what clients call: it needs a replica"));
  }
  const auto absent = [this](const Wiring& call) { return Find(call.service)->instances() == 0; };
  for (ServiceSpec& s : services) {
    std::erase_if(s.calls, absent);
    if (s.instances() > 0) continue;
    left_out_counts[absl::StrCat(s.name, ".shards")] = absl::StrCat(s.shards);
    left_out_counts[absl::StrCat(s.name, ".replicas")] = "0";
  }
  std::erase_if(services, [](const ServiceSpec& s) { return s.instances() == 0; });
  return absl::OkStatus();
}

void Topology::Give(std::string_view flag, std::string_view value) {
  for (ServiceSpec& s : services) {
    if (s.IsHosted() && !s.Says(flag)) s.run.insert(s.run.end(), {std::string(flag), std::string(value)});
  }
}

absl::Status Topology::Fence(std::string_view mode) {
  if (!ParseFenceMode(mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--fence ", std::string(mode), ": write off, on, dry-run or strict"));
  }
  Give("--fence", mode);
  return absl::OkStatus();
}

absl::Status Topology::TraceTo(std::string_view target) {
  if (const absl::Status parsed = observe::ParseTraceTarget(target).status(); !parsed.ok())
    return absl::InvalidArgumentError(absl::StrCat("--trace-to: ", parsed.message()));
  Give("--trace-to", target);
  return absl::OkStatus();
}

absl::Status Topology::MakeMonolith() {
  const ServiceSpec old = entry();
  if (!old.IsHosted()) {
    return absl::FailedPreconditionError(
        absl::StrCat(application, " cannot be a monolith: ", old.name, " is not a curtail service"));
  }
  ServiceSpec whole = old;
  whole.calls.clear();
  whole.secrets.clear();  // they share a folder
  whole.links.clear();
  whole.shards = whole.replicas = 1;
  whole.run = {old.run.front(), "--monolith"};
  std::vector<ServiceSpec> kept;
  std::set<std::string> outside = {old.name};  // what callers outside the process reach
  for (const ServiceSpec& s : services) {
    if (!s.IsHosted()) {
      ServiceSpec& other = kept.emplace_back(s);
      for (Wiring& call : other.calls) {
        if (!Find(call.service)->IsHosted()) continue;
        outside.insert(call.service);
        call.as = call.name();
        call.service = whole.name;
      }
      continue;
    }
    if (s.run.front() != old.run.front()) {
      return absl::FailedPreconditionError(absl::StrCat(application, " cannot be a monolith: ", s.name,
                                                        " is another program, ", s.run.front()));
    }
    if (!s.external.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(application, " cannot be a monolith: ", s.name, " runs elsewhere already"));
    }
    if (!s.keeps.empty()) whole.keeps = s.keeps;
    if (!s.entry) whole.cpu += s.cpu * s.instances();
    whole.scales = whole.scales && s.scales;
    if (s.instances() > 1) {
      whole.run.insert(whole.run.end(), {"--instances", absl::StrCat(s.name, "=", s.instances())});
    }
    const FlagValues before = FlagsOf(whole.run);
    for (const auto& flag : FlagsOf(s.run)) {
      const bool of_process = flag.first == "--service" || flag.first == "--shard";
      const bool known =
          std::ranges::find(before, flag.first, &FlagValues::value_type::first) != before.end();
      if (!of_process && !known) AddFlag(flag, &whole.run);
    }
    for (Wiring store : s.calls) {
      const bool known = std::any_of(whole.calls.begin(), whole.calls.end(),
                                     [&](const Wiring& w) { return w.service == store.service; });
      if (Find(store.service)->IsHosted() || known) continue;
      store.own = false;  // the process gives each instance its own
      whole.calls.push_back(std::move(store));
    }
  }
  for (const std::string& name : outside) whole.run.insert(whole.run.end(), {"--outside", name});
  // Behind the stores that it calls, before the programs that call it.
  const auto calls_it = [&](const ServiceSpec& s) {
    return std::any_of(s.calls.begin(), s.calls.end(),
                       [&](const Wiring& w) { return w.service == old.name; });
  };
  services.clear();
  std::copy_if(kept.begin(), kept.end(), std::back_inserter(services), std::not_fn(calls_it));
  services.push_back(std::move(whole));
  std::copy_if(kept.begin(), kept.end(), std::back_inserter(services), calls_it);
  return Check();
}

absl::Status Topology::Use(std::string_view service_and_addresses) {
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(service_and_addresses), absl::MaxSplits('=', 1));
  ServiceSpec* service = Find(parts[0]);
  const auto refuse = [](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("--use: ", why));
  };
  if (parts.size() != 2 || parts[1].empty()) {
    return refuse(absl::StrCat("'", std::string(service_and_addresses),
                               "' names no address; write SERVICE=ADDRESS,ADDRESS,..."));
  }
  if (service == nullptr) return refuse(NoService(parts[0]).message());
  std::vector<std::string> addresses = absl::StrSplit(parts[1], ',');
  for (const std::string& address : addresses) {
    if (const absl::Status form = CheckAddress(address); !form.ok()) return refuse(form.message());
  }
  if (addresses.size() != static_cast<size_t>(service->instances())) {
    return refuse(absl::StrCat(
        parts[0], " has ", service->instances(), service->instances() == 1 ? " instance" : " instances",
        ", and ", addresses.size(), addresses.size() == 1 ? " address was" : " addresses were", " given"));
  }
  service->external = std::move(addresses);
  return absl::OkStatus();
}

absl::Status Topology::Link(std::string_view caller_callee_and_link) {
  const std::vector<std::string> ends =
      absl::StrSplit(std::string(caller_callee_and_link), absl::MaxSplits('>', 1));
  const std::vector<std::string> parts = absl::StrSplit(ends.back(), absl::MaxSplits('=', 1));
  ServiceSpec* caller = Find(ends[0]);
  if (ends.size() != 2 || parts.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--link: '", std::string(caller_callee_and_link),
                     "' is not a link; write CALLER>SERVICE=delay=20ms,jitter=5ms,loss=0.1%,rate=10mbit"));
  }
  if (caller == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("--link: ", NoService(ends[0]).message()));
  caller->links[parts[0]] = parts[1];
  const absl::Status parsed = ParseLink(parts[1]).status();
  return parsed.ok() ? parsed : absl::InvalidArgumentError(absl::StrCat("--link: ", parsed.message()));
}

absl::Status Topology::InsertRelays() {
  for (size_t i = 0; i < services.size(); ++i) {
    for (const auto& [callee, link] : std::exchange(services[i].links, {})) {
      ServiceSpec& caller = services[i];
      const auto call = std::find_if(caller.calls.begin(), caller.calls.end(),
                                     [&, name = callee](const Wiring& w) { return w.name() == name; });
      if (call == caller.calls.end())
        return absl::InvalidArgumentError(absl::StrCat(caller.name, " has a link to ", callee,
                                                       ", which it does not call; leave the link out"));
      ServiceSpec relay;
      // The name of a group is not a part of this one's, which is another process.
      relay.name = absl::StrReplaceAll(absl::StrCat(caller.name, "-to-", callee), {{"+", "-"}});
      relay.run = {"curtail",    "relay", "--listen",
                   "${address}", "--to",  absl::StrCat("${", callee, ".address}"),
                   "--link",     link};
      relay.protocol = "tcp";
      relay.memory_mib = 8;
      relay.shards = Find(call->service)->shards;
      relay.replicas = Find(call->service)->replicas;
      relay.calls = {{.service = call->service, .flag = "--to", .named = true, .own = true, .as = callee}};
      Find(call->service)->scales = false;  // each instance has a relay, whose address callers keep
      call->as = callee;
      call->service = relay.name;
      services.insert(services.begin() + static_cast<std::ptrdiff_t>(i++), std::move(relay));
    }
  }
  return Check();
}

absl::Status Topology::Wrap(std::string_view service_and_words) {
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(service_and_words), absl::MaxSplits('=', 1));
  ServiceSpec* service = Find(parts[0]);
  if (service != nullptr && parts.size() == 2)
    service->wrapper = absl::StrSplit(parts[1], absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (service == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("--exec: ", NoService(parts[0]).message()));
  if (service->wrapper.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--exec: '", std::string(service_and_words),
                                                   "' names no program; write SERVICE=PROGRAM FLAGS..."));
  }
  return absl::OkStatus();
}

}  // namespace curtail::deploy
