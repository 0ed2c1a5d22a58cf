// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/dashboard_objects.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/curtail/render/object_parts.h"

namespace curtail::tool {
namespace {

Yaml ContainerOf(const Plan& plan, const ObjectParts& parts) {
  const Yaml check = Yaml::Map({{"path", "/"}, {"port", kDashboardPort}});
  Yaml container = parts.Container(kDashboard, plan.dashboard, "dashboard.image");
  container.Add("env", parts.LogEnvironment(kDashboard));
  container.Add("ports", Yaml::List({Yaml::Map({{"name", "http"}, {"containerPort", kDashboardPort}})}));
  container.Add("readinessProbe",
                Yaml::Map({{"periodSeconds", 5}, {"timeoutSeconds", 2}, {"httpGet", check}}));
  container.Add(
      "livenessProbe",
      Yaml::Map(
          {{"periodSeconds", 20}, {"timeoutSeconds", 10}, {"failureThreshold", 6}, {"httpGet", check}}));
  container.Add("resources", parts.Resources("dashboard.resources"));
  container.Add("securityContext", parts.ContainerSecurity());
  container.Add("volumeMounts", Yaml::List({Yaml::Map({{"name", "tmp"}, {"mountPath", "/tmp"}})}));
  return container;
}

// It reads the pages of all services. No pod reaches it; kubectl port-forward does, which comes from the pod's own node.
Yaml PolicyOf(const Plan& plan, const ObjectParts& parts) {
  const Yaml labels = parts.ServiceLabels(kDashboard);
  const Yaml all = Yaml::Map(
      {{"podSelector", parts.Selector(Yaml::Map({{"app.kubernetes.io/name", plan.topology.application}}))}});
  const Yaml names = Yaml::Map({{"ports", Yaml::List({parts.Port(kDnsPort, "UDP"), parts.Port(kDnsPort)})}});
  const Yaml pages = Yaml::Map({{"to", Yaml::List({all})}, {"ports", Yaml::List({parts.Port(kAdminPort)})}});
  return parts.Begin("networking.k8s.io/v1", "NetworkPolicy", plan.dashboard_name(), labels)
      .Add("spec", Yaml::Map({{"podSelector", parts.Selector(labels)},
                              {"policyTypes", Yaml::List({"Ingress", "Egress"})},
                              {"egress", Yaml::List({names, pages})}}));
}

}  // namespace

ObjectFile DashboardObjects(const Plan& plan) {
  const ObjectParts parts(plan.topology.application);
  const std::string name = plan.dashboard_name();
  const Yaml labels = parts.ServiceLabels(kDashboard);
  const Yaml port = Yaml::Map({{"name", "http"}, {"port", kDashboardPort}, {"targetPort", "http"}});
  Yaml address = parts.Begin("v1", "Service", name, labels)
                     .Add("spec", Yaml::Map({{"selector", labels}, {"ports", Yaml::List({port})}}));
  Yaml pod = parts.PodBase();
  pod.Add("containers", Yaml::List({ContainerOf(plan, parts)}));
  pod.Add("volumes", Yaml::List({Yaml::Map({{"name", "tmp"}, {"emptyDir", Yaml::Map()}})}));
  const Yaml whole = Yaml::Map(
      {{"metadata", Yaml::Map({{"labels", parts.WithReleaseLabels(labels)}})}, {"spec", std::move(pod)}});
  Yaml pods =
      parts.Begin("apps/v1", "Deployment", name, labels)
          .Add("spec",
               Yaml::Map({{"replicas", 1}, {"selector", parts.Selector(labels)}, {"template", whole}}));
  return {absl::StrCat(kDashboard, ".yaml"),
          {{std::move(address), {"dashboard.enabled"}},
           {std::move(pods), {"dashboard.enabled"}},
           {PolicyOf(plan, parts), {"dashboard.enabled", "networkPolicy.enabled"}}}};
}

}  // namespace curtail::tool
