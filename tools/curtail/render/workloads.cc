// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/workloads.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "curtail/deploy/instance_command.h"
#include "tools/curtail/render/markers.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxLabel = 63;  // of DNS
constexpr double kUsualMib = 128;
// The CPU that a service asks for, so that many small ones fit a node.
constexpr char kCpu[] = "50m", kCpuOfScaled[] = "100m";
constexpr double kScaledShare = 0.7;    // of its limit, that a pod uses before there are more
constexpr int kResolveSeconds = 5;      // between the look-ups of a caller
constexpr int kUsualDrainSeconds = 10;  // of curtail's programs
constexpr int kUsualCallSeconds = 30;   // of curtail-gateway
constexpr int kRequestSeconds = 10;     // likewise: for a request to come whole
constexpr absl::Duration kLongestEnd = absl::Hours(24);  // that they take as a time to drain, or to linger
constexpr int kSeenSeconds = 30 + kResolveSeconds;       // the usual DNS of a cluster keeps answers for 30 s

// "mid-tier" -> "midTier": templates cannot name a key with a dash.
std::string ValueName(std::string_view service) {
  std::string name;
  for (size_t i = 0; i < service.size(); ++i) {
    const bool starts = i > 0 && service[i - 1] == '-';
    if (service[i] != '-')
      name += starts ? absl::ascii_toupper(static_cast<unsigned char>(service[i])) : service[i];
  }
  return name;
}

// The port at which its file says that a program of another make listens.
int PortOf(const deploy::ServiceSpec& service) {
  int port = 0;
  if (service.IsHosted() || service.listen.empty()) return kServicePort;
  const std::string& listen = service.listen.front();
  return absl::SimpleAtoi(listen.substr(listen.rfind(':') + 1), &port) && port > 0 ? port : kServicePort;
}

// "build/shop" -> "shop": the folder of a build is this machine's, and in an image programs are found by name.
void LeaveFolder(std::vector<std::string>* command) {
  std::string& program = command->front();
  if (!program.starts_with('/')) program = program.substr(program.rfind('/') + 1);
}

// Errors: INVALID_ARGUMENT for a name that Kubernetes refuses in the name of a Service, or Helm as a key of its templates.
absl::Status CheckName(const std::string& name) {
  const auto alphanumeric = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  // Readers of YAML take these for other values.
  static constexpr std::string_view kTaken[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  const bool good = absl::ascii_isalpha(static_cast<unsigned char>(name.front())) &&
                    alphanumeric(name.back()) && name.find("--") == std::string::npos &&
                    std::ranges::count(kTaken, name) == 0;
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", name,
                   "' cannot be a name on a cluster: begin with a letter, end with a letter or a digit, "
                   "take single dashes, and no word such as yes, on or null"));
}

// Errors: INVALID_ARGUMENT for what has no meaning on other machines.
absl::Status Adapt(deploy::ServiceSpec* service) {
  if (!service->run_at_port.empty()) service->run = service->run_at_port;
  LeaveFolder(&service->run);
  if (!service->profile.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        service->name,
        ": its profile is of one machine, and pods run on many; leave it out, policy: online learns"));
  }
  if (!service->external.empty() || service->IsHosted()) return absl::OkStatus();
  const bool told = !service->listen.empty() && !service->listen.front().starts_with("unix:");
  if (service->TakesPort() || told) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(service->name,
                   " listens at a Unix socket, which only its own machine has; give it run_at_port, a "
                   "command with ${host} and ${port}"));
}

// Errors: INVALID_ARGUMENT for texts that would be taken for markers, or break a line of the output.
absl::Status CheckTexts(const deploy::Topology& topology, const RenderOptions& options) {
  std::vector<std::string> texts = topology.prepare;
  texts.push_back(options.image);
  texts.push_back(options.dashboard_image);
  for (const auto& [name, value] : topology.variables) texts.push_back(value);
  for (const deploy::ServiceSpec& spec : topology.services) {
    texts.insert(texts.end(), spec.run.begin(), spec.run.end());
    texts.insert(texts.end(), spec.external.begin(), spec.external.end());
    texts.push_back(spec.policy);
  }
  for (const std::string& text : texts) {
    if (HasMarkers(text) || text.find('\n') != text.npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' has a line break or «, which cannot be rendered"));
    }
  }
  for (const std::string& text : {options.image, options.dashboard_image, topology.entry().policy}) {
    if (text.find_first_of("\"\\ ") != text.npos) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' has a quote, a backslash or a space"));
    }
  }
  return absl::OkStatus();
}

