// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/topology.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "curtail/base/internal/closest.h"
#include "curtail/deploy/cpu_groups.h"
#include "curtail/deploy/instance_command.h"
#include "curtail/deploy/internal/address_form.h"
#include "curtail/deploy/internal/yaml_text.h"
#include "curtail/deploy/link/link.h"
#include "curtail/exec/config.h"

namespace curtail::deploy {
namespace {

constexpr int kMaxInstances = 1024;
constexpr double kMaxCpu = 1024;
constexpr double kMaxMemoryMib = 1e9;
constexpr size_t kMaxName = 40;  // characters

int Count(const YAML::Node& node, std::string_view what, int least) {
  int value = 0;
  if (!node.IsScalar() || !absl::SimpleAtoi(node.Scalar(), &value) || value < least ||
      value > kMaxInstances) {
    Fail(node, absl::StrCat(std::string(what), " must be a number from ", least, " to ", kMaxInstances,
                            node.IsScalar() ? absl::StrCat(", not \"", node.Scalar(), "\"") : ""));
  }
  return value;
}

// Of a key that there is not: "; did you mean \"run\"? There are run, shards".
std::string KeysHint(const std::string& key, const std::vector<std::string>& keys) {
  const std::string meant = curtail::internal::DidYouMean(key, keys);
  return absl::StrCat(meant, meant.empty() ? "; there are " : " There are ", absl::StrJoin(keys, ", "));
}

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// Keys for anchors and for other programs, as Compose has them.
bool IsExtension(const std::string& key) { return key.starts_with("x-"); }

std::string Name(const YAML::Node& node, std::string_view what) {
  std::string text = Text(node, what);
  if (text.size() > kMaxName) {
    Fail(node,
         absl::StrCat(std::string(what), " has ", text.size(), " characters; ", kMaxName, " are allowed"));
  }
  if (!IsName(text)) Fail(node, absl::StrCat("'", text, "' is not a name; take a-z, 0-9 and '-'"));
  return text;
}

// "calls: [user]" and "own: [cache]" are flags of every hosted service; "calls: {leaf: --leaf}" is for other programs.
void AddWiring(const YAML::Node& node, const std::string& key, ServiceSpec* service) {
  const bool own = key == "own";
  if (node.IsSequence()) {
    std::set<std::string> named;
    for (const YAML::Node& callee : node) {
      const std::string name = Text(callee, key);
      if (!named.insert(name).second) Fail(callee, absl::StrCat(key, " has ", name, " twice; name it once"));
      service->calls.push_back({name, key == "calls" ? "--peer" : "--store", /*named=*/true, own});
    }
    return;
  }
  if (node.IsScalar()) Fail(node, absl::StrCat(key, " must be a list: ", key, ": [", node.Scalar(), "]"));
  for (const auto& [callee, flag] : Values(node, key)) {
    service->calls.push_back({callee, flag, /*named=*/false, own});
  }
}

std::vector<Variant> Variants(const YAML::Node& node);

void ReadKey(const YAML::Node& at, const YAML::Node& value, ServiceSpec* s) {
  const std::string key = Text(at, "a key");
  if (key == "run") {
    s->run = Words(value, key);
    if (s->run.empty()) Fail(value, "run: name a program");
  } else if (key == "run_at_port") {
    s->run_at_port = Words(value, key);
  } else if (key == "failover") {
    s->failover = Words(value, key);
  } else if (key == "keeps") {
    s->keeps = Text(value, key);
  } else if (key == "scales") {
    s->scales = Truth(value, key);
  } else if (key == "secrets") {
    s->secrets = Values(value, key);
  } else if (key == "shards") {
    s->shards = Count(value, key, 1);
  } else if (key == "replicas") {
    s->replicas = Count(value, key, 0);
  } else if (key == "calls" || key == "stores" || key == "own") {
    AddWiring(value, key, s);
  } else if (key == "config") {
    s->config = Text(value, key);
    if (const auto config = Config::Parse(s->config); !config.ok()) {
      Fail(value, std::string(config.status().message()));
    }
  } else if (key == "policy") {
    s->policy = Text(value, key);
  } else if (key == "profile") {
    s->profile = Text(value, key);
  } else if (key == "listen") {
    s->listen = Texts(value, key);
    for (const std::string& address : s->listen) {
      if (const auto form = CheckAddress(address); !form.ok())
        Fail(value, absl::StrCat("listen: ", form.message()));
    }
  } else if (key == "cpus") {
    s->cpus = Texts(value, key);
  } else if (key == "cpu") {
    s->cpu =
        Amount(value, key, kLeastCpu, kMaxCpu,
               absl::StrCat("at least ", kLeastCpu, " and at most ", kMaxCpu, " CPUs, or 0 for no limit"));
  } else if (key == "protocol") {
    s->protocol = Name(value, key);
  } else if (key == "hosted") {
    s->hosted = Truth(value, key);
  } else if (key == "memory_mib") {
    s->memory_mib = Amount(value, key, 0, kMaxMemoryMib, "from 0 to 1000000000");
  } else if (key == "entry") {
    s->entry = Truth(value, key);
  } else if (key == "links") {
    s->links = Values(value, key);
    for (const auto& [callee, link] : s->links) {
      if (const auto parsed = ParseLink(link); !parsed.ok())
        Fail(value, absl::StrCat("link to ", callee, ": ", parsed.status().message()));
    }
  } else if (key == "variants") {
    s->variants = Variants(value);
  } else if (!IsExtension(key)) {
    Fail(at,
         absl::StrCat("'", key, "' is not a key of a service",
                      KeysHint(key, {"run",      "shards",  "replicas",   "calls",       "stores",   "own",
                                     "config",   "policy",  "profile",    "listen",      "cpu",      "cpus",
                                     "protocol", "hosted",  "memory_mib", "run_at_port", "failover", "keeps",
                                     "scales",   "secrets", "links",      "variants",    "entry"})));
  }
}

std::vector<Variant> Variants(const YAML::Node& node) {
  if (!node.IsMap()) Fail(node, "variants must be a map; write NAME: and its keys below");
  std::vector<Variant> variants;
  for (const auto& [name, keys] : Entries(node)) {
    Variant& variant = variants.emplace_back();
    variant.name = Name(name, "a variant's name");
    if (std::ranges::count(variants, variant.name, &Variant::name) > 1)
      Fail(name, absl::StrCat("two variants are called ", variant.name));
    if (!keys.IsMap())
      Fail(keys, absl::StrCat("variant ", variant.name, " has no keys; it needs at least run"));
    ServiceSpec read;
    for (const auto& [key_node, value] : Entries(keys)) {
      const std::string key = Text(key_node, "a key");
      if (key == "needs") {
        variant.needs = Texts(value, key);
        for (const std::string& tool : variant.needs) {
          if (tool.empty() || (!tool.starts_with('/') && tool.find('/') != std::string::npos))
            Fail(value, absl::StrCat("needs: '", tool, "' is not a name or an absolute path"));
        }
      } else if (key == "build") {
        variant.build = Text(value, key);
      } else if (key == "run" || key == "memory_mib" || key == "hosted") {
        ReadKey(key_node, value, &read);
        if (key == "memory_mib") variant.memory_mib = read.memory_mib;
      } else {
        Fail(key_node,
             absl::StrCat("'", key,
                          "' is not a key of a variant; there are run, needs, build, memory_mib and hosted"));
      }
    }
    if (read.run.empty()) Fail(name, absl::StrCat("variant ", variant.name, " needs run: its command"));
    variant.run = read.run;
    variant.hosted = read.hosted;
  }
  return variants;
}

ServiceSpec ReadService(const YAML::Node& name, const YAML::Node& node) {
  ServiceSpec service;
  service.name = Name(name, "a service's name");
  if (!node.IsMap()) Fail(node, absl::StrCat(service.name, " has no keys; it needs at least run"));
  for (const auto& [key, value] : Entries(node)) ReadKey(key, value, &service);
  if (service.run.empty()) Fail(name, absl::StrCat("service ", service.name, " needs run: its command"));
  if (!service.config.empty() && !service.policy.empty()) {
    Fail(node, absl::StrCat(service.name, ": give config or policy, not both"));
  }
  if (service.instances() > kMaxInstances) {
    Fail(node, absl::StrCat(service.name, ": more than ", kMaxInstances, " instances"));
  }
  return service;
}

// The node that names what a service calls, for errors.
YAML::Node CallOf(const YAML::Node& service, const std::string& callee) {
  for (const auto& [key, value] : Entries(service)) {
    if (key.Scalar() != "calls" && key.Scalar() != "stores" && key.Scalar() != "own") continue;
    if (value.IsScalar() && value.Scalar() == callee) return value;
    if (value.IsMap()) {
      for (const auto& [name, flag] : Entries(value)) {
        if (name.Scalar() == callee) return name;
      }
    } else if (value.IsSequence()) {
      for (const YAML::Node& name : value) {
        if (name.Scalar() == callee) return name;
      }
    }
  }
  return service;
}

// The names that ${...} of this service's commands may have.
std::set<std::string> NamesFor(const Topology& t, const ServiceSpec& service) {
  std::set<std::string> names = {"address", "host", "port", "shard", "replica", "instance", "config", "user"};
  for (const auto& [name, value] : t.Settings()) names.insert(name);
  for (const Wiring& call : service.calls) {
    names.insert(absl::StrCat(call.name(), ".address"));
    names.insert(absl::StrCat(call.name(), ".target"));
  }
  return names;
}

void CheckNames(const YAML::Node& at, const std::vector<std::string>& words,
                const std::set<std::string>& names) {
  for (const std::string& word : words) {
    for (size_t from = 0; (from = word.find("${", from)) != std::string::npos;) {
      const size_t end = word.find('}', from);
      if (end == std::string::npos) Fail(at, absl::StrCat("'", word, "' has a ${ without a }"));
      const std::string name = word.substr(from + 2, end - from - 2);
      if (names.count(name) == 0) {
        Fail(at,
             absl::StrCat("'", word, "': there is no ${", name, "}; there are ", absl::StrJoin(names, ", ")));
      }
      from = end + 1;
    }
  }
}

// Checks a service against all others. `node` has its keys.
void CheckService(const Topology& t, const ServiceSpec& service, const YAML::Node& node) {
  for (const Wiring& call : service.calls) {
    if (t.Find(call.service) != nullptr) continue;
    std::vector<std::string> names;
    for (const ServiceSpec& other : t.services) names.push_back(other.name);
    Fail(CallOf(node, call.service),
         absl::StrCat(service.name, " calls ", call.service, ", which is not a service of this topology",
                      curtail::internal::DidYouMean(call.service, names)));
  }
  const std::set<std::string> names = NamesFor(t, service);
  for (const auto& [key, value] : Entries(node)) {
    if (key.Scalar() == "run") CheckNames(value, service.run, names);
    if (key.Scalar() == "run_at_port") CheckNames(value, service.run_at_port, names);
    if (key.Scalar() == "failover") CheckNames(value, service.failover, names);
    if (key.Scalar() != "variants") continue;
    for (const Variant& variant : service.variants) CheckNames(value, variant.run, names);
  }
}

bool Uses(const ServiceSpec& service, std::string_view variable) {
  return std::any_of(service.run.begin(), service.run.end(), [variable](const std::string& word) {
    return word.find(variable) != std::string::npos;
  });
}

// Of a program that is no curtail service: whether it can know its address, and is asked for nothing that it cannot do.
absl::Status CheckTold(const ServiceSpec& s) {
  if (s.IsHosted()) return absl::OkStatus();
  if (s.listen.empty() && s.external.empty() && !Uses(s, "${address}") && !Uses(s, "${port}")) {
    return absl::InvalidArgumentError(
        absl::StrCat(s.name, " has no address; give the key listen, or put ${address} or ${port} into run"));
  }
  for (const auto& [key, value] :
       {std::pair("config", &s.config), {"policy", &s.policy}, {"profile", &s.profile}}) {
    if (value->empty() || Uses(s, absl::StrCat("${", key, "}"))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(s.name, ": ", key, " is for curtail services, and this is another program"));
  }
  return absl::OkStatus();
}

// `services` has the nodes of the names and keys of t.services.
void CheckEntry(const Topology& t, const YAML::Node& root,
                const std::vector<std::pair<YAML::Node, YAML::Node>>& services) {
  const ServiceSpec* first = nullptr;
  for (size_t i = 0; i < t.services.size(); ++i) {
    if (!t.services[i].entry) continue;
    if (first != nullptr) {
      Fail(services[i].first, absl::StrCat(first->name, " and ", t.services[i].name,
                                           " both have entry: true; only one service may"));
    }
    first = &t.services[i];
  }
  if (first == nullptr) Fail(root, "no service has entry: true; give it to the service that clients call");
}

Topology ReadTopology(const YAML::Node& root) {
  if (!root.IsMap()) Fail(root, "a topology has the keys application and services");
  Topology t;
  std::vector<std::pair<YAML::Node, YAML::Node>> services;
  YAML::Node prepare;
  for (const auto& [key_node, value] : Entries(root)) {
    const std::string key = Text(key_node, "a key");
    if (key == "application") {
      t.application = Name(value, key);
    } else if (key == "title") {
      t.title = Text(value, key);
    } else if (key == "variables") {
      t.variables = Values(value, key);
    } else if (key == "scale") {
      t.scale = Values(value, key);
    } else if (key == "groups") {
      if (!value.IsSequence()) Fail(value, "groups must be a list of lists: [[SERVICE, SERVICE]]");
      for (const YAML::Node& group : value) t.groups.push_back(absl::StrJoin(Texts(group, key), ","));
    } else if (key == "prepare") {
      t.prepare = Words(value, key);
      prepare.reset(value);
    } else if (key == "prepare_secrets") {
      t.prepare_secrets = Values(value, key);
    } else if (key == "services") {
      if (!value.IsMap()) Fail(value, "services must be a map; write NAME: and its keys below");
      services = Entries(value);
    } else if (!IsExtension(key)) {
      Fail(key_node, absl::StrCat("'", key, "' is not a key here",
                                  KeysHint(key, {"application", "title", "variables", "scale", "prepare",
                                                 "prepare_secrets", "groups", "services"})));
    }
  }
  if (t.application.empty()) Fail(root, "the key application is missing; write application: NAME");
  if (services.empty()) Fail(root, "services: name one at least");
  for (const auto& [name, keys] : services) {
    ServiceSpec service = ReadService(name, keys);
    if (t.Find(service.name) != nullptr) Fail(name, absl::StrCat("two services are called ", service.name));
    t.services.push_back(std::move(service));
  }
  CheckEntry(t, root, services);
  for (const std::string& group : t.groups) {
    for (const absl::string_view name : absl::StrSplit(group, ',')) {
      if (t.Find(std::string(name)) == nullptr)
        Fail(root["groups"], absl::StrCat("groups: there is no service ", name));
    }
  }
  for (size_t i = 0; i < t.services.size(); ++i) CheckService(t, t.services[i], services[i].second);
  std::set<std::string> settings = {"entry"};
  for (const auto& [name, value] : t.Settings()) settings.insert(name);
  CheckNames(prepare, t.prepare, settings);
  t.Order();
  return t;
}

// A key of a service that is there already.
void ChangeKey(const YAML::Node& at, const YAML::Node& value, ServiceSpec* service) {
  const std::string key = Text(at, "a key");
  if (key == "entry") Fail(value, "which service clients call is fixed");
  ServiceSpec changed = *service;
  if (key == "config") changed.policy.clear();
  if (key == "policy") changed.config.clear();
  ReadKey(at, value, &changed);
  if (changed.instances() > kMaxInstances)
    Fail(value, absl::StrCat("more than ", kMaxInstances, " instances"));
  *service = std::move(changed);
}

}  // namespace

bool ServiceSpec::Says(std::string_view flag) const {
  return std::any_of(run.begin(), run.end(), [flag](const std::string& word) {
    return word == flag ||
           (word.starts_with(flag) && std::string_view(word).substr(flag.size()).starts_with('='));
  });
}

bool ServiceSpec::IsHosted() const {
  return grpc() && hosted.value_or(!Uses(*this, "${address}") && !Uses(*this, "${port}"));
}

bool ServiceSpec::ScalesWhileServing() const {
  return scales && shards == 1 && IsHosted() && external.empty() &&
         std::none_of(calls.begin(), calls.end(), [](const Wiring& call) { return call.own; });
}

bool ServiceSpec::TakesPort() const { return grpc() || protocol == "tcp" || Uses(*this, "${port}"); }

absl::Status Topology::Check() const {
  const Topology& t = *this;
  std::set<std::string> names;  // logs and sockets are called so
  for (const ServiceSpec& s : t.services) {
    for (int i = 0; i < s.instances(); ++i) {
      if (const std::string name = InstanceName(s, i); !names.insert(name).second) {
        return absl::InvalidArgumentError(absl::StrCat("an instance of ", s.name, " would be called ", name,
                                                       ", as another one is; rename a service"));
      }
    }
    if (!s.listen.empty() && s.listen.size() != static_cast<size_t>(s.instances())) {
      return absl::InvalidArgumentError(absl::StrCat(s.name, ": listen has ", s.listen.size(),
                                                     " addresses for ", s.instances(), " instances"));
    }
    if (!s.external.empty() && s.external.size() != static_cast<size_t>(s.instances())) {
      return absl::InvalidArgumentError(absl::StrCat(s.name, " has ", s.instances(), " instances, and ",
                                                     s.external.size(), " addresses were given"));
    }
    if (absl::Status told = CheckTold(s); !told.ok()) return told;
    if (!s.keeps.empty() && t.variables.count(s.keeps) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          s.name, " keeps ", s.keeps, ", which is not a variable; name the one that has its folder"));
    }
    if (s.scales && ((!s.IsHosted() && s.protocol != "http") || !s.keeps.empty())) {
      return absl::InvalidArgumentError(absl::StrCat(
          s.name, ": scales is for curtail services and for protocol: http, if they keep no data"));
    }
    for (const Wiring& call : s.calls) {
      const ServiceSpec* callee = t.Find(call.service);
      if (call.own && callee->instances() != s.instances()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "each ", s.name, " has a ", call.service, " of its own, but there are ", s.instances(), " and ",
            callee->instances(), "; set the shards and replicas of both"));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Topology> Topology::Parse(std::string_view yaml, std::string_view origin) {
  Topology t;
  absl::Status parsed = ReadYaml(yaml, origin, [&](const YAML::Node& root) {
    t = ReadTopology(root);
    const absl::Status own = t.Check();
    return own.ok() ? own
                    : absl::InvalidArgumentError(absl::StrCat(std::string(origin), ": ", own.message()));
  });
  if (!parsed.ok()) return parsed;
  return t;
}

absl::Status Topology::Set(std::string_view name, std::string_view value) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(name), absl::MaxSplits('.', 1));
  if (parts.size() == 1) {
    const auto found = variables.find(parts[0]);
    if (found != variables.end()) {
      found->second = std::string(value);
      return absl::OkStatus();
    }
    std::vector<std::string> names;
    for (const auto& [known, text] : variables) names.push_back(known);
    for (const ServiceSpec& s : services) names.push_back(absl::StrCat(s.name, ".KEY"));
    return absl::InvalidArgumentError(absl::StrCat(application, " has no variable '", std::string(name),
                                                   "'; there are ", absl::StrJoin(names, ", ")));
  }
  ServiceSpec* service = Find(parts[0]);
  if (service == nullptr) return NoService(parts[0]);
  try {
    ChangeKey(YAML::Node(parts[1]), YAML::Node(std::string(value)), service);
  } catch (const Wrong& wrong) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": ", wrong.what));
  }
  return absl::OkStatus();
}

