// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/object_parts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/curtail/render/markers.h"

namespace curtail::tool {

Yaml ObjectParts::ServiceLabels(const std::string& service) const {
  return Yaml::Map({{"app.kubernetes.io/name", application_}, {"app.kubernetes.io/component", service}});
}

Yaml ObjectParts::Labels(const ServicePlan& service, const InstancePlan& workload) const {
  return ServiceLabels(service.spec->name).Add("curtail-instance", workload.instance);
}

Yaml ObjectParts::WithReleaseLabels(Yaml labels) const {
  labels.Add("app.kubernetes.io/instance", ValueOf("Release.Name"));
  return labels.Add("app.kubernetes.io/managed-by", ValueOf("Release.Service"));
}

Yaml ObjectParts::Selector(Yaml labels) const { return Yaml::Map({{"matchLabels", std::move(labels)}}); }

Yaml ObjectParts::Begin(const char* version, const char* kind, const std::string& name, Yaml labels) const {
  return Yaml::Map(
      {{"apiVersion", version},
       {"kind", kind},
       {"metadata", Yaml::Map({{"name", name}, {"labels", WithReleaseLabels(std::move(labels))}})}});
}

Yaml ObjectParts::PodBase() const {
  const Yaml security = Yaml::Map({{"runAsNonRoot", true},
                                   {"runAsUser", kUser},
                                   {"runAsGroup", kUser},
                                   {"fsGroup", kUser},
                                   {"seccompProfile", Yaml::Map({{"type", "RuntimeDefault"}})}});
  return Yaml::Map(
      {{"automountServiceAccountToken", false},
       {"enableServiceLinks", false},
       {If("imagePullSecrets") + "imagePullSecrets", Yaml::Map({{BlockOf("imagePullSecrets"), ""}})},
       {"securityContext", security}});
}

Yaml ObjectParts::Container(const std::string& name, const std::vector<std::string>& command,
                            const std::string& own_image) const {
  Yaml args = Yaml::List();
  for (size_t i = 1; i < command.size(); ++i) args.Push(command[i]);
  Yaml container = Yaml::Map({{"name", name}});
  if (own_image.empty()) {
    container.Add("image", ValueOf("image"));
  } else {
    container.Add(If(own_image) + "image", ValueOf(own_image));
    container.Add(IfNot(own_image) + "image", ValueOf("image"));
  }
  container.Add("imagePullPolicy", ValueOf("imagePullPolicy"));
  container.Add("command", Yaml::List({command.front()}));
  return container.Add("args", std::move(args));
}

Yaml ObjectParts::ContainerSecurity() const {
  return Yaml::Map({{"allowPrivilegeEscalation", false},
                    {"readOnlyRootFilesystem", true},
                    {"capabilities", Yaml::Map({{"drop", Yaml::List({"ALL"})}})}});
}

Yaml ObjectParts::LogEnvironment(const std::string& component) const {
  const Yaml pod = Yaml::Map({{"fieldRef", Yaml::Map({{"fieldPath", "metadata.name"}})}});
  return Yaml::List({Yaml::Map({{"name", "CURTAIL_LOG_FORMAT"}, {"value", ValueOf("logFormat")}}),
                     Yaml::Map({{"name", "CURTAIL_LOG_SERVICE"}, {"value", component}}),
                     Yaml::Map({{"name", "CURTAIL_LOG_INSTANCE"}, {"valueFrom", pod}})});
}

Yaml ObjectParts::Resources(const std::string& value) const {
  Yaml resources = Yaml::Map();
  for (const std::string kind : {"requests", "limits"}) {
    Yaml amounts = Yaml::Map();
    for (const std::string what : {"cpu", "memory"}) {
      amounts.Add(what, ValueOf(absl::StrCat(value, ".", kind, ".", what)));
    }
    resources.Add(kind, std::move(amounts));
  }
  return resources;
}

Yaml ObjectParts::Port(int port, const char* protocol) const {
  return Yaml::Map({{"protocol", protocol}, {"port", port}});
}

}  // namespace curtail::tool