std::string SecretFile(const std::string& secret) { return absl::StrCat(kSecretFolder, "/", secret); }

// The flags that the cluster decides, behind those of the ports. Most have a condition: the chart leaves out what is empty.
std::vector<deploy::ServiceFlag> ClusterFlags(const ServicePlan& service, bool calls_services) {
  const deploy::ServiceSpec& spec = *service.spec;
  std::vector<deploy::ServiceFlag> flags;
  const auto add = [&](const char* flag, const std::string& value, const std::string& condition = {}) {
    flags.push_back({flag, value, condition.empty() ? "" : If(condition)});
  };
  const auto add_value = [&](const char* flag, const std::string& path) { add(flag, ValueOf(path), path); };
  add_value("--config", service.value + ".config");
  add_value("--policy", service.value + ".policy");
  add_value("--fence", "fence");
  add_value("--trace-to", "tracing.to");
  add("--trace-sample", ValueOf("tracing.sample"), "tracing.to");
  add_value("--max-connection-age", "maxConnectionAgeSeconds");
  if (calls_services) {
    add_value("--balancer", "balancer");
    flags.push_back({.name = "--health-checks", .condition = If("healthChecks")});
    add("--resolve-interval", absl::StrCat(kResolveSeconds));
    add_value("--retries", "retries");
  }
  for (const auto& [secret, flag] : spec.secrets) add(flag.c_str(), SecretFile(secret));
  if (spec.entry) {
    add("--tls-cert", absl::StrCat(kTlsFolder, "/tls.crt"), "tls.secret");
    add("--tls-key", absl::StrCat(kTlsFolder, "/tls.key"), "tls.secret");
  }
  return flags;
}

// The flags of a program that calls the entry: those of curtail-gateway, which commands of applications have as well.
void AddTlsFlags(std::vector<std::string>* command) {
  command->push_back(If("tls.secret") + "--tls");
  command->push_back(absl::StrCat(If("tls.secret"), "--ca-file=", kTlsFolder, "/ca.crt"));
}

// curtail's own program, which is no curtail service.
bool IsGateway(const deploy::ServiceSpec& spec) {
  return !spec.run.empty() && spec.run.front().substr(spec.run.front().rfind('/') + 1) == "curtail-gateway";
}

// The seconds that a command gives a flag, rounded up: "2m" or "500ms" of a gateway, a number of others. `usual` without the
// flag, or with a value that its program refuses.
int SecondsIn(const std::vector<std::string>& command, std::string_view flag, bool gateway, int usual) {
  std::string text;
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == flag && i + 1 < command.size()) text = command[i + 1];
    if (command[i].starts_with(absl::StrCat(std::string(flag), "=")))
      text = command[i].substr(flag.size() + 1);
  }
  absl::Duration time;
  if (double seconds = 0; !gateway && absl::SimpleAtod(text, &seconds)) {
    time = absl::Seconds(seconds);
  } else if (!gateway || !absl::ParseDuration(text, &time)) {
    return usual;
  }
  if (time < absl::ZeroDuration() || time > kLongestEnd) return usual;
  return static_cast<int>(absl::ToInt64Seconds(absl::Ceil(time, absl::Seconds(1))));
}

// `curtail dashboard` with the graph of the topology, and the names behind which the pods are.
std::vector<std::string> DashboardCommand(const Plan& plan) {
  std::vector<std::string> words = {"curtail", "dashboard", plan.topology.application,
                                    absl::StrCat("--listen=0.0.0.0:", kDashboardPort),
                                    absl::StrCat("--entry=", plan.topology.entry().name)};
  for (const ServicePlan& service : plan.services) {
    if (!service.spec->IsHosted()) continue;
    std::vector<std::string> places;
    for (const InstancePlan& workload : service.workloads)
      places.push_back(absl::StrCat(workload.name, ":", kAdminPort));
    words.push_back(absl::StrCat("--service=", service.spec->name, "=", absl::StrJoin(places, ",")));
  }
  for (const ServicePlan& service : plan.services) {
    std::vector<std::string> callees;
    for (const deploy::Wiring& call : service.spec->calls) callees.push_back(call.service);
    if (!callees.empty())
      words.push_back(absl::StrCat("--calls=", service.spec->name, "=", absl::StrJoin(callees, ",")));
  }
  return words;
}

