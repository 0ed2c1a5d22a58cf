// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/profile_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "curtail/adapt/machine.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr size_t kMaxProfileBytes = 64u << 20;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (file == nullptr) return absl::InvalidArgumentError(std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, n);
    if (text.size() > kMaxProfileBytes) return absl::InvalidArgumentError("larger than 64 MiB");
  }
  if (std::ferror(file.get())) return absl::InvalidArgumentError(std::strerror(errno));
  return text;
}

absl::StatusOr<Profile> Read(const ServerOptions& options, const std::vector<std::string>& services) {
  const auto wrong = [&](const absl::Status& why) {
    return absl::InvalidArgumentError(Join("profile ", options.profile, ": ", Message(why)));
  };
  const absl::StatusOr<std::string> text = ReadFile(options.profile);
  if (!text.ok()) return wrong(text.status());
  absl::StatusOr<Profile> profile = ParseProfile(*text);
  if (!profile.ok()) return wrong(profile.status());
  const bool ours = std::find(services.begin(), services.end(), profile->service) != services.end();
  const std::string& service = ours || services.empty() ? profile->service : services.front();
  const absl::Status fits =
      CheckProfileFits(*profile, service, ThisMachineFingerprint(), options.any_machine);
  if (!fits.ok()) return wrong(fits);
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
