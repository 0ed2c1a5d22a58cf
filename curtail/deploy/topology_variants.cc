// SPDX-License-Identifier: Apache-2.0
//
// The implementations of a service that a command line may choose.
#include <algorithm>
#include <ranges>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "curtail/deploy/find_program.h"
#include "curtail/deploy/topology.h"

namespace curtail::deploy {
namespace {

// "cart=java, cart=go, orders=go"; those of one service, or of all.
std::string VariantsOf(const Topology& topology, const ServiceSpec* only) {
  std::vector<std::string> all;
  for (const ServiceSpec& s : topology.services) {
    if (only != nullptr && only != &s) continue;
    for (const Variant& variant : s.variants) all.push_back(absl::StrCat(s.name, "=", variant.name));
  }
  return all.empty() ? "none" : absl::StrJoin(all, ", ");
}

// The first tool of a variant that is missing; empty: it has all.
std::string MissingTool(const Variant& variant) {
  const auto missing = std::ranges::find_if_not(variant.needs, HasTool);
  return missing == variant.needs.end() ? "" : *missing;
}

// Says that the variant's program must be built, and how; empty: it need not, or nobody knows.
std::string NotBuilt(const Variant& variant) {
  const std::string& program = variant.run.front();
  if (variant.build.empty() || FindProgram(program).ok()) return "";
  return absl::StrCat(program, " is not built; build it: ", variant.build);
}

void Take(const Variant& variant, ServiceSpec* s) {
  s->variant = variant.name;
  s->run = variant.run;
  s->run_at_port.clear();
  if (variant.memory_mib) s->memory_mib = *variant.memory_mib;
  if (variant.hosted) s->hosted = variant.hosted;
  if (s->IsHosted()) return;
  s->config.clear(), s->policy.clear(), s->profile.clear();
  s->scales = s->scales && s->protocol == "http";
}

}  // namespace

absl::Status Topology::TakeVariant(std::string_view service_and_variant) {
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(service_and_variant), absl::MaxSplits('=', 1));
  const auto refuse = [&](const std::string& why, const ServiceSpec* only) {
    return absl::InvalidArgumentError(absl::StrCat("--variant ", std::string(service_and_variant), ": ", why,
                                                   "; the variants are ", VariantsOf(*this, only)));
  };
  if (parts.size() != 2) return refuse("write SERVICE=VARIANT", nullptr);
  ServiceSpec* const service = Find(parts[0]);
  if (service == nullptr) return refuse(absl::StrCat(application, " has no service ", parts[0]), nullptr);
  const auto variant = std::ranges::find(service->variants, parts[1], &Variant::name);
  if (service->variants.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--variant ", std::string(service_and_variant), ": ",
                                                   parts[0], " has no variants; leave the flag out"));
  }
  if (variant == service->variants.end())
    return refuse(absl::StrCat(parts[0], " has no variant ", parts[1]), service);
  if (!service->variant.empty() && service->variant != parts[1])
    return refuse(absl::StrCat(parts[0], " runs as ", service->variant, " already"), service);
  if (const std::string tool = MissingTool(*variant); !tool.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--variant ", std::string(service_and_variant), " needs ", tool, ", which is not ",
                     tool.starts_with('/') ? "there" : "in PATH", "; install it, or leave the variant out"));
  }
  if (const std::string not_built = NotBuilt(*variant); !not_built.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--variant ", std::string(service_and_variant), ": ", not_built));
  }
  Take(*variant, service);
  return absl::OkStatus();
}

absl::Status Topology::TakeVariants() {
  bool any = false;
  for (ServiceSpec& s : services) {
    any = any || !s.variants.empty();
    for (const Variant& variant : s.variants) {
      if (const std::string tool = MissingTool(variant); !tool.empty()) {
        left_out.push_back(
            absl::StrCat(s.name, " does not run as ", variant.name, ": ", tool, " is missing"));
      } else if (const std::string not_built = NotBuilt(variant); !not_built.empty()) {
        left_out.push_back(absl::StrCat(s.name, " does not run as ", variant.name, ": ", not_built));
      } else if (s.variant.empty()) {
        Take(variant, &s);
      }
    }
  }
  if (any) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(application, " has no service with variants in its topology"));
}

}  // namespace curtail::deploy