// The address of the callee's instance for a service that calls it.
std::string AddressFor(const deploy::ServiceSpec& caller, const ServicePlan& callee, size_t instance) {
  if (!callee.spec->IsHosted()) return ValueOf(absl::StrCat(callee.value, ".addresses.", instance));
  const std::string& name = callee.workloads[instance].name;
  return absl::StrCat(caller.IsHosted() ? "dns:///" : "", name, ":", callee.port);
}

std::string Millicores(double amount) { return absl::StrFormat("%.0fm", amount); }

// The limit. A gateway has one thread.
int UsualCpus(const deploy::ServiceSpec& spec) { return IsGateway(spec) ? 1 : 2; }

Yaml Resources(const deploy::ServiceSpec& spec) {
  const double mib = spec.memory_mib > 0 ? spec.memory_mib : kUsualMib;
  const auto memory = [](double amount) { return absl::StrFormat("%.0fMi", amount); };
  const std::string_view usual = spec.scales ? kCpuOfScaled : kCpu;
  const std::string own = spec.cpu > 0 ? Millicores(1000 * spec.cpu) : std::string(usual);
  return Yaml::Map({{"requests", Yaml::Map({{"cpu", own}, {"memory", memory(mib)}})},
                    {"limits", Yaml::Map({{"cpu", spec.cpu > 0 ? own : absl::StrCat(UsualCpus(spec))},
                                          {"memory", memory(spec.memory_mib > 0 ? 1.25 * mib : 1024)}})}});
}

Yaml ServiceValues(const ServicePlan& service) {
  Yaml values = Yaml::Map();
  if (service.spec->scales) {
    values.Add("replicas", 1, "Pods of each instance; the least number where they are scaled");
    values.Add("maxReplicas", 4);
    values.Add("cpuTarget",
               Millicores(kScaledShare * 1000 *
                          (service.spec->cpu > 0 ? service.spec->cpu : UsualCpus(*service.spec))),
               "The mean CPU of its pods beyond which there are to be more: 70 % of the limit");
  }
  if (service.spec->IsHosted()) {
    values.Add("config", service.spec->config, "A threading model, such as SDB1-16; empty: auto");
    values.Add("policy", service.spec->policy, "Changes it by the load, such as online; empty: it stays");
  } else {
    std::vector<Yaml> addresses;
    for (const InstancePlan& workload : service.workloads) {
      addresses.emplace_back(absl::StrCat(workload.name, ":", service.port));
    }
    values.Add("enabled", true, "false: others run it, at these addresses");
    values.Add("addresses", Yaml::List(std::move(addresses)));
  }
  values.Add("resources", Resources(*service.spec));
  return values;
}

