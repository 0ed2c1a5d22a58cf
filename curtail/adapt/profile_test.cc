// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/profile.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>

#include "curtail/adapt/profile_testing.h"
#include "curtail/base/schema_testing.h"
#include "curtail/base/strings.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Profile Sample() {
  Profile profile = SteppedProfile();
  profile.seed = std::numeric_limits<uint64_t>::max();
  profile.cells[0].p99_us = 412.1234567890123;  // needs all digits
  profile.cells[1].failed_share = 0.1;
  profile.cells[0].cpu_cores = 0.1234567890123456;  // others were not measured
  Summarize(profile);
  profile.fences = {{{"a.Posts", "a.Users"}, 12, 4321.5, 64, true, ConfigOf("SDB1-16")}};
  return profile;
}

std::string TextOf(const Profile& profile) {
  const absl::StatusOr<std::string> text = ProfileJson(profile);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

// The fault of the sample once `edit` has changed its JSON.
template <class F>
std::string Complaint(F edit) {
  json changed = json::parse(TextOf(Sample()));
  edit(changed);
  const absl::StatusOr<Profile> profile = ParseProfile(changed.dump());
  EXPECT_FALSE(profile.ok());
  if (!profile.ok()) {
    EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
  }
  return std::string(Message(profile.status()));
}

TEST(Profile, RoundTripsExactly) {
  const Profile profile = Sample();
  const std::string text = TextOf(profile);
  const absl::StatusOr<Profile> again = ParseProfile(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(*again == profile);
  EXPECT_EQ(TextOf(*again), text);
}

TEST(Profile, IsReadWithoutTheCpuOfItsCells) {
  json without = json::parse(TextOf(Sample()));
  EXPECT_EQ(without["cells"][0]["cpu_cores"], 0.1234567890123456);
  without["cells"][0].erase("cpu_cores");
  const absl::StatusOr<Profile> read = ParseProfile(without.dump());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->cells[0].cpu_cores.has_value());
}

TEST(Profile, SummarizesRepeatsByMedianAndSpread) {
  Profile profile;
  profile.loads = {100, 200, 400};
  const auto add = [&](const char* config, double load, double p99, bool saturated) {
    const int repeat = static_cast<int>(profile.cells.size());
    profile.cells.push_back({ConfigOf(config), load, repeat, 1, p99, 1, load, 0, saturated, {}});
  };
  for (double p99 : {100., 110., 90., 104., 1000.}) add("SIP1", 100, p99, false);
  for (double p99 : {100., 200.}) add("SIP1", 200, p99, p99 == 200);
  add("SIP1", 400, 90, false);  // a fluke: beyond a load that it did not sustain
  for (double p99 : {100., 120., 140., 160.}) add("SDB1-2", 200, p99, p99 == 160);
  add("SIB1", 100, 5, true);
  Summarize(profile);
  ASSERT_EQ(profile.configs.size(), 3u);
  const ConfigSummary& sip = profile.configs[0];
  EXPECT_EQ(sip.points[0], (ProfilePoint{100, 104, 1.4826 * 6, false, false})) << "distances 4 6 14 0 896";
  EXPECT_EQ(sip.points[1], (ProfilePoint{200, 150, 1.4826 * 50, true, true})) << "half of the repeats";
  EXPECT_EQ(sip.saturation_per_s, 100);
  const ConfigSummary& sdb = profile.configs[1];
  EXPECT_EQ(sdb.points.size(), 1u);
  EXPECT_TRUE(sdb.points[0].unstable && !sdb.points[0].saturated) << "one of four saturated";
  EXPECT_FALSE(sdb.saturation_per_s.has_value());
  EXPECT_EQ(profile.configs[2].saturation_per_s, 0);
}

TEST(Profile, SaysWhereTextIsNoJson) {
  EXPECT_THAT(Message(ParseProfile("").status()), HasSubstr("is not JSON at 1:1"));
  EXPECT_THAT(Message(ParseProfile("{\n  \"schema_version\": 1,\n  \"a\" 2}").status()),
              HasSubstr("is not JSON at 3:7"));
  EXPECT_THAT(Message(ParseProfile("{\"a\":").status()), HasSubstr("ends too early"));
  EXPECT_THAT(Message(ParseProfile("{\"a\":1e999}").status()), HasSubstr("no profile has"));
  EXPECT_THAT(Message(ParseProfile(std::string(100000, '[')).status()), HasSubstr("nested more deeply"));
  EXPECT_THAT(Message(ParseProfile("{\"a\":1,\"a\":2}").status()), HasSubstr("\"a\" twice"));
  EXPECT_THAT(Message(ParseProfile("{\"a\":\"\xff\"}").status()), HasSubstr("not JSON"));
}

TEST(Profile, RefusesOtherVersions) {
  EXPECT_THAT(Message(ParseProfile("[]").status()), HasSubstr("no schema_version"));
  EXPECT_THAT(Complaint([](json& j) { j.erase("schema_version"); }), HasSubstr("no schema_version"));
  EXPECT_THAT(Complaint([](json& j) { j["schema_version"] = 2; }),
              HasSubstr("schema_version 2, and only 1 is understood"));
}

TEST(Profile, NamesEachMissingKey) {
  const json whole = json::parse(TextOf(Sample()));
  for (const auto& [key, value] : whole.items()) {
    if (key == "fences") continue;
    EXPECT_THAT(Complaint([&](json& j) { j.erase(key); }), HasSubstr(key));
  }
  for (const auto& [key, value] : whole["machine"].items()) {
    EXPECT_THAT(Complaint([&](json& j) { j["machine"].erase(key); }),
                HasSubstr("machine." + key + " is missing"));
  }
  for (const auto& [key, value] : whole["cells"][3].items()) {
    EXPECT_THAT(Complaint([&](json& j) { j["cells"][3].erase(key); }),
                HasSubstr("cells[3]." + key + " is missing"));
  }
  for (const auto& [key, value] : whole["configs"][1].items()) {
    EXPECT_THAT(Complaint([&](json& j) { j["configs"][1].erase(key); }),
                HasSubstr("configs[1]." + key + " is missing"));
  }
  for (const auto& [key, value] : whole["configs"][1]["points"][0].items()) {
    EXPECT_THAT(Complaint([&](json& j) { j["configs"][1]["points"][0].erase(key); }),
                HasSubstr("configs[1].points[0]." + key + " is missing"));
  }
}

TEST(Profile, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Complaint([](json& j) { j["sevice"] = 1; }), HasSubstr("unknown key \"sevice\""));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["p999_us"] = 1; }),
              HasSubstr("cells[0] has the unknown key"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["config"] = "SIX1"; }),
              HasSubstr("cells[0].config is not a config"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["config"] = "SIP01"; }),
              HasSubstr("must be written SIP1"));
  EXPECT_THAT(Complaint([](json& j) { j["service"] = ""; }), HasSubstr("service must not be empty"));
}

