// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/profile_file.h"

#include "curtail/adapt/machine.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxProfileBytes = size_t{64} << 20;

}  // namespace

absl::StatusOr<Profile> ReadProfileFile(const std::string& path, bool any_machine) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxProfileBytes);
  if (!text.ok()) return absl::InvalidArgumentError(Join("profile: ", Message(text.status())));
  absl::StatusOr<Profile> profile = ParseProfile(*text);
  if (!profile.ok()) {
    return absl::InvalidArgumentError(internal::JsonFileError(Join("profile ", path), profile.status()));
  }
  if (absl::Status fits = CheckProfileFits(*profile, {}, ThisMachineFingerprint(), any_machine); !fits.ok()) {
    return absl::InvalidArgumentError(Join("profile ", path, ": ", Message(fits),
                                           "; train here, or take it all the same with --any-machine"));
  }
  return profile;
}

}  // namespace curtail::tool
