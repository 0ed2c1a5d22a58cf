// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints: what is written is read, a run goes on from any cell as if it had never stopped, and nothing
// else is accepted.
#include <string>
#include <utility>
#include <vector>

#include "curtail/adapt/profile_testing.h"
#include "curtail/adapt/training.h"
#include "curtail/adapt/training/training_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "gmock/gmock.h"

namespace curtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kVersion[] = "0.1.0";

// The samples of a world with noise and hiccups; the same for the same cell.
ProfileCell Simulated(const TrainingCell& cell) {
  Rng rng(cell.seed + cell.config_index);
  const double capacity = 100.0 * static_cast<double>(1 + cell.config_index);
  const bool saturated = cell.load_per_s > capacity || rng.Below(20) == 0;
  return Measured(cell, 100 / 3.0 + 1e3 * rng.Uniform01(), saturated);
}

// The checkpoint of a whole run, and its profile.
std::pair<std::string, Profile> WholeRun(const TrainingPlan& plan) {
  Training training(plan);
  std::string text = CheckpointHeader(plan, TestMachine(), kVersion);
  while (const std::optional<TrainingCell> next = training.Next()) {
    const ProfileCell cell = Simulated(*next);
    text += CheckpointLine(cell);
    EXPECT_TRUE(training.Tell(cell).ok());
  }
  return {text, training.MakeProfile(kVersion, TestMachine(), "2026-11-22T08:30:00Z")};
}

absl::StatusOr<Checkpoint> Read(std::string_view text, const TrainingPlan& plan) {
  return ReadCheckpoint(text, plan, TestMachine(), kVersion);
}

std::string Problem(std::string_view text, absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const absl::StatusOr<Checkpoint> found = Read(text, SmallPlan(3, 6));
  EXPECT_EQ(found.status().code(), code) << text;
  return std::string(Message(found.status()));
}

// The checkpoint of a run of the small plan, a string a line.
std::vector<std::string> Lines() {
  std::vector<std::string> lines;
  const std::string text = WholeRun(SmallPlan(3, 6)).first;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

TEST(TrainingCheckpoint, ResumedAtAnyCellTheProfileIsTheSame) {
  const TrainingPlan plan = SmallPlan(4, 7);
  const auto [text, whole] = WholeRun(plan);
  size_t cuts = 0;
  for (size_t end = text.find('\n') + 1; end <= text.size(); end = text.find('\n', end) + 1, ++cuts) {
    const absl::StatusOr<Checkpoint> found = Read(std::string_view(text).substr(0, end), plan);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->whole_bytes, end);
    Training training(plan);
    for (const ProfileCell& cell : found->cells) ASSERT_TRUE(training.Tell(cell).ok());
    while (const std::optional<TrainingCell> next = training.Next()) {
      ASSERT_TRUE(training.Tell(Simulated(*next)).ok());
    }
    ASSERT_TRUE(training.MakeProfile(kVersion, TestMachine(), "2026-11-22T08:30:00Z") == whole);
    if (end == text.size()) break;
  }
  EXPECT_EQ(cuts, whole.cells.size());
  EXPECT_LT(cuts, 3u * 4 * 7) << "some configs have stopped";
}

TEST(TrainingCheckpoint, DropsATornLineAtAnyByte) {
  const std::vector<std::string> lines = Lines();
  const std::string before = lines[0] + lines[1];
  for (size_t bytes = 0; bytes < lines[2].size(); ++bytes) {
    const absl::StatusOr<Checkpoint> found = Read(before + lines[2].substr(0, bytes), SmallPlan(3, 6));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->cells.size(), 1u);
    EXPECT_EQ(found->whole_bytes, before.size());
  }
  EXPECT_EQ(Read(before + lines[2], SmallPlan(3, 6))->cells.size(), 2u);
  EXPECT_EQ(Read(before + std::string(100, '\0'), SmallPlan(3, 6))->cells.size(), 1u);
  EXPECT_THAT(Problem(""), HasSubstr("no whole line"));
  EXPECT_THAT(Problem(lines[0].substr(0, lines[0].size() - 1)), HasSubstr("no whole line"));
}