TEST(Profile, RefusesNumbersThatCannotBe) {
  EXPECT_THAT(Complaint([](json& j) { j["loads_per_s"] = {20, 100, 100}; }),
              HasSubstr("loads_per_s[2] must be above the load before it"));
  EXPECT_THAT(Complaint([](json& j) { j["loads_per_s"][0] = 0; }), HasSubstr("loads_per_s[0]"));
  EXPECT_THAT(Complaint([](json& j) { j["loads_per_s"] = json::array(), j.erase("fences"); }),
              HasSubstr("loads_per_s must not be empty"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"] = json::array(); }), HasSubstr("cells must not be empty"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["load_per_s"] = 21; }),
              HasSubstr("is not among the loads"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["p99_us"] = -1; }),
              HasSubstr("cells[0].p99_us must be a number"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["p99_us"] = 0.5; }),
              HasSubstr("must not be below p50_us"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["mean_us"] = nullptr; }), HasSubstr("cells[0].mean_us"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["failed_share"] = 1.01; }), HasSubstr("from 0 to 1"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["repeat"] = -1; }), HasSubstr("whole number"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][1]["repeat"] = 0; }),
              HasSubstr("cells[1] repeats an earlier"));
  EXPECT_THAT(Complaint([](json& j) { j["seed"] = 0.5; }), HasSubstr("seed"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["cpu_cores"] = -0.1; }),
              HasSubstr("cells[0].cpu_cores must be a number"));
  EXPECT_THAT(Complaint([](json& j) { j["cells"][0]["cpu_cores"] = nullptr; }),
              HasSubstr("cells[0].cpu_cores"));
}

