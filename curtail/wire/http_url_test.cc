// SPDX-License-Identifier: Apache-2.0
#include "curtail/wire/http_url.h"

#include "curtail/base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

TEST(HttpUrl, HasItsParts) {
  const auto url = HttpUrl::Parse("http://api.example:8080/search?q=a%20b#top");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_FALSE(url->secure);
  EXPECT_EQ(url->host, "api.example");
  EXPECT_EQ(url->port, 8080);
  EXPECT_EQ(url->authority, "api.example:8080");
  EXPECT_EQ(url->path, "/search?q=a%20b");
  EXPECT_EQ(url->Address(), "api.example:8080");
}

TEST(HttpUrl, FillsInWhatIsMissing) {
  const auto secure = HttpUrl::Parse("HTTPS://[::1]?q");
  ASSERT_TRUE(secure.ok()) << secure.status();
  EXPECT_TRUE(secure->secure);
  EXPECT_EQ(secure->host, "::1");
  EXPECT_EQ(secure->port, 443);
  EXPECT_EQ(secure->authority, "[::1]");
  EXPECT_EQ(secure->path, "/?q");
  EXPECT_EQ(secure->Address(), "[::1]:443");
  const auto plain = HttpUrl::Parse("http://host");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->port, 80);
  EXPECT_EQ(plain->path, "/");
}

TEST(HttpUrl, ZonesAreForSocketsOnly) {
  for (const char* text : {"http://[fe80::1%25eth0]:8080/", "http://[fe80::1%eth0]:8080/"}) {
    const auto url = HttpUrl::Parse(text);
    ASSERT_TRUE(url.ok()) << url.status();
    EXPECT_EQ(url->Address(), "[fe80::1%eth0]:8080");
    EXPECT_EQ(url->authority, "[fe80::1]:8080");
  }
  EXPECT_EQ(internal::WithoutZone("[fe80::1%eth0]"), "[fe80::1]");
  for (const char* other : {"", "a%b:80", "[::1]:80", "[::1%", "[::1]%a", "unix:%2fa"}) {
    EXPECT_EQ(internal::WithoutZone(other), other);
  }
}

TEST(HttpUrl, SaysWhatIsWrong) {
  const auto error = [](const std::string& text) {
    const absl::Status status = HttpUrl::Parse(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    return std::string(status.message());
  };
  using testing::HasSubstr;
  EXPECT_THAT(error("host:80"), HasSubstr("not a URL"));
  EXPECT_THAT(error("http://"), HasSubstr("no host"));
  EXPECT_THAT(error("http://:80/"), HasSubstr("no host"));
  EXPECT_THAT(error("http://h:0/"), HasSubstr("no port"));
  EXPECT_THAT(error("http://h:65536/"), HasSubstr("no port"));
  EXPECT_THAT(error("http://h:/"), HasSubstr("no port"));
  EXPECT_THAT(error("http://::1/"), HasSubstr("brackets"));
  EXPECT_THAT(error("http://u:p@h/"), HasSubstr("user"));
  EXPECT_THAT(error("http://h/a b"), HasSubstr("%20"));
  EXPECT_THAT(error("http://h/\r\nx: y"), HasSubstr("%20"));
  EXPECT_THAT(error("http://h/" + std::string(9000, 'x')), HasSubstr("longer"));
}

}  // namespace
}  // namespace curtail