TEST(TrainingCheckpoint, NamesTheLineThatIsBad) {
  const std::vector<std::string> lines = Lines();
  EXPECT_THAT(Problem(lines[0] + lines[1] + "{\"config\":\n" + lines[2]),
              AllOf(HasSubstr("line 3"), HasSubstr("ends too early")));
  EXPECT_THAT(Problem(lines[0] + "\n"), HasSubstr("line 2"));
  EXPECT_THAT(Problem(lines[0] + "{}\n"), AllOf(HasSubstr("line 2"), HasSubstr("is missing")));
  EXPECT_THAT(Problem(lines[0] + "[1]\n"), AllOf(HasSubstr("line 2"), HasSubstr("must be an object")));
  std::string line = lines[1];
  EXPECT_THAT(Problem(lines[0] + line.replace(line.find("p50"), 3, "p51")),
              HasSubstr("unknown key \"p51_us\""));
  line = lines[1];
  EXPECT_THAT(Problem(lines[0] + line.replace(line.find("SDB"), 3, "XYZ")), HasSubstr("is not a config"));
  line = lines[1];
  EXPECT_THAT(Problem(lines[0] + line.replace(line.find("\"failed_share\":0.0"), 18, "\"failed_share\":2.0")),
              AllOf(HasSubstr("line 2"), HasSubstr("failed_share")));
}

TEST(TrainingCheckpoint, RefusesCellsOutOfOrder) {
  const std::vector<std::string> lines = Lines();
  EXPECT_THAT(Problem(lines[0] + lines[2]), AllOf(HasSubstr("line 2"), HasSubstr("is next")));
  EXPECT_THAT(Problem(lines[0] + lines[1] + lines[1]), HasSubstr("line 3"));
  std::string all;
  for (const std::string& line : lines) all += line;
  EXPECT_TRUE(Read(all, SmallPlan(3, 6)).ok());
  EXPECT_THAT(Problem(all + lines.back()), HasSubstr("all cells are measured"));
}

TEST(TrainingCheckpoint, RefusesWhatIsNoHeader) {
  const std::vector<std::string> lines = Lines();
  EXPECT_THAT(Problem(lines[1] + lines[2]), AllOf(HasSubstr("line 1"), HasSubstr("no schema_version")));
  EXPECT_THAT(Problem("nonsense\n"), AllOf(HasSubstr("line 1"), HasSubstr("not JSON")));
  EXPECT_THAT(Problem("{\"schema_version\":2}\n"), HasSubstr("only 1 is understood"));
  EXPECT_THAT(Problem("{\"schema_version\":1}\n"), HasSubstr("not the header"));
  EXPECT_THAT(Problem(std::string(1000, '[') + "\n"), HasSubstr("nested more deeply"));
}

// The reported difference when a checkpoint of the small plan is read for another one.
template <class F>
std::string Differences(F edit) {
  TrainingPlan plan = SmallPlan(3, 6);
  MachineFingerprint machine = TestMachine();
  std::string version = kVersion;
  edit(plan, machine, version);
  const std::string text = CheckpointHeader(SmallPlan(3, 6), TestMachine(), kVersion);
  const absl::Status status = ReadCheckpoint(text, plan, machine, version).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  return std::string(Message(status));
}

