// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/path_template.h"

#include "curtail/base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// The bindings of a match, or "no match".
std::string Matched(std::string_view text, std::string_view path) {
  const absl::StatusOr<PathTemplate> pattern = PathTemplate::Parse(text);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  std::vector<Binding> bindings;
  if (!pattern.ok() || !pattern->Match(path, &bindings)) return "no match";
  std::string all;
  for (const auto& [field, value] : bindings) all += Join(all.empty() ? "" : " ", field, "=", value);
  return all;
}

TEST(PathTemplateTest, Literals) {
  EXPECT_EQ(Matched("/v1/shelves", "/v1/shelves"), "");
  EXPECT_EQ(Matched("/v1/shelves", "/v1/%73helves"), "");
  for (const char* path :
       {"/v1", "/v1/", "/v1/shelves/", "/v1/shelves/1", "/v1/shelf", "v1/shelves", "", "/"}) {
    EXPECT_EQ(Matched("/v1/shelves", path), "no match") << path;
  }
}

TEST(PathTemplateTest, AVariableTakesASegment) {
  EXPECT_EQ(Matched("/v1/shelves/{shelf}/books/{book.id}", "/v1/shelves/7/books/a%20b"),
            "shelf=7 book.id=a b");
  EXPECT_EQ(Matched("/v1/shelves/{shelf}", "/v1/shelves/a%2Fb"), "shelf=a/b");
  EXPECT_EQ(Matched("/v1/shelves/{shelf}", "/v1/shelves/"), "no match");
  EXPECT_EQ(Matched("/v1/shelves/{shelf}", "/v1/shelves/1/2"), "no match");
}

TEST(PathTemplateTest, AVariableTakesSegmentsOfItsOwnForm) {
  EXPECT_EQ(Matched("/v1/{name=shelves/*/books/*}", "/v1/shelves/1/books/2"), "name=shelves/1/books/2");
  EXPECT_EQ(Matched("/v1/{name=shelves/*}", "/v1/shelves/a%2Fb%20c"), "name=shelves/a%2Fb c");
  EXPECT_EQ(Matched("/v1/{name=shelves/*}", "/v1/books/1"), "no match");
}

TEST(PathTemplateTest, TwoStarsTakeTheRest) {
  EXPECT_EQ(Matched("/v1/{name=files/**}", "/v1/files/a/b/c"), "name=files/a/b/c");
  EXPECT_EQ(Matched("/v1/{name=files/**}", "/v1/files"), "name=files");
  EXPECT_EQ(Matched("/v1/{name=**}:copy", "/v1/a/b:copy"), "name=a/b");
}

TEST(PathTemplateTest, TwoStarsMayComeBeforeTheEnd) {
  EXPECT_EQ(Matched("/v2/{name=**}/tags/list", "/v2/a/b/c/tags/list"), "name=a/b/c");
  EXPECT_EQ(Matched("/v2/{name=**}/tags/list", "/v2/tags/list"), "name=");
  EXPECT_EQ(Matched("/v2/{name=**}/tags/list", "/v2/tags/tags/list/tags/list"), "name=tags/tags/list");
  EXPECT_EQ(Matched("/v2/{name=**}/manifests/{tag}", "/v2/a/b/manifests/1.0"), "name=a/b tag=1.0");
  EXPECT_EQ(Matched("/{name=a/**/c/*}:get", "/a/b/b/c/d:get"), "name=a/b/b/c/d");
  EXPECT_EQ(Matched("/**/c", "/c"), "");
  for (const char* path : {"/v2/list", "/v2/a/tags", "/v2/a/tags/list/", "/v1/a/tags/list", "/v2", "/"})
    EXPECT_EQ(Matched("/v2/{name=**}/tags/list", path), "no match") << path;
}

TEST(PathTemplateTest, TheMoreSpecificGoesFirst) {
  const char* const sorted[] = {"/v1/a/b:do", "/v1/{name=**}:do", "/v1/a/b", "/v1/a/{b}", "/v1/a/{b=**}",
                                "/v1/a",      "/v1/{a}/b",        "/v1/{a}", "/v1/**"};
  for (size_t i = 0; i < std::size(sorted); ++i) {
    for (size_t j = 0; j < std::size(sorted); ++j) {
      EXPECT_EQ(PathTemplate::Parse(sorted[i])->IsMoreSpecificThan(*PathTemplate::Parse(sorted[j])), i < j)
          << sorted[i] << " and " << sorted[j];
    }
  }
}

TEST(PathTemplateTest, AVerbEndsThePath) {
  EXPECT_EQ(Matched("/v1/books/{book}:lend", "/v1/books/3:lend"), "book=3");
  EXPECT_EQ(Matched("/v1/books/{book}:lend", "/v1/books/3"), "no match");
  EXPECT_EQ(Matched("/v1/books/{book}:lend", "/v1/books/lend"), "no match");
}

TEST(PathTemplateTest, ErrorsNameThePlace) {
  const auto error = [](std::string_view text) {
    return std::string(Message(PathTemplate::Parse(text).status()));
  };
  EXPECT_THAT(error("v1"), HasSubstr("character 1: a path begins with '/'"));
  EXPECT_THAT(error("/v1//a"), HasSubstr("character 5: a segment is missing"));
  EXPECT_THAT(error("/v1/{a"), HasSubstr("'}' is missing"));
  EXPECT_THAT(error("/v1/{a={b}}"), HasSubstr("a variable in a variable"));
  EXPECT_THAT(error("/v1/**/a/**"), HasSubstr("more than once"));
  EXPECT_THAT(error("/v1/{=a}"), HasSubstr("name of a field"));
  EXPECT_THAT(error("/v1:"), HasSubstr("a verb is missing"));
  EXPECT_THAT(error("/v1}x"), HasSubstr("unexpected text"));
  EXPECT_THAT(error(std::string(5000, '/')), HasSubstr("more than 4096 bytes"));
}

}  // namespace
}  // namespace curtail::gateway
