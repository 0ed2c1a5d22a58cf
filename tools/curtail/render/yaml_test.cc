// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/yaml.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

namespace curtail::tool {
namespace {

TEST(Yaml, KeepsTheOrderOfItsEntries) {
  const Yaml yaml = Yaml::Map({{"b", 1}, {"a", Yaml::List({"x", Yaml::Map({{"d", true}, {"c", "/tmp"}})})}});
  EXPECT_EQ(yaml.Write(), "b: 1\na:\n  - x\n  - d: true\n    c: /tmp\n");
}

TEST(Yaml, QuotesWhatIsNoTextOtherwise) {
  for (const char* text :
       {"",     "true", "No",   "on", "null", "12",        "1e3",     "0x1f", "-x",  "--flag=1",
        "a: b", "a:",   "a #b", "~",  "«v»",  "two words", "a\"b\\c", "*x",   "{a}", "é"}) {
    const std::string written = Yaml::Map({{"key", text}}).Write();
    EXPECT_EQ(written.substr(0, 6), "key: \"") << text;
    EXPECT_EQ(YAML::Load(written)["key"].as<std::string>(), text);
  }
}

TEST(Yaml, WritesOtherTextsAsTheyAre) {
  for (const char* text :
       {"a", "RollingUpdate", "app.kubernetes.io/name", "/data", "apps/v1", "dns:///a-b:8080"}) {
    EXPECT_EQ(Yaml::Map({{"key", text}}).Write(), std::string("key: ") + text + "\n");
  }
}

TEST(Yaml, WritesEmptyListsAndMaps) {
  const Yaml read = Yaml::Map({{"list", Yaml::List()}, {"map", Yaml::Map()}});
  const YAML::Node node = YAML::Load(read.Write());
  EXPECT_TRUE(node["list"].IsSequence() && node["list"].size() == 0) << read.Write();
  EXPECT_TRUE(node["map"].IsMap() && node["map"].size() == 0) << read.Write();
}

TEST(Yaml, HasCommentsAboveItsKeys) {
  Yaml yaml = Yaml::Map({{"a", 1}});
  yaml.Add("b", Yaml::Map({{"c", 2, "Inner"}}), "Outer");
  EXPECT_EQ(yaml.Write(), "a: 1\n# Outer\nb:\n  # Inner\n  c: 2\n");
}

TEST(Yaml, IsTrueAsTemplatesHaveIt) {
  for (const Yaml& yes :
       {Yaml("x"), Yaml("false"), Yaml(1), Yaml(true), Yaml::List({"x"}), Yaml::Plain("0.5")}) {
    EXPECT_TRUE(yes.IsTrue()) << yes.Write();
  }
  for (const Yaml& no : {Yaml(""), Yaml(0), Yaml(false), Yaml::List(), Yaml::Map()})
    EXPECT_FALSE(no.IsTrue());
}

}  // namespace
}  // namespace curtail::tool