TEST(TrainingCheckpoint, NamesEachFieldInWhichTheTrainingDiffers) {
  const auto plan = [](auto edit) { return Differences([&](TrainingPlan& p, auto&, auto&) { edit(p); }); };
  EXPECT_THAT(plan([](auto& p) { p.service = "a.B"; }),
              HasSubstr("plan.service (\"test.Service\" there, \"a.B\" here)"));
  EXPECT_THAT(plan([](auto& p) { p.workload = "images"; }), HasSubstr("plan.workload"));
  EXPECT_THAT(plan([](auto& p) { p.configs.pop_back(); }), HasSubstr("plan.configs"));
  EXPECT_THAT(plan([](auto& p) { std::swap(p.configs[0], p.configs[1]); }), HasSubstr("plan.configs"));
  EXPECT_THAT(plan([](auto& p) { p.loads[1] += 1e-9; }), HasSubstr("plan.loads_per_s"));
  EXPECT_THAT(plan([](auto& p) { p.repeats = 4; }), HasSubstr("plan.repeats (3 there, 4 here)"));
  EXPECT_THAT(plan([](auto& p) { p.cell += Nanos(1); }), HasSubstr("plan.cell_ns"));
  EXPECT_THAT(plan([](auto& p) { p.warmup += Nanos(1); }), HasSubstr("plan.warmup_ns"));
  EXPECT_THAT(plan([](auto& p) { p.between += Nanos(1); }), HasSubstr("plan.between_ns"));
  EXPECT_THAT(plan([](auto& p) { p.wanted_requests = 1; }), HasSubstr("plan.wanted_requests"));
  EXPECT_THAT(plan([](auto& p) { p.max_stretch = 1; }), HasSubstr("plan.max_stretch"));
  EXPECT_THAT(plan([](auto& p) { p.seed = 8; }), HasSubstr("plan.seed (7 there, 8 here)"));
  const auto machine = [](auto edit) { return Differences([&](auto&, auto& m, auto&) { edit(m); }); };
  EXPECT_THAT(machine([](auto& m) { m.cpu_model = "Z80"; }), HasSubstr("machine.cpu_model"));
  EXPECT_THAT(machine([](auto& m) { m.cpus = 3; }), HasSubstr("machine.cpus (2 there, 3 here)"));
  EXPECT_THAT(machine([](auto& m) { m.kernel = "x"; }), HasSubstr("machine.kernel"));
  EXPECT_THAT(machine([](auto& m) { m.memory_gib = 9; }), HasSubstr("machine.memory_gib"));
  EXPECT_THAT(Differences([](auto&, auto&, std::string& v) { v = "0.2.0"; }), HasSubstr("curtail_version"));
  EXPECT_THAT(Differences([](TrainingPlan& p, auto& m, auto&) { p.seed = 8, m.cpus = 3; }),
              AllOf(HasSubstr("machine.cpus (2 there, 3 here), plan.seed"), Not(HasSubstr("service"))));
}

TEST(TrainingCheckpoint, FieldsThatAreMissingOrUnknownDiffer) {
  std::string header = Lines()[0];
  header.replace(header.find("\"seed\""), 6, "\"salt\"");
  EXPECT_THAT(Problem(header, absl::StatusCode::kFailedPrecondition),
              AllOf(HasSubstr("plan.seed (missing there)"), HasSubstr("plan.\"salt\" (unknown here)")));
}

TEST(TrainingCheckpoint, KeepsEveryDigit) {
  TrainingPlan plan = SmallPlan(1, 1);
  plan.loads = {1000.0 / 3};
  plan.seed = UINT64_MAX;
  plan.workload = "\"quotes\"\nand lines \xe2\x82\xac";
  ProfileCell cell = Measured(*Training(plan).Next(), 412.1234567890123, true);
  cell.cpu_cores = 0.1234567890123456;
  const absl::StatusOr<Checkpoint> found =
      Read(CheckpointHeader(plan, TestMachine(), kVersion) + CheckpointLine(cell), plan);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->cells.size(), 1u);
  EXPECT_TRUE(found->cells[0] == cell);
}

// A name of a CPU need not be UTF-8. It cannot be written as it is, but still resumes.
TEST(TrainingCheckpoint, ResumesWhereTheMachineIsNotUtf8) {
  const TrainingPlan plan = SmallPlan(1, 1);
  const MachineFingerprint machine = {
      "Test\xff"
      "CPU",
      2, "Linux", 8};
  EXPECT_TRUE(ReadCheckpoint(CheckpointHeader(plan, machine, kVersion), plan, machine, kVersion).ok());
}

}  // namespace
}  // namespace curtail
