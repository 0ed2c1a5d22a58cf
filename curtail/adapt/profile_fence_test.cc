// SPDX-License-Identifier: Apache-2.0
//
// The limits of path classes in a profile: beside cells or alone, and what the reader refuses.
#include <string>

#include "curtail/adapt/envelope.h"
#include "curtail/adapt/profile.h"
#include "curtail/adapt/profile_testing.h"
#include "curtail/base/schema_testing.h"
#include "curtail/base/strings.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Profile Limits() {
  Profile profile;
  profile.service = "test.Front";
  profile.machine = {"Test CPU", 2, "Linux 6.1.0", 8};
  profile.fences = {{{"a.Posts", "a.Users"}, 12, 4321.123456789, 64, true, ConfigOf("SDB1-16")},
                    {{"store:cache"}, 3, 100, 3, false, ConfigOf("FIB1")}};
  return profile;
}

// The fault of the limits once `edit` has changed their JSON.
template <class F>
std::string FaultOf(F edit) {
  json changed = json::parse(ProfileJson(Limits()).value());
  edit(changed);
  const absl::StatusOr<Profile> profile = ParseProfile(changed.dump());
  EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(profile.status()));
}

TEST(ProfileFence, LimitsAloneAreAProfile) {
  const absl::StatusOr<std::string> text = ProfileJson(Limits());
  ASSERT_TRUE(text.ok()) << text.status();
  KeepForSchemaTest("profile-limits", *text);
  const absl::StatusOr<Profile> again = ParseProfile(*text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(*again == Limits());
  EXPECT_FALSE(Envelope::Make(*again).ok()) << "there is no config to choose";
}

TEST(ProfileFence, CellsStandBesideLimits) {
  Profile profile = MakeProfile({100, 200}, {{"SIP1", 1e9, [](double) { return 5.; }}});
  profile.fences = Limits().fences;
  const absl::StatusOr<Profile> again = ParseProfile(ProfileJson(profile).value());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(*again == profile);
  profile.fences.clear();
  EXPECT_EQ(ProfileJson(profile).value().find("fences"), std::string::npos);
}

TEST(ProfileFence, RefusesAProfileOfNothing) {
  EXPECT_THAT(FaultOf([](json& j) { j.erase("fences"); }), HasSubstr("loads_per_s must not be empty"));
  EXPECT_THAT(FaultOf([](json& j) { j["fences"] = json::array(); }), HasSubstr("fences must not be empty"));
  EXPECT_THAT(FaultOf([](json& j) { j["loads_per_s"] = {10}; }), HasSubstr("cells must not be empty"));
}

TEST(ProfileFence, NamesEachMissingKey) {
  const json whole = json::parse(ProfileJson(Limits()).value());
  for (const auto& [key, value] : whole["fences"][1].items()) {
    EXPECT_THAT(FaultOf([&](json& j) { j["fences"][1].erase(key); }),
                HasSubstr("fences[1]." + key + " is missing"));
  }
}

TEST(ProfileFence, RefusesWhatCannotBe) {
  const auto first = [](const char* key, json value) {
    return FaultOf([&](json& j) { j["fences"][0][key] = value; });
  };
  EXPECT_THAT(first("limit", 0), HasSubstr("fences[0].limit must be at least 1"));
  EXPECT_THAT(first("limit", 65), HasSubstr("fences[0].tried must not be below the limit"));
  EXPECT_THAT(first("limit", 1e9), HasSubstr("fences[0].limit"));
  EXPECT_THAT(first("limit", 2.5), HasSubstr("whole number"));
  EXPECT_THAT(first("limit", -1), HasSubstr("whole number"));
  EXPECT_THAT(first("throughput_per_s", -1), HasSubstr("fences[0].throughput_per_s"));
  EXPECT_THAT(first("saturated", 1), HasSubstr("true or false"));
  EXPECT_THAT(first("config", "SIX1"), HasSubstr("is not a config"));
  EXPECT_THAT(first("services", json::array()), HasSubstr("fences[0].services must not be empty"));
  EXPECT_THAT(first("services", {""}), HasSubstr("fences[0].services[0] must not be empty"));
  EXPECT_THAT(first("services", {"b", "a"}), HasSubstr("services[1] must be after the one before it"));
  EXPECT_THAT(first("services", {"a", "a"}), HasSubstr("services[1] must be after the one before it"));
  EXPECT_THAT(first("services", "a"), HasSubstr("fences[0].services"));
  EXPECT_THAT(first("services", {"store:cache"}), HasSubstr("fences[1] repeats an earlier set"));
  EXPECT_THAT(first("knee", 1), HasSubstr("fences[0] has the unknown key"));
  EXPECT_THAT(FaultOf([](json& j) { j["fences"] = json(62, j["fences"][0]); }), HasSubstr("fences"));
  EXPECT_THAT(first("services", json(64, "a")), HasSubstr("fences[0].services"));
}

}  // namespace
}  // namespace curtail
