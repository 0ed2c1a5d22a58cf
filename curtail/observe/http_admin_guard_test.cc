// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/http_admin_guard.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace curtail::observe {
namespace {

using Headers = std::initializer_list<std::pair<std::string_view, std::string_view>>;

bool Passes(std::string_view verb, Headers headers, const HttpAdminAccess& access = {}) {
  wire::HttpRequest request;
  request.verb = std::string(verb);
  for (const auto& [name, value] : headers) request.headers.Add(name, value);
  return WhyRefused(request, access).empty();
}

const HttpAdminAccess kUnix{.unix_socket = true};

TEST(HttpAdminGuard, HostIsAnAddressOrAKnownName) {
  const HttpAdminAccess named{.hosts = {"metrics.example"}};
  for (const std::string_view host :
       {"127.0.0.1:9464", "127.0.0.1", "10.1.2.3:80", "[::1]:9464", "[::1]", "localhost", "LocalHost:9464",
        "localhost.:9464", "METRICS.example:1"}) {
    EXPECT_TRUE(Passes("GET", {{"host", host}}, named)) << host;
  }
  for (const std::string_view host :
       {"evil.example", "evil.example:9464", "127.0.0.1.evil.example", "", "[", "[evil]",
        "127.0.0.1@evil.example", "metrics.example.evil", "localhost..", "0x7f.1"}) {
    EXPECT_FALSE(Passes("GET", {{"host", host}}, named)) << host;
  }
  EXPECT_FALSE(Passes("GET", {}));
  EXPECT_FALSE(Passes("GET", {{"host", "localhost"}, {"host", "localhost"}}));
  EXPECT_TRUE(Passes("GET", {{"host", "evil.example"}}, kUnix)) << "no page reaches a Unix socket";
  EXPECT_TRUE(Passes("GET", {}, kUnix));
}

TEST(HttpAdminGuard, OriginIsThePortItself) {
  EXPECT_TRUE(Passes("GET", {{"host", "127.0.0.1:9464"}, {"origin", "http://127.0.0.1:9464"}}));
  for (const std::string_view origin :
       {"http://127.0.0.1:80", "https://127.0.0.1:9464", "http://evil.example", "null", ""}) {
    EXPECT_FALSE(Passes("GET", {{"host", "127.0.0.1:9464"}, {"origin", origin}})) << origin;
  }
  EXPECT_FALSE(Passes("GET", {{"host", "localhost"}, {"sec-fetch-site", "cross-site"}}));
  EXPECT_TRUE(Passes("GET", {{"host", "localhost"}, {"sec-fetch-site", "same-origin"}}));
  EXPECT_TRUE(Passes("GET", {{"host", "localhost"}, {"sec-fetch-site", "none"}}));
}

TEST(HttpAdminGuard, PostNeedsAUnixSocketOrTheToken) {
  const HttpAdminAccess with_token{.token = "secret"};
  EXPECT_TRUE(Passes("POST", {}, kUnix));
  EXPECT_TRUE(Passes("POST", {{"host", "localhost"}, {"authorization", "Bearer secret"}}, with_token));
  EXPECT_FALSE(Passes("POST", {{"host", "localhost"}, {"authorization", "Bearer secre"}}, with_token));
  EXPECT_FALSE(Passes("POST", {{"host", "localhost"}, {"authorization", "secret"}}, with_token));
  EXPECT_FALSE(Passes("POST", {{"host", "localhost"}}, with_token));
  EXPECT_FALSE(Passes("POST", {{"host", "evil.example"}, {"authorization", "Bearer secret"}}, with_token));
  EXPECT_FALSE(Passes("POST", {{"host", "localhost"}, {"authorization", "Bearer "}}));
}

}  // namespace
}  // namespace curtail::observe
