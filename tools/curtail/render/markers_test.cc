// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/markers.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace curtail::tool {
namespace {

Yaml Values() {
  return Yaml::Map({{"replicas", 3},
                    {"name", "shop"},
                    {"none", ""},
                    {"to", "otlp=http://[fd00::1]:4318/v1:2/traces"},
                    {"labels", Yaml::Map({{"team", "carts"}, {"on", "true"}})},
                    {"Release", Yaml::Map({{"Name", "first"}})},
                    {"store", Yaml::Map({{"on", true}, {"addresses", Yaml::List({"a:1", "b:2"})}})}});
}

TEST(Markers, AreValues) {
  const std::string text = absl::StrCat("a: ", ValueOf("replicas"), "\nb: \"x", ValueOf("name"),
                                        ValueOf("store.addresses.1"), "\"\n");
  EXPECT_EQ(FillIn(text, Values()), "a: 3\nb: \"xshopb:2\"\n");
  EXPECT_EQ(AsTemplate(text),
            "a: {{ .Values.replicas }}\nb: \"x{{ .Values.name }}{{ (index .Values.store.addresses 1) }}\"\n");
}

TEST(Markers, AreConditionsOfALineAndWhatIsBelowIt) {
  const std::string text = absl::StrCat("top:\n  ", If("store.on"), "there:\n    - x\n  ", If("none"),
                                        "gone:\n    - y\n  ", IfNot("none"), "last: 1\nend: 2\n");
  EXPECT_EQ(FillIn(text, Values()), "top:\n  there:\n    - x\n  last: 1\nend: 2\n");
  EXPECT_EQ(
      AsTemplate(text),
      "top:\n{{- if .Values.store.on }}\n  there:\n    - x\n{{- end }}\n{{- if .Values.none }}\n  gone:\n"
      "    - y\n{{- end }}\n{{- if not .Values.none }}\n  last: 1\n{{- end }}\nend: 2\n");
}

TEST(Markers, AreConditionsOfItems) {
  const std::string text = absl::StrCat("- \"", If("none"), "--a=", ValueOf("none"), "\"\n- \"", If("name"),
                                        "--b=", ValueOf("name"), "\"\n- ", If("none"), "c: 1\n  d: 2\n- ",
                                        If("name"), "e: 1\n  ", If("none"), "f: 2\n");
  EXPECT_EQ(FillIn(text, Values()), "- \"--b=shop\"\n- e: 1\n");
}

TEST(Markers, ArePortsOfUrls) {
  const std::string text = absl::StrCat("port: ", PortOfUrl("to"), "\n");
  EXPECT_EQ(FillIn(text, Values()), "port: 4318\n");
  for (const char* url : {"memory", "zipkin=http://collector", "otlp=http://[fd00::12]/x"}) {
    EXPECT_EQ(FillIn(text, Yaml::Map({{"to", url}})), "port: 80\n") << url;
  }
  EXPECT_EQ(
      AsTemplate(text),
      "port: {{ .Values.to | regexFind \":[0-9]+(/.*)?$\" | regexFind \"[0-9]+\" | default \"80\" }}\n");
}

TEST(Markers, AreMapsAndLists) {
  const std::string text = absl::StrCat("labels:\n  a: 1\n  ", If("labels"), BlockOf("labels"),
                                        ": \"\"\nlist:\n  ", BlockOf("store.addresses"), ": \"\"\n");
  EXPECT_EQ(FillIn(text, Values()),
            "labels:\n  a: 1\n  team: carts\n  on: \"true\"\nlist:\n  - a:1\n  - b:2\n");
  EXPECT_EQ(
      AsTemplate(text),
      "labels:\n  a: 1\n{{- if .Values.labels }}\n  {{- toYaml .Values.labels | nindent 2 }}\n{{- end }}\n"
      "list:\n  {{- toYaml .Values.store.addresses | nindent 2 }}\n");
}

TEST(Markers, AreWhatHelmKnows) {
  const std::string text = absl::StrCat("a: ", ValueOf("Release.Name"), "\n");
  EXPECT_EQ(FillIn(text, Values()), "a: first\n");
  EXPECT_EQ(AsTemplate(text), "a: {{ .Release.Name }}\n");
}

TEST(Markers, LeaveOtherTextAlone) {
  const std::string text = "a: \"{{ x }} ?b «open\"\n";
  EXPECT_EQ(FillIn(text, Values()), text);
  EXPECT_EQ(AsTemplate(text), "a: \"{{ \"{{\" }} x }} ?b «open\"\n");
  EXPECT_TRUE(HasMarkers(text));
  EXPECT_FALSE(HasMarkers("a: b"));
}

TEST(Markers, FindNothingWhereThereIsNothing) {
  EXPECT_EQ(At(Values(), "store.off"), nullptr);
  EXPECT_EQ(At(Values(), "store.addresses.2"), nullptr);
  EXPECT_EQ(At(Values(), "store.addresses.x"), nullptr);
  EXPECT_EQ(At(Values(), "other.addresses.0"), nullptr);
}

}  // namespace
}  // namespace curtail::tool
