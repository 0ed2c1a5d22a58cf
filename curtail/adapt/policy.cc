// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/policy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "curtail/adapt/internal/policies.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

using internal::RateSource;

ConfigFilter FilterOf(const PolicyOptions& options) {
  return [runs = RunsUnder(options.style), allowed = options.allowed](const Config& config) {
    return runs(config) && (!allowed || allowed(config));
  };
}

absl::Status Bad(std::string_view spec, std::string_view why) {
  return absl::InvalidArgumentError(Join("policy \"", spec, "\": ", why));
}

absl::StatusOr<Config> ConfigFor(std::string_view spec, std::string_view text, const ConfigFilter& filter) {
  absl::StatusOr<Config> config = Config::Parse(text);
  if (!config.ok()) return Bad(spec, Message(config.status()));
  if (!filter(*config)) return Bad(spec, Join("the service cannot run under ", config->ToString()));
  return config;
}

// The SDB config of the profile that sustains most, of those that sustain all the fastest at the highest load.
absl::StatusOr<Config> PeakSdb(std::string_view spec, const Profile* profile, const ConfigFilter& filter) {
  if (profile == nullptr) return Bad(spec, "needs a profile, or a config as in ipi:SDB1-50");
  const absl::StatusOr<Envelope> sdb = Envelope::Make(*profile, [&](const Config& config) {
    return filter(config) && config.model == Model{Waiting::kSync, Execution::kDispatch, Reception::kBlock};
  });
  if (!sdb.ok()) return Bad(spec, "the profile has no SDB config; train one, or name one as in ipi:SDB1-50");
  return sdb->Best(1e18);
}

absl::StatusOr<std::unique_ptr<Policy>> MakeIpiFor(std::string_view spec, std::string_view text,
                                                   const Profile* profile, const PolicyOptions& options) {
  if (options.style == ServiceStyle::kContinuation)
    return Bad(spec, "is for synchronous models only; use mutune");
  const ConfigFilter filter = FilterOf(options);
  const absl::StatusOr<Config> base =
      text.empty() ? PeakSdb(spec, profile, filter) : ConfigFor(spec, text, filter);
  if (!base.ok()) return base.status();
  if (base->model.waiting != Waiting::kSync)
    return Bad(spec, "is for synchronous models only, such as SDB1-50");
  return internal::MakeIpi(*base, std::max(options.cpus, 1));
}

absl::StatusOr<std::unique_ptr<Policy>> MakeOnlineFor(std::string_view spec, const Profile* profile,
                                                      const PolicyOptions& options) {
  const ConfigFilter filter = FilterOf(options);
  std::optional<Envelope> expected;
  if (profile != nullptr) {
    absl::StatusOr<Envelope> envelope = Envelope::Make(*profile, filter);
    if (envelope.ok()) expected = *std::move(envelope);
  }
  std::vector<Config> configs;
  std::copy_if(options.configs.begin(), options.configs.end(), std::back_inserter(configs), filter);
  if (options.configs.empty() && expected)
    configs.assign(expected->configs().begin(), expected->configs().end());
  if (configs.empty())
    return Bad(spec, "needs a profile or a list of configs that the service can run under");
  return internal::MakeOnline(std::move(configs), std::move(expected), options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view spec, const Profile* profile,
                                                   const PolicyOptions& options) {
  const size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string_view argument = colon == std::string_view::npos ? "" : spec.substr(colon + 1);
  const bool alone = colon == std::string_view::npos;
  if (name == "static") {
    const absl::StatusOr<Config> config = ConfigFor(spec, argument, FilterOf(options));
    if (!config.ok()) return config.status();
    return internal::MakeStatic(*config);
  }
  if (name == "ipi" && (alone || !argument.empty())) return MakeIpiFor(spec, argument, profile, options);
  if (name == "online" && alone) return MakeOnlineFor(spec, profile, options);
  const bool paper = name == "mutune" && argument == "paper";
  if (!paper && !(alone && (name == "mutune" || name == "fm" || name == "tbd"))) {
    return Bad(spec, "there is static:CONFIG, mutune, mutune:paper, fm, tbd, ipi[:CONFIG] and online");
  }
  if (profile == nullptr) return Bad(spec, "needs a profile; train one, or use online");
  if (name == "fm") return internal::MakeFm(*profile, FilterOf(options), options);
  const bool literal = paper || name == "tbd";
  absl::StatusOr<Envelope> envelope =
      Envelope::Make(*profile, FilterOf(options), {.merge_within_noise = !literal});
  if (!envelope.ok()) return Bad(spec, Message(envelope.status()));
  const RateSource source = paper ? RateSource::kPaper : literal ? RateSource::kWindow : RateSource::kSlow;
  return internal::MakeMutune(*std::move(envelope), source, options);
}

}  // namespace curtail
