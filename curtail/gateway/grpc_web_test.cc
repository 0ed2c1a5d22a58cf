// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/grpc_web.h"

#include "gtest/gtest.h"

namespace curtail::gateway {
namespace {

using std::string_literals::operator""s;

TEST(GrpcWebTest, TellsItsContentTypes) {
  EXPECT_EQ(WebFormOf("application/grpc-web"), WebForm::kBinary);
  EXPECT_EQ(WebFormOf("application/grpc-web+proto"), WebForm::kBinary);
  EXPECT_EQ(WebFormOf("application/grpc-web-text; charset=x"), WebForm::kText);
  EXPECT_EQ(WebFormOf("application/grpc-websocket"), std::nullopt);
  EXPECT_EQ(WebFormOf("application/grpc"), std::nullopt);
}

TEST(GrpcWebTest, ReadsOneMessage) {
  EXPECT_EQ(*WebMessage(WebForm::kBinary, "\0\0\0\0\3abc"s), "abc");
  EXPECT_EQ(*WebMessage(WebForm::kBinary, "\0\0\0\0\0"s), "");
  EXPECT_EQ(*WebMessage(WebForm::kText, "AAAAAANhYmM="), "abc");
  EXPECT_EQ(*WebMessage(WebForm::kText, "AAAAAAM=YWJj"), "abc") << "two chunks, each padded";
}

TEST(GrpcWebTest, RefusesTheRest) {
  const auto code = [](WebForm form, const std::string& body) {
    return WebMessage(form, body).status().code();
  };
  using enum absl::StatusCode;
  EXPECT_EQ(code(WebForm::kBinary, ""), kUnimplemented);
  EXPECT_EQ(code(WebForm::kBinary, "\0\0\0"s), kInvalidArgument);
  EXPECT_EQ(code(WebForm::kBinary, "\0\0\0\0\4abc"s), kInvalidArgument);
  EXPECT_EQ(code(WebForm::kBinary,
                 "\0\xff\xff\xff\xff"
                 "abc"s),
            kInvalidArgument);
  EXPECT_EQ(code(WebForm::kBinary, "\0\0\0\0\1ab"s), kUnimplemented);
  EXPECT_EQ(code(WebForm::kBinary, "\1\0\0\0\1a"s), kUnimplemented);
  EXPECT_EQ(code(WebForm::kBinary, "\7\0\0\0\1a"s), kInvalidArgument);
  EXPECT_EQ(code(WebForm::kText, "!!!!"), kInvalidArgument);
  EXPECT_EQ(code(WebForm::kText, "AA="), kInvalidArgument);
}

TEST(GrpcWebTest, WritesMessageAndTrailers) {
  ReplyMetadata metadata;
  metadata.initial.Add("x-head", "h");
  metadata.trailing.Add("x-trail-bin", "\1"s);
  const HttpReply reply = WebReply(WebForm::kBinary, absl::OkStatus(), "abc", metadata);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "\0\0\0\0\3abc\x80\0\0\0\x1fgrpc-status:0\r\nx-trail-bin:AQ\r\n"s);
  EXPECT_EQ(reply.headers[0].first, "x-head");
  const HttpReply text = WebReply(WebForm::kText, absl::OkStatus(), "", {});
  EXPECT_EQ(text.body.size() % 4, 0u);
}

// Property: a server behind the gateway cannot steer browsers, nor open the gateway to pages.
TEST(GrpcWebTest, MetadataIsNotAHeaderThatBrowsersObey) {
  Metadata metadata;
  for (const std::string_view key :
       {"access-control-allow-origin", "set-cookie", "set-cookie2", "location", "refresh", "clear-site-data",
        "content-security-policy", "cross-origin-opener-policy", "strict-transport-security", "cache-control",
        "sec-websocket-accept", "x-content-type-options", "x-frame-options", "vary", "www-authenticate"}) {
    metadata.Add(key, "v");
  }
  for (const auto& [name, value] : WebHeaders(WebForm::kBinary, metadata)) {
    EXPECT_TRUE(name == "content-type" || name.starts_with("grpc-metadata-")) << name;
  }
  metadata.Clear();
  metadata.Add("x-shelf", "one");
  metadata.Add("shelf", "two");
  const auto headers = WebHeaders(WebForm::kBinary, metadata);
  EXPECT_EQ(headers[0].first, "x-shelf");
  EXPECT_EQ(headers[1].first, "shelf");
}

TEST(GrpcWebTest, AnErrorHasNoMessage) {
  const HttpReply reply = WebReply(WebForm::kBinary, absl::NotFoundError("no \n"), "ignored", {});
  EXPECT_EQ(reply.body, "\x80\0\0\0\x24grpc-status:5\r\ngrpc-message:no %0A\r\n"s);
}

}  // namespace
}  // namespace curtail::gateway