Yaml MakeValues(const Plan& plan, const RenderOptions& options) {
  const std::string application = plan.topology.application;
  Yaml services = Yaml::Map();
  bool keeps = false;
  for (const ServicePlan& service : plan.services) {
    services.Add(ValueName(service.spec->name), ServiceValues(service));
    keeps = keeps || service.keeps_data();
  }
  Yaml values = Yaml::Map();
  values.Add("image",
             options.image.empty() ? absl::StrCat(application, ":", CURTAIL_VERSION) : options.image);
  values.Add("imagePullPolicy", "IfNotPresent");
  values.Add("logFormat", "json", "Of what pods write: json, an object a line, or text");
  Yaml pull_secrets = Yaml::List();
  for (const std::string& name : options.image_pull_secrets) pull_secrets.Push(Yaml::Map({{"name", name}}));
  values.Add("imagePullSecrets", std::move(pull_secrets),
             "Of a registry that asks who pulls: - name: SECRET");
  values.Add("services", std::move(services));
  values.Add("fence", "",
             "Keeps a service that stalls from stopping others: on, dry-run or strict; empty: off");
  values.Add("tracing", Yaml::Map({{"to", ""}, {"sample", Yaml::Plain("0.001")}}),
             "Spans: zipkin=http://HOST:9411 or otlp=http://HOST:4318; empty: none");
  values.Add("balancer", "round_robin", "How calls spread over the pods of an instance");
  values.Add("healthChecks", true, "Callers ask pods for their health: those that do not serve get no calls");
  values.Add("retries", 2, "Of a call whose pod was lost, if its method is declared idempotent; 0 to 4");
  values.Add("maxConnectionAgeSeconds", 300, "So that callers find new pods");
  values.Add("minReadySeconds", kSeenSeconds,
             "An old pod stays so long beside its successor: answers of the DNS may be 30 s old");
  values.Add("startupSeconds", 300, "For a pod to load its data");
  values.Add(
      "autoscaling",
      Yaml::Map({{"enabled", true, "By the cpuTarget of each service"},
                 {"queueWaitMs", 0, "The mean wait in the queue, of an adapter for metrics; 0: not by this"},
                 {"p99Ms", 0, "The same with the p99 of requests"}}));
  values.Add("podDisruptionBudget", Yaml::Map({{"enabled", true}}));
  values.Add("networkPolicy", Yaml::Map({{"enabled", true}}), "Only callers reach a service");
  if (!plan.dashboard.empty()) {
    const Yaml few = Yaml::Map({{"requests", Yaml::Map({{"cpu", "20m"}, {"memory", "32Mi"}})},
                                {"limits", Yaml::Map({{"cpu", "1"}, {"memory", "256Mi"}})}});
    const bool there = options.image_has_curtail || !options.dashboard_image.empty();
    values.Add(
        "dashboard",
        Yaml::Map({{"enabled", there},
                   {"image", options.dashboard_image, "One that has the program curtail; empty: image"},
                   {"resources", few}}),
        "A page of the whole application: kubectl port-forward service/" + plan.dashboard_name());
  }
  values.Add("serviceMonitor",
             Yaml::Map({{"enabled", false},
                        {"labels", Yaml::Map(), "By which a Prometheus chooses it, such as release: NAME"}}),
             "For the Prometheus operator");
  values.Add("admin", Yaml::Map({{"tokenSecret", application + "-admin"}}),
             "A Secret with the key token, if there is one; with that token a client may change configs");
  values.Add(
      "tls", Yaml::Map({{"secret", options.tls_secret}}),
      "A Secret of type kubernetes.io/tls, with ca.crt, for the service that clients call; empty: no TLS");
  if (keeps) {
    values.Add("storage", Yaml::Map({{"size", "1Gi"}, {"className", "", "Empty: the cluster's default"}}),
               "A volume for each service that keeps data");
  }
  if (!plan.prepare.empty()) {
    const Yaml little = Yaml::Map({{"requests", Yaml::Map({{"cpu", kCpu}, {"memory", "64Mi"}})},
                                   {"limits", Yaml::Map({{"cpu", "1"}, {"memory", "512Mi"}})}});
    values.Add("prepare", Yaml::Map({{"enabled", true}, {"resources", little}}),
               "The Job that fills the stores");
  }
  return values;
}

}  // namespace

std::set<std::string> Plan::Secrets() const {
  std::set<std::string> secrets;
  for (const ServicePlan& service : services) {
    for (const auto& [secret, flag] : service.spec->secrets) secrets.insert(secret);
  }
  if (!prepare.empty()) {
    for (const auto& [secret, flag] : topology.prepare_secrets) secrets.insert(secret);
  }
  return secrets;
}

const ServicePlan* Plan::Find(const std::string& service) const {
  const auto found =
      std::find_if(services.begin(), services.end(), [&](const auto& s) { return s.spec->name == service; });
  return found == services.end() ? nullptr : &*found;
}

