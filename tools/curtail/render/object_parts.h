// SPDX-License-Identifier: Apache-2.0
//
// object_parts.h - what objects of Kubernetes have in common, with markers (markers.h).
#pragma once

#include <string>
#include <vector>

#include "tools/curtail/render/workloads.h"
#include "tools/curtail/render/yaml.h"

namespace curtail::tool {

inline constexpr int kDnsPort = 53;

// The parts of one application's objects. Immutable.
class ObjectParts {
 public:
  explicit ObjectParts(std::string application) : application_(std::move(application)) {}

  // The labels by which objects find pods; they never change.
  Yaml ServiceLabels(const std::string& service) const;
  Yaml Labels(const ServicePlan& service, const InstancePlan& workload) const;
  // With those that tell people and tools of which installation an object is a part.
  Yaml WithReleaseLabels(Yaml labels) const;
  Yaml Selector(Yaml labels) const;

  Yaml Begin(const char* version, const char* kind, const std::string& name, Yaml labels) const;
  Yaml PodBase() const;
  Yaml Container(const std::string& name, const std::vector<std::string>& command,
                 const std::string& own_image = {}) const;
  // As the restricted Pod Security Standard asks.
  Yaml ContainerSecurity() const;
  // How curtail's programs write their log; others do not read it.
  Yaml LogEnvironment(const std::string& component) const;
  // `value` is where the chart has them.
  Yaml Resources(const std::string& value) const;
  Yaml Port(int port, const char* protocol = "TCP") const;

 private:
  const std::string application_;
};

}  // namespace curtail::tool