absl::Status Topology::Overlay(std::string_view yaml, std::string_view origin) {
  Topology changed = *this;
  return ReadYaml(yaml, origin, [&](const YAML::Node& root) {
    if (!root.IsMap()) Fail(root, "an overlay has the keys application and services");
    for (const auto& [key_node, value] : Entries(root)) {
      const std::string key = Text(key_node, "a key");
      if (key == "application") {
        if (Text(value, key) != application)
          Fail(value, absl::StrCat("the overlay is for ", value.Scalar(), ", not for ", application));
      } else if (key == "services") {
        if (!value.IsMap()) Fail(value, "services must be a map; write NAME: and its keys below");
        for (const auto& [name, keys] : Entries(value)) {
          ServiceSpec* const service = changed.Find(Text(name, "a service's name"));
          if (service == nullptr) Fail(name, std::string(changed.NoService(name.Scalar()).message()));
          if (!keys.IsMap()) Fail(keys, absl::StrCat(service->name, " must have keys"));
          for (const auto& [of, to] : Entries(keys)) ChangeKey(of, to, service);
        }
      } else {
        Fail(key_node,
             absl::StrCat("'", key, "' is not a key of an overlay; there are application and services"));
      }
    }
    *this = std::move(changed);
    return absl::OkStatus();
  });
}

}  // namespace curtail::deploy