absl::StatusOr<Plan> MakePlan(deploy::Topology given, const RenderOptions& options) {
  Plan plan;
  plan.topology = std::move(given);
  deploy::Topology& topology = plan.topology;
  if (absl::Status there = topology.LeaveOutAbsent(); !there.ok()) return there;
  if (absl::Status plain = CheckTexts(topology, options); !plain.ok()) return plain;
  if (!topology.prepare.empty()) LeaveFolder(&topology.prepare);
  if (absl::Status named = CheckName(topology.application); !named.ok()) return named;
  for (deploy::ServiceSpec& spec : topology.services) {
    if (absl::Status named = CheckName(spec.name); !named.ok()) return named;
    if (absl::Status adapted = Adapt(&spec); !adapted.ok()) return adapted;
    if (!spec.keeps.empty()) topology.variables[spec.keeps] = kDataFolder;
  }
  for (const deploy::ServiceSpec& spec : topology.services) {
    if (!spec.external.empty()) continue;
    ServicePlan service{.spec = &spec,
                        .name = absl::StrCat(topology.application, "-", spec.name),
                        .value = absl::StrCat("services.", ValueName(spec.name)),
                        .port = PortOf(spec)};
    for (int i = 0; i < spec.instances(); ++i) {
      InstancePlan workload;
      workload.instance = absl::StrReplaceAll(deploy::InstanceName(spec, i), {{".", "-"}});
      workload.name = absl::StrCat(topology.application, "-", workload.instance);
      if (workload.name.size() > kMaxLabel) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", workload.name, "' is too long for a Kubernetes service: take ", kMaxLabel,
                         " characters at most, in the names of the application and the service together"));
      }
      service.workloads.push_back(std::move(workload));
    }
    plan.services.push_back(std::move(service));
  }
  for (ServicePlan& service : plan.services) {
    deploy::Addresses addresses;
    bool calls_services = false;
    for (const deploy::Wiring& call : service.spec->calls) {
      const ServicePlan* callee = plan.Find(call.service);
      const deploy::ServiceSpec& spec = *topology.Find(call.service);
      calls_services = calls_services || spec.IsHosted();
      service.calls_entry = service.calls_entry || (spec.entry && !service.spec->IsHosted());
      addresses[call.service] = spec.external;
      if (callee == nullptr) continue;
      service.callees.push_back(call.service);
      for (size_t i = 0; i < callee->workloads.size(); ++i) {
        addresses[call.service].push_back(AddressFor(*service.spec, *callee, i));
      }
    }
    for (const ServicePlan& caller : plan.services) {
      const auto& calls = caller.spec->calls;
      const bool calls_it = std::any_of(calls.begin(), calls.end(), [&](const deploy::Wiring& call) {
        return call.service == service.spec->name;
      });
      if (calls_it) service.callers.push_back(caller.spec->name);
    }
    deploy::InstanceSetup setup;
    setup.user = "curtail";
    setup.joined = true;
    setup.listen = absl::StrCat("0.0.0.0:", service.port);
    if (service.spec->IsHosted()) {
      setup.http_admin = absl::StrCat("0.0.0.0:", kAdminPort);
      setup.flags = ClusterFlags(service, calls_services);
    }
    for (int i = 0; i < service.spec->instances(); ++i) {
      absl::StatusOr<std::vector<std::string>> command =
          deploy::CommandOf(topology, *service.spec, i, addresses, setup);
      if (!command.ok()) return command.status();
      if (service.calls_entry) AddTlsFlags(&*command);
      const bool gateway = IsGateway(*service.spec);
      if (gateway && !service.spec->Says("--linger"))
        command->push_back(absl::StrCat("--linger=", kLingerSeconds, "s"));
      plan.drain_s = std::max(plan.drain_s, SecondsIn(*command, "--drain", gateway, kUsualDrainSeconds));
      if (gateway) {
        command->push_back(absl::StrCat("--allow-host=", service.workloads[static_cast<size_t>(i)].name));
        service.linger_s = std::max(service.linger_s, SecondsIn(*command, "--linger", gateway, 0));
        service.call_s = std::max(
            service.call_s, kRequestSeconds + SecondsIn(*command, "--timeout", gateway, kUsualCallSeconds));
      }
      service.workloads[static_cast<size_t>(i)].command = *std::move(command);
    }
  }
  const ServicePlan* entry = plan.Find(topology.entry().name);
  if (!topology.prepare.empty() && entry != nullptr) {
    absl::StatusOr<std::vector<std::string>> prepare =
        deploy::PrepareCommand(topology, absl::StrCat(entry->workloads.front().name, ":", entry->port));
    if (!prepare.ok()) return prepare.status();
    plan.prepare = *std::move(prepare);
    for (const auto& [secret, flag] : topology.prepare_secrets)
      plan.prepare.push_back(absl::StrCat(flag, "=", SecretFile(secret)));
    AddTlsFlags(&plan.prepare);
  }
  if (topology.Find(kDashboard) == nullptr) plan.dashboard = DashboardCommand(plan);
  plan.values = MakeValues(plan, options);
  return plan;
}

}  // namespace curtail::tool
