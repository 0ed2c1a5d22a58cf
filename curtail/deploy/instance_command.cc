// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/instance_command.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace curtail::deploy {
namespace {

std::string UserName() {
  const passwd* user = getpwuid(geteuid());
  return user == nullptr ? absl::StrCat(geteuid()) : std::string(user->pw_name);
}

// The most that all words of a command come to; Linux takes no more than 2 MiB.
constexpr size_t kMaxCommandBytes = 1u << 20;

// Replaces every ${name} in `word`. Takes the bytes of the result from `*left`.
absl::StatusOr<std::string> Expand(const std::string& word,
                                   const std::map<std::string, std::string>& variables, size_t* left) {
  const auto too_long = [&] {
    return absl::InvalidArgumentError(absl::StrCat("'", word.substr(0, 60),
                                                   "...': the command has more than ", kMaxCommandBytes,
                                                   " bytes once its ${...} are replaced"));
  };
  std::string out;
  size_t from = 0;
  for (size_t at; (at = word.find("${", from)) != std::string::npos;) {
    out.append(word, from, at - from);
    const size_t end = word.find('}', at);
    if (end == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("'", word, "' has a ${ without a }"));
    }
    const std::string name = word.substr(at + 2, end - at - 2);
    const auto found = variables.find(name);
    if (found == variables.end()) {
      std::vector<std::string> names;
      for (const auto& [known, value] : variables) names.push_back(known);
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "': there is no ${", name, "}; there are ", absl::StrJoin(names, ", ")));
    }
    out += found->second;
    if (out.size() > *left) return too_long();
    from = end + 1;
  }
  out.append(word, from);
  if (out.size() > *left) return too_long();
  *left -= out.size();
  return out;
}

// ${address}, and for a TCP address its parts.
void SetAddress(const std::string& listen, std::map<std::string, std::string>* variables) {
  (*variables)["address"] = std::string(absl::StripPrefix(listen, "unix:"));
  const size_t colon = listen.rfind(':');
  if (listen.starts_with("unix:")) return;
  (*variables)["host"] = listen.substr(0, std::min(colon, listen.size()));
  (*variables)["port"] = colon == std::string::npos ? listen : listen.substr(colon + 1);
}

void SetNumbers(const ServiceSpec& service, int instance, std::map<std::string, std::string>* variables) {
  const bool one_shard =
      service.shards == 1;  // of which there may be more replicas now than the topology has
  (*variables)["shard"] = absl::StrCat(one_shard ? 0 : instance / service.replicas);
  (*variables)["replica"] = absl::StrCat(one_shard ? instance : instance % service.replicas);
  (*variables)["instance"] = absl::StrCat(instance);
}

absl::StatusOr<std::vector<std::string>> ExpandAll(const std::vector<std::string>& words,
                                                   const std::map<std::string, std::string>& variables) {
  std::vector<std::string> expanded;
  size_t left = kMaxCommandBytes;
  for (const std::string& word : words) {
    absl::StatusOr<std::string> text = Expand(word, variables, &left);
    if (!text.ok()) return text.status();
    expanded.push_back(*std::move(text));
  }
  return expanded;
}

// The flags of `setup`, in one order for processes and for templates.
void AddFlags(const ServiceSpec& service, const InstanceSetup& setup, std::vector<std::string>* argv) {
  std::vector<ServiceFlag> flags;
  for (const auto& [name, value] :
       {std::pair("--config", &setup.config), std::pair("--policy", &setup.policy),
        std::pair("--profile", &setup.profile), std::pair("--listen", &setup.listen),
        std::pair("--admin", &setup.admin), std::pair("--http-admin", &setup.http_admin)}) {
    if (!value->empty()) flags.push_back({.name = name, .value = *value});
  }
  flags.insert(flags.end(), setup.flags.begin(), setup.flags.end());
  if (setup.memory_only) flags.push_back({.name = "--memory"});
  for (const ServiceFlag& flag : flags) {
    if (service.Says(flag.name)) continue;
    argv->push_back(flag.condition + flag.name);
    if (!flag.value) continue;
    if (setup.joined) absl::StrAppend(&argv->back(), "=", *flag.value);
    else argv->push_back(*flag.value);
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CommandOf(const Topology& topology, const ServiceSpec& service,
                                                   int instance, const Addresses& addresses,
                                                   const InstanceSetup& setup) {
  if (absl::Status own = topology.Check(); !own.ok()) return own;
  std::map<std::string, std::string> variables = topology.Settings();
  SetNumbers(service, instance, &variables);
  variables["config"] = setup.config;
  variables["user"] = setup.user.empty() ? UserName() : setup.user;
  SetAddress(setup.listen, &variables);
  // Those that it calls: a program of its own kind names them in `run`.
  const auto wanted_of = [&](const Wiring& call) -> std::vector<std::string> {
    const auto found = addresses.find(call.service);
    if (found == addresses.end()) return {};
    if (call.own) return {found->second.at(static_cast<size_t>(instance))};
    return found->second;
  };
  // Where it finds all that there are, and will be.
  const auto target_of = [&](const Wiring& call) {
    const ServiceSpec* callee = topology.Find(call.service);
    const bool registered = !setup.registry.empty() && !call.own && callee->ScalesWhileServing();
    return registered ? absl::StrCat("file:", RegisteredAt(setup.registry, call.service))
                      : absl::StrJoin(wanted_of(call), ",");
  };
  for (const Wiring& call : service.calls) {
    variables[absl::StrCat(call.name(), ".address")] = absl::StrJoin(wanted_of(call), ",");
    variables[absl::StrCat(call.name(), ".target")] = target_of(call);
  }
  absl::StatusOr<std::vector<std::string>> expanded =
      ExpandAll(setup.failover ? service.failover : service.run, variables);
  if (!expanded.ok() || setup.failover) return expanded;
  std::vector<std::string> argv = *std::move(expanded);
  const auto add = [&argv](const std::string& flag, const std::string& value) {
    if (!value.empty()) argv.insert(argv.end(), {flag, value});
  };
  for (const Wiring& call : service.calls) {
    const std::vector<std::string> wanted = wanted_of(call);
    if (wanted.empty() || (call.named && !service.IsHosted())) continue;
    if (call.named) {
      add(call.flag, absl::StrCat(call.name(), "=", target_of(call)));
    } else {
      for (const std::string& address : wanted) add(call.flag, address);
    }
  }
  argv.insert(argv.end(), setup.more_flags.begin(), setup.more_flags.end());
  if (service.IsHosted()) AddFlags(service, setup, &argv);
  return argv;
}

absl::StatusOr<std::vector<std::string>> WrapperOf(const ServiceSpec& service, int instance) {
  std::map<std::string, std::string> variables;
  SetNumbers(service, instance, &variables);
  return ExpandAll(service.wrapper, variables);
}

absl::StatusOr<std::vector<std::string>> PrepareCommand(const Topology& topology, const std::string& entry) {
  std::map<std::string, std::string> variables = topology.Settings();
  variables["entry"] = entry;
  return ExpandAll(topology.prepare, variables);
}

std::string InstanceName(const ServiceSpec& service, int instance) {
  if (service.instances() == 1 && instance == 0) return service.name;
  if (service.shards == 1) return absl::StrCat(service.name, "-0.", instance);
  if (service.replicas == 1) return absl::StrCat(service.name, "-", instance);
  return absl::StrCat(service.name, "-", instance / service.replicas, ".", instance % service.replicas);
}

std::string RegisteredAt(const std::string& registry, const std::string& service) {
  return absl::StrCat(registry, "/", service, ".addresses");
}

}  // namespace curtail::deploy
