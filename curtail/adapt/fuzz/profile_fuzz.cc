// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a profile: an error or a profile, which then survives the round trip and gives an envelope that
// never chooses a config beyond what it sustained while another sustains the load.
//
// Raw input seldom gets past the JSON parser, so half of the inputs are edits of a small valid profile: pairs
// of bytes, where and what.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "curtail/adapt/envelope.h"
#include "curtail/adapt/profile.h"

namespace {

using namespace curtail;

void Require(bool holds) {
  if (!holds) std::abort();
}

const std::string& ValidText() {
  static const std::string text = [] {
    Profile profile;
    profile.service = "a.B";
    profile.loads = {10, 20, 40};
    for (const char* name : {"SIP1", "SDB1-2"}) {
      for (double load : profile.loads) {
        const Config config = Config::Parse(name).value();
        profile.cells.push_back(
            {config, load, 0, 1, load, 2, load, 0, load > 20 && config.workers == 0, load / 100});
      }
    }
    Summarize(profile);
    profile.fences = {{{"a.C", "a.D"}, 3, 100, 8, true, Config::Parse("SDB1-4").value()}};
    return ProfileJson(profile).value();
  }();
  return text;
}

void Check(std::string_view text) {
  const absl::StatusOr<Profile> profile = ParseProfile(text);
  if (!profile.ok()) return Require(!profile.status().message().empty());
  const absl::StatusOr<std::string> written = ProfileJson(*profile);
  Require(written.ok() && ParseProfile(*written).value() == *profile);
  const absl::StatusOr<Envelope> envelope = Envelope::Make(*profile);
  if (!envelope.ok()) return;
  for (double load : profile->loads) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const Config& config : envelope->configs())
      lowest = std::min(lowest, envelope->Predict(config, load).value());
    // At a limit itself the config to its right is chosen already.
    const double chosen = envelope->Predict(envelope->Best(load), load).value();
    Require(chosen < std::numeric_limits<double>::infinity() || lowest == chosen ||
            envelope->Sustains(envelope->Best(load)).value() >= load);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0 && (data[0] & 1) != 0) {
    Check({reinterpret_cast<const char*>(data) + 1, size - 1});
    return 0;
  }
  std::string text = ValidText();
  for (size_t i = 1; i + 2 < size && i < 60; i += 3) {
    text[(data[i] * 256u + data[i + 1]) % text.size()] = static_cast<char>(data[i + 2]);
  }
  Check(text);
  return 0;
}
