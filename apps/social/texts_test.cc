// SPDX-License-Identifier: Apache-2.0
//
// What others write: URLs, words and passwords.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/kit/temp_dir.h"
#include "apps/social/post_index.h"
#include "apps/social/urls.h"
#include "apps/social/words.h"

namespace curtail::social {
namespace {

using std::string_literals::operator""s;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> UrlsIn(const std::string& text) {
  std::vector<std::string> urls;
  for (const TextSpan& span : FindUrls(text)) urls.push_back(text.substr(span.begin, span.size));
  return urls;
}

TEST(Urls, OnlyThoseOfHttpWithAHost) {
  for (const char* url : {"http://a", "HTTP://a.example/b?c#d", "https://[::1]:8443/",
                          "https://b\xc3\xbc"
                          "cher.example/\xe6\x9c\xac"}) {
    EXPECT_TRUE(CheckUrl(url).ok()) << url;
  }
  for (const std::string& url :
       {""s, "http://"s, "http:///path"s, "https://?q"s, "javascript:alert(1)"s,
        "JaVaScRiPt://a/%0aalert(1)"s, "data:text/html,x"s, "ftp://a"s, "//a"s, "a.example"s, " http://a"s,
        "http://a b"s, "http://a\nb"s, "http://a\0b"s, "http://user:word@a"s, "http://a:0"s,
        "http://a:99999"s, "http://::1/"s, "http://a/" + std::string(2048, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckUrl(url))) << url;
  }
}

TEST(Urls, AreFoundInTexts) {
  EXPECT_THAT(UrlsIn("see http://a/b, HTTPS://C.d! And (http://e/f)."),
              ElementsAre("http://a/b", "HTTPS://C.d", "http://e/f"));
  EXPECT_THAT(UrlsIn("[a link](http://a/b) <http://c> \"http://d\" http://[::1]/x]"),
              ElementsAre("http://a/b", "http://c", "http://d", "http://[::1]/x"));
  EXPECT_THAT(UrlsIn("http://a/wiki/C_(language) (http://a/C_(x))"),
              ElementsAre("http://a/wiki/C_(language)", "http://a/C_(x)"));
  EXPECT_THAT(UrlsIn("http://a\nhttp://b\thttp://c"), ElementsAre("http://a", "http://b", "http://c"));
  EXPECT_THAT(UrlsIn("http:// https://? xhttp://a Xhttp://b _http://c \xc3\xa9http://d javascript:http://e"),
              ElementsAre("http://e"));
  EXPECT_THAT(UrlsIn("http://a/" + std::string(2040, 'x') + " http://b"), ElementsAre("http://b"));
}

class WordsTest : public testing::Test {
 protected:
  WordsTest() {
    auto index = PostIndex::Open(dir_.File("index"), /*sync=*/false);
    EXPECT_TRUE(index.ok()) << index.status();
    index_ = *std::move(index);
  }
  // True if a post of this text is found by the query.
  bool Finds(const std::string& query, const std::string& text) {
    const PostIndex::Change change{.post = ++last_, .text = text};
    EXPECT_TRUE(index_->Apply({&change, 1}).ok());
    std::vector<PostIndex::Hit> hits;
    const absl::Status found = index_->Find({.text = query, .newest = true, .limit = 1}, &hits);
    EXPECT_TRUE(found.ok()) << found;
    return !hits.empty() && hits[0].post == last_;
  }

  const apps::TempDir dir_;
  std::unique_ptr<PostIndex> index_;
  uint64_t last_ = 0;
};

TEST_F(WordsTest, AreTheSameHoweverTheyAreWritten) {
  EXPECT_TRUE(Finds("STRASSE",
                    "Stra\xc3\x9f"
                    "e"));
  EXPECT_TRUE(
      Finds("stra\xc3\x9f"
            "e",
            "STRASSE"));
  EXPECT_TRUE(Finds("\xce\x9f\xce\x94\xce\x9f\xce\xa3", "\xce\xbf\xce\xb4\xce\xbf\xcf\x82"));  // final sigma
  EXPECT_TRUE(Finds("caf\xc3\xa9", "cafe\xcc\x81"));  // composed and not
  EXPECT_TRUE(Finds("file", "\xef\xac\x81le"));       // a ligature
  EXPECT_TRUE(Finds("it's", "IT'S"));
  EXPECT_FALSE(Finds("cafe", "caf\xc3\xa9"));
  EXPECT_TRUE(
      Finds("broken\xff"
            "bytes",
            "broken\xff"
            "bytes"));
}

TEST_F(WordsTest, ALongWordIsNotPassedOver) {
  const std::string most(240, 'a');
  EXPECT_TRUE(Finds(most, "a word: " + most));
  EXPECT_TRUE(Finds(std::string(65, 'b'), std::string(65, 'b')));
  EXPECT_FALSE(Finds("word " + std::string(100, 'c'), "a word"));
  EXPECT_FALSE(Finds("word " + std::string(241, 'd'), "a word " + std::string(241, 'd')));
}

TEST(Passwords, AreTheSameFromEachKeyboard) {
  EXPECT_EQ(Composed("pa\xcc\x8a"
                     "ss"),
            "p\xc3\xa5ss");
  EXPECT_EQ(Composed("Pass \xef\xac\x81"), "Pass \xef\xac\x81");  // case and ligatures count
  EXPECT_EQ(Composed("\xff"), "\xff");
}

}  // namespace
}  // namespace curtail::social
