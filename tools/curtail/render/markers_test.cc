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
