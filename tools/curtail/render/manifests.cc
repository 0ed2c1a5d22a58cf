// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/manifests.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/curtail/render/kubernetes.h"
#include "tools/curtail/render/markers.h"
#include "tools/curtail/render/values_schema.h"

namespace curtail::tool {
namespace {

constexpr char kMadeBy[] = "# Made by curtail render; docs/kubernetes.md of curtail explains it.\n";
constexpr int kFirstHttpPort = 8000;  // of this machine

std::string Filled(const Plan& plan, const std::string& text) {
  Yaml values = plan.values;
  values.Add("Release", Yaml::Map({{"Name", plan.topology.application}, {"Service", "curtail"}}));
  return FillIn(text, values);
}

// The words of a command with values in the place of markers. A word whose condition does not hold is left out.
std::vector<std::string> FilledCommand(const Plan& plan, const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command) {
    std::string text = HasMarkers(word) ? Filled(plan, word) : absl::StrCat(word, "\n");
    if (text.empty()) continue;
    text.pop_back();  // the end of the line
    words.push_back(std::move(text));
  }
  return words;
}

// ----- Compose ---------------------------------------------------------------------------------------------------------

Yaml ComposeCommand(const Plan& plan, const std::vector<std::string>& command) {
  Yaml words = Yaml::List();
  for (const std::string& word : FilledCommand(plan, command))
    words.Push(absl::StrReplaceAll(word, {{"$", "$$"}}));
  return words;
}

// The limits of the resources at `path`, in the units of Compose.
Yaml ComposeLimits(const Plan& plan, const std::string& path) {
  const auto limit = [&](const char* what) {
    return At(plan.values, absl::StrCat(path, ".limits.", what))->text();
  };
  std::string cpus = limit("cpu");
  if (int millicores = 0;
      cpus.ends_with('m') && absl::SimpleAtoi(cpus.substr(0, cpus.size() - 1), &millicores))
    cpus = absl::StrCat(millicores / 1000.0);
  const Yaml limits =
      Yaml::Map({{"cpus", cpus}, {"memory", absl::StrReplaceAll(limit("memory"), {{"Mi", "m"}})}});
  return Yaml::Map({{"resources", Yaml::Map({{"limits", limits}})}});
}

// The keys that all containers have in common. `resources` is where the values have theirs.
Yaml ComposeContainer(const Plan& plan, const std::string& component, const std::string& name,
                      const std::vector<std::string>& command, const char* restart,
                      const std::string& resources) {
  const Yaml log = Yaml::Map({{"CURTAIL_LOG_FORMAT", At(plan.values, "logFormat")->text()},
                              {"CURTAIL_LOG_SERVICE", component},
                              {"CURTAIL_LOG_INSTANCE", name}});
  const Yaml* const of_dashboard = component == kDashboard ? At(plan.values, "dashboard.image") : nullptr;
  const std::string own = of_dashboard == nullptr ? "" : of_dashboard->text();
  return Yaml::Map({{"image", own.empty() ? At(plan.values, "image")->text() : own},
                    {"environment", log},
                    {"command", ComposeCommand(plan, command)},
                    {"restart", restart},
                    {"user", absl::StrCat(kUser, ":", kUser)},
                    {"read_only", true},
                    {"cap_drop", Yaml::List({"ALL"})},
                    {"security_opt", Yaml::List({"no-new-privileges:true"})},
                    {"tmpfs", Yaml::List({"/tmp"})},
                    {"deploy", ComposeLimits(plan, resources)}});
}

// The ports of this machine at which the containers are reached, by their names. The entry's first container has the
// entry's port; its others, and containers that speak HTTP, have the ports from 8000 on.
std::map<std::string, int> PublishedPorts(const Plan& plan) {
  const ServicePlan* const entry = plan.Find(plan.topology.entry().name);
  std::map<std::string, int> ports;
  int next = kFirstHttpPort;
  for (const ServicePlan& service : plan.services) {
    for (const InstancePlan& workload : service.workloads) {
      if (&service == entry && &workload == &service.workloads.front()) {
        ports[workload.name] = service.port;
      } else if (&service == entry || service.spec->protocol == "http") {
        while ((entry != nullptr && next == entry->port) || next == kDashboardPort) ++next;
        ports[workload.name] = next++;
      }
    }
  }
  return ports;
}

// Of flags by secret.
void AddSecrets(const std::map<std::string, std::string>& flags, Yaml* container) {
  if (flags.empty()) return;
  Yaml secrets = Yaml::List();
  for (const auto& [secret, flag] : flags) {
    secrets.Push(Yaml::Map({{"source", secret}, {"target", absl::StrCat(kSecretFolder, "/", secret)}}));
  }
  container->Add("secrets", std::move(secrets));
}

Yaml ComposeService(const Plan& plan, const ServicePlan& service, const InstancePlan& workload,
                    const std::map<std::string, int>& published) {
  Yaml container = ComposeContainer(plan, service.spec->name, workload.name, workload.command,
                                    "unless-stopped", service.value + ".resources");
  container.Add("stop_grace_period", absl::StrCat(plan.GraceSeconds(service), "s"));
  if (const auto port = published.find(workload.name); port != published.end()) {
    container.Add("ports", Yaml::List({absl::StrCat("127.0.0.1:", port->second, ":", service.port)}));
  }
  Yaml before = Yaml::List();
  for (const std::string& callee : service.callees) {
    for (const InstancePlan& called : plan.Find(callee)->workloads) {
      // Services that call each other in a circle start in the order of the plan.
      if (plan.Find(callee) < &service) before.Push(called.name);
    }
  }
  if (!before.empty()) container.Add("depends_on", std::move(before));
  if (service.keeps_data())
    container.Add("volumes", Yaml::List({absl::StrCat(workload.name, ":", kDataFolder)}));
  AddSecrets(service.spec->secrets, &container);
  return container;
}

}  // namespace

