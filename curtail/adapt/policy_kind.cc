// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/policy_kind.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/adapt/internal/policies.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

absl::Status Bad(std::string_view spec, std::string_view why) {
  return absl::InvalidArgumentError(Join("policy \"", spec, "\": ", why));
}

std::vector<const PolicyKind*> AllPolicies(PolicyKinds own) {
  std::vector<const PolicyKind*> all(std::begin(internal::kPolicies), std::end(internal::kPolicies));
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

// The argument in `text` if that names a policy of this kind. One that is required may be missing:
// make() says how.
std::optional<std::string_view> ArgumentFor(const PolicyKind& kind, std::string_view text) {
  if (text == kind.name) return "";
  if (kind.argument.empty() || !text.starts_with(kind.name)) return std::nullopt;
  text.remove_prefix(kind.name.size());
  const bool optional = kind.argument.starts_with('[');
  if (!text.starts_with(':') || (optional && text == ":")) return std::nullopt;
  return text.substr(1);
}

}  // namespace

absl::StatusOr<Config> PolicyRequest::RunnableConfig(std::string_view text) const {
  absl::StatusOr<Config> config = Config::Parse(text);
  if (!config.ok() || runs(*config)) return config;
  return absl::InvalidArgumentError(Join("the service cannot run under ", config->ToString()));
}

bool PolicySpec::NeedsProfile() const {
  return kind->profile == ProfileUse::kRequired ||
         (kind->profile == ProfileUse::kUnlessArgument && argument.empty());
}

bool PolicySpec::TakesProfile() const { return NeedsProfile() || kind->profile == ProfileUse::kOptional; }

PolicyKinds LibraryPolicies() { return internal::kPolicies; }

std::string PolicyNames(PolicyKinds own) {
  const std::vector<const PolicyKind*> all = AllPolicies(own);
  std::string names;
  for (const PolicyKind* kind : all) {
    const std::string_view before = kind == all.front() ? "" : kind == all.back() ? " and " : ", ";
    names += Join(before, kind->name, kind->argument);
  }
  return names;
}

std::string PolicyHelp(std::string_view indent, PolicyKinds own) {
  const std::vector<const PolicyKind*> all = AllPolicies(own);
  size_t width = 0;
  for (const PolicyKind* kind : all) width = std::max(width, kind->name.size() + kind->argument.size());
  std::string help;
  for (const PolicyKind* kind : all) {
    std::string name = Join(kind->name, kind->argument);
    name.resize(width + 2, ' ');
    help += Join(indent, name, kind->summary, "\n");
  }
  return help;
}

std::string_view PolicyThatUses(ProfileUse profile) {
  for (const PolicyKind* kind : internal::kPolicies) {
    if (kind->profile == profile) return kind->name;
  }
  return {};
}

std::string FixedPolicy(const Config& config) {
  const auto fixed = std::find_if(std::begin(internal::kPolicies), std::end(internal::kPolicies),
                                  [](const PolicyKind* kind) { return !kind->switches; });
  return Join((*fixed)->name, ":", config.ToString());
}

absl::StatusOr<PolicySpec> ParsePolicy(std::string_view text, PolicyKinds own) {
  const std::vector<const PolicyKind*> all = AllPolicies(own);
  std::optional<PolicySpec> found;
  for (const PolicyKind* kind : all) {
    const std::optional<std::string_view> argument = ArgumentFor(*kind, text);
    if (!argument) continue;
    if (found)
      return Bad(text, Join("two policies have the name ", kind->name, "; rename the program's own"));
    found = {.text = text, .argument = *argument, .kind = kind};
  }
  if (!found) return Bad(text, Join("there is ", PolicyNames(own)));
  return *found;
}

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(const PolicySpec& spec, const Profile* profile,
                                                   const PolicyOptions& options) {
  if (spec.kind->profile == ProfileUse::kRequired && profile == nullptr) {
    return Bad(spec.text, Join("needs a profile; train one, or use ", PolicyThatUses(ProfileUse::kOptional)));
  }
  const ConfigFilter runs = [style = RunsUnder(options.style), &options](const Config& config) {
    return style(config) && (!options.allowed || options.allowed(config));
  };
  absl::StatusOr<std::unique_ptr<Policy>> policy =
      spec.kind->make({.argument = spec.argument, .profile = profile, .runs = runs, .options = options});
  if (!policy.ok()) return Bad(spec.text, Message(policy.status()));
  return policy;
}

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view text, const Profile* profile,
                                                   const PolicyOptions& options) {
  const absl::StatusOr<PolicySpec> spec = ParsePolicy(text);
  if (!spec.ok()) return spec.status();
  return MakePolicy(*spec, profile, options);
}

}  // namespace curtail
