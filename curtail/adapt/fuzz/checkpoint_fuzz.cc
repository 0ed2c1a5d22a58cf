// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a training's checkpoint: an error, or cells that a Training of the plan accepts in this
// order, and that are read again as the same when they are written.
//
// Raw input seldom gets past the header, so half of the inputs are edits of a small valid checkpoint: pairs
// of bytes, where and what.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "curtail/adapt/training.h"

namespace {

using namespace curtail;

constexpr char kVersion[] = "0.1.0";

void Require(bool holds) {
  if (!holds) std::abort();
}

const MachineFingerprint& Machine() {
  static const MachineFingerprint machine = {"CPU", 2, "Linux", 8};
  return machine;
}

const TrainingPlan& Plan() {
  static const TrainingPlan plan = {
      .service = "a.B",
      .configs = {Config::Parse("SIP1").value(), Config::Parse("SDB1-2").value()},
      .loads = {10, 20, 40},
      .workload = "w"};
  return plan;
}

const std::string& ValidText() {
  static const std::string text = [] {
    Training training(Plan());
    std::string lines = CheckpointHeader(Plan(), Machine(), kVersion);
    while (const std::optional<TrainingCell> next = training.Next()) {
      const ProfileCell cell{
          next->config, next->load_per_s, next->repeat, 1, 2, 1, 10, 0, next->load_index == 1, 0.5};
      lines += CheckpointLine(cell);
      Require(training.Tell(cell).ok());
    }
    return lines;
  }();
  return text;
}

void Check(std::string_view text) {
  const absl::StatusOr<Checkpoint> found = ReadCheckpoint(text, Plan(), Machine(), kVersion);
  if (!found.ok()) return Require(!found.status().message().empty());
  Require(found->whole_bytes <= text.size() && text[found->whole_bytes - 1] == '\n');
  Training training(Plan());
  std::string written = CheckpointHeader(Plan(), Machine(), kVersion);
  for (const ProfileCell& cell : found->cells) {
    Require(training.Tell(cell).ok());
    written += CheckpointLine(cell);
  }
  Require(ReadCheckpoint(written, Plan(), Machine(), kVersion)->cells == found->cells);
  if (found->cells.empty()) return;
  Require(ProfileJson(training.MakeProfile(kVersion, Machine(), "")).ok());
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
