// SPDX-License-Identifier: Apache-2.0
//
// What others write: URLs, words and passwords.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/kit/index/text_index.h"
#include "apps/kit/index/words.h"
#include "apps/social/common/urls.h"
#include "curtail/base/temp_dir_testing.h"

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

}  // namespace
}  // namespace curtail::social