std::vector<RenderedFile> PlainManifests(const Plan& plan) {
  std::vector<RenderedFile> files;
  for (const ObjectFile& file : KubernetesObjects(plan)) {
    std::string text = kMadeBy;
    for (const Object& object : file.objects) {
      const bool there =
          std::all_of(object.conditions.begin(), object.conditions.end(),
                      [&](const std::string& path) { return At(plan.values, path)->IsTrue(); });
      if (there) absl::StrAppend(&text, "---\n", Filled(plan, object.yaml.Write()));
    }
    files.push_back({file.file, std::move(text)});
  }
  return files;
}

std::string LoadJobManifest(const Plan& plan, const std::vector<std::string>& command) {
  return Filled(plan, LoadJob(plan, command).Write());
}

std::vector<RenderedFile> HelmChart(const Plan& plan) {
  const std::string& application = plan.topology.application;
  Yaml chart = Yaml::Map({{"apiVersion", "v2"}, {"name", application}});
  if (!plan.topology.title.empty()) chart.Add("description", plan.topology.title);
  chart.Add("type", "application").Add("version", CURTAIL_VERSION).Add("appVersion", CURTAIL_VERSION);
  chart.Add("kubeVersion", ">=1.27.0-0");
  std::vector<RenderedFile> files = {{"Chart.yaml", kMadeBy + chart.Write()},
                                     {"values.yaml", kMadeBy + plan.values.Write()},
                                     {"values.schema.json", ValuesSchema(plan.values)}};
  for (const ObjectFile& file : KubernetesObjects(plan)) {
    std::string text = kMadeBy;
    for (const Object& object : file.objects) {
      std::string one = absl::StrCat("---\n", AsTemplate(object.yaml.Write()));
      for (auto condition = object.conditions.rbegin(); condition != object.conditions.rend(); ++condition) {
        one = TemplateIf(*condition, one);
      }
      text += one;
    }
    files.push_back({absl::StrCat("templates/", file.file), std::move(text)});
  }
  return files;
}

std::vector<RenderedFile> ComposeFile(const Plan& plan) {
  Yaml services = Yaml::Map(), volumes = Yaml::Map(), secrets = Yaml::Map();
  std::string entry;
  const std::map<std::string, int> published = PublishedPorts(plan);
  for (const ServicePlan& service : plan.services) {
    for (const InstancePlan& workload : service.workloads) {
      services.Add(workload.name, ComposeService(plan, service, workload, published));
      if (service.keeps_data()) volumes.Add(workload.name, Yaml::Map());
      if (service.spec->entry) entry = workload.name;
    }
  }
  for (const std::string& secret : plan.Secrets())
    secrets.Add(secret, Yaml::Map({{"file", absl::StrCat("./", secret)}}));
  if (!plan.dashboard.empty() && At(plan.values, "dashboard.enabled")->IsTrue()) {
    const std::string name = plan.dashboard_name();
    Yaml dashboard =
        ComposeContainer(plan, kDashboard, name, plan.dashboard, "unless-stopped", "dashboard.resources");
    services.Add(
        name, dashboard.Add("ports",
                            Yaml::List({absl::StrCat("127.0.0.1:", kDashboardPort, ":", kDashboardPort)})));
  }
  if (!plan.prepare.empty()) {
    // It fails until the application serves.
    const std::string name = absl::StrCat(plan.topology.application, "-prepare");
    Yaml prepare = ComposeContainer(plan, "prepare", name, plan.prepare, "on-failure", "prepare.resources");
    prepare.Find("tmpfs")->Push(kDataFolder);
    AddSecrets(plan.topology.prepare_secrets, &prepare);
    services.Add(name, prepare.Add("depends_on", Yaml::List({entry})));
  }
  // No name, which Compose 1 refuses: a project has that of its folder.
  Yaml file = Yaml::Map({{"services", std::move(services)}});
  if (!volumes.empty()) file.Add("volumes", std::move(volumes));
  if (!secrets.empty()) file.Add("secrets", std::move(secrets));
  return {{"compose.yaml", kMadeBy + file.Write()}};
}

}  // namespace curtail::tool
