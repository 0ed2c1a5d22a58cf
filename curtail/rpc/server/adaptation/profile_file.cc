// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/adaptation/profile_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include "curtail/adapt/machine.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr size_t kMaxProfileBytes = 64u << 20;

absl::StatusOr<Profile> Read(const ServerOptions& options, const std::vector<std::string>& services) {
  const std::string file = Join("profile ", options.profile);
  const absl::StatusOr<std::string> text = ReadWholeFile(options.profile, kMaxProfileBytes);
  if (!text.ok()) return absl::InvalidArgumentError(Join("profile: ", Message(text.status())));
  absl::StatusOr<Profile> profile = ParseProfile(*text);
  if (!profile.ok()) return absl::InvalidArgumentError(JsonFileError(file, profile.status()));
  const bool ours = std::find(services.begin(), services.end(), profile->service) != services.end();
  const std::string& service = ours || services.empty() ? profile->service : services.front();
  const absl::Status fits =
      CheckProfileFits(*profile, service, ThisMachineFingerprint(), options.any_machine);
  if (!fits.ok()) return absl::InvalidArgumentError(Join(file, ": ", Message(fits)));
  return profile;
}

}  // namespace

absl::StatusOr<std::optional<Profile>> ReadServerProfile(const ServerOptions& options,
                                                         const std::vector<std::string>& services) {
  if (options.profile.empty()) return std::nullopt;
  const bool fenced = options.fence.mode != FenceMode::kOff;
  if (options.policy.empty() && !fenced) {
    return absl::InvalidArgumentError(Join("profile ", options.profile,
                                           " is given, but no policy that uses it, such as ",
                                           PolicyThatUses(ProfileUse::kRequired), ", and no fence"));
  }
  absl::StatusOr<Profile> profile = Read(options, services);
  if (!profile.ok()) return profile.status();
  if (options.policy.empty() && profile->fences.empty()) {
    return absl::InvalidArgumentError(Join("profile ", options.profile,
                                           " has no limits of path classes for the fence: find them by "
                                           "curtail train --fences, or name a policy that uses the rest"));
  }
  return std::optional<Profile>(*std::move(profile));
}

std::vector<ClassLimit> LimitsOf(const Profile& profile) {
  std::vector<ClassLimit> limits;
  for (const ProfileFence& fence : profile.fences) limits.push_back({fence.services, fence.limit});
  return limits;
}

}  // namespace curtail::internal