TEST(Profile, RefusesASummaryThatIsNotOfTheCells) {
  EXPECT_THAT(Complaint([](json& j) { j["configs"][2]["points"][0]["p99_us"] = 1; }),
              HasSubstr("configs[2] does not follow from the cells"));
  EXPECT_THAT(Complaint([](json& j) { j["configs"][0]["saturation_per_s"] = nullptr; }),
              HasSubstr("configs[0]"));
  EXPECT_THAT(Complaint([](json& j) { j["configs"].erase(5); }), HasSubstr("configs lacks ADB1-4-4"));
  EXPECT_THAT(Complaint([](json& j) { j["configs"].push_back(j["configs"][0]); }),
              HasSubstr("without cells"));
}

TEST(Profile, IsNotWrittenWhenItCouldNotBeRead) {
  Profile profile = Sample();
  profile.cells[0].p99_us = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ProfileJson(profile).status().code(), absl::StatusCode::kInvalidArgument);
  profile = Sample();
  profile.created = "\xff";
  EXPECT_THAT(Message(ProfileJson(profile).status()), HasSubstr("UTF-8"));
  profile = Sample();
  profile.configs.clear();
  EXPECT_THAT(Message(ProfileJson(profile).status()), HasSubstr("configs lacks SIP1"));
}

TEST(Profile, FitsItsServiceAndMachineOnly) {
  const Profile profile = Sample();
  EXPECT_TRUE(CheckProfileFits(profile, "test.Service", profile.machine).ok());
  const absl::Status service = CheckProfileFits(profile, "other.Service", profile.machine);
  EXPECT_EQ(service.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(service), HasSubstr("\"test.Service\", not of \"other.Service\""));
  EXPECT_TRUE(CheckProfileFits(profile, "", profile.machine).ok());
  MachineFingerprint other = profile.machine;
  other.cpus = 64;
  other.kernel = "Linux 7";
  const std::string text(Message(CheckProfileFits(profile, "test.Service", other)));
  EXPECT_THAT(text, HasSubstr("cpus (\"2\" there, \"64\" here), kernel"));
  EXPECT_THAT(text, testing::Not(HasSubstr("memory")));
  EXPECT_TRUE(CheckProfileFits(profile, "test.Service", other, true).ok());
  EXPECT_FALSE(CheckProfileFits(profile, "other.Service", other, true).ok());
}

TEST(Profile, ThisMachineIsAlwaysTheSame) {
  const MachineFingerprint machine = ThisMachineFingerprint();
  EXPECT_EQ(machine, ThisMachineFingerprint());
  EXPECT_GT(machine.cpus, 0);
  EXPECT_GT(machine.memory_gib, 0);
  EXPECT_THAT(machine.kernel, testing::StartsWith("Linux "));
}

// The keys that the schema declares; all but `optional` are required.
void ExpectDeclared(const json& value, const json& schema, const std::set<std::string>& optional = {}) {
  std::set<std::string> keys, declared, required;
  for (const auto& [key, unused] : value.items()) keys.insert(key);
  for (const auto& [key, unused] : schema["properties"].items()) declared.insert(key);
  EXPECT_EQ(keys, declared);
  for (const std::string& key : declared) {
    if (!optional.contains(key)) required.insert(key);
  }
  EXPECT_EQ(std::set<std::string>(schema["required"].begin(), schema["required"].end()), required);
  EXPECT_EQ(schema["additionalProperties"], false);
}

TEST(Profile, SchemaDeclaresWhatIsWritten) {
  std::ostringstream text;
  text << std::ifstream(CURTAIL_PROFILE_SCHEMA).rdbuf();
  const json schema = json::parse(text.str());
  KeepForSchemaTest("profile", TextOf(Sample()));
  KeepForSchemaTest("profile-saturated",
                    TextOf(MakeProfile({100, 200}, {{"SIP1", 150, [](double) { return 5.; }}})));
  const json profile = json::parse(TextOf(Sample()));
  EXPECT_EQ(schema["properties"]["schema_version"]["const"], kProfileSchemaVersion);
  ExpectDeclared(profile, schema, {"fences"});
  ExpectDeclared(profile["fences"][0], schema["$defs"]["fence"]);
  ExpectDeclared(profile["machine"], schema["properties"]["machine"]);
  ExpectDeclared(profile["cells"][0], schema["$defs"]["cell"], {"cpu_cores"});
  ExpectDeclared(profile["configs"][0], schema["$defs"]["config"]);
  ExpectDeclared(profile["configs"][0]["points"][0], schema["$defs"]["point"]);
}

}  // namespace
}  // namespace curtail
