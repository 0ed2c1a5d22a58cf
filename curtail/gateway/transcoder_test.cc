// SPDX-License-Identifier: Apache-2.0
//
// The routes of services whose rules others have written.
#include "curtail/gateway/transcoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/rpc/status_details.h"
#include "google/rpc/error_details.pb.h"

namespace curtail::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A part of google/api/http.proto.
constexpr char kBegin[] = R"(syntax = "proto3";
package t;
import "google/protobuf/descriptor.proto";
extend google.protobuf.MethodOptions { Rule http = 72295728; }
message Rule {
  oneof pattern { string get = 2; string put = 3; string post = 4; string delete = 5; Custom custom = 8; }
  string body = 7;
  repeated Rule additional_bindings = 11;
}
message Custom { string kind = 1; string path = 2; }
message M { string name = 1; string tag = 2; }
service S {
)";

class TranscoderTest : public testing::Test {
 protected:
  // The routes of a service with these methods.
  std::unique_ptr<Transcoder> Of(const std::string& methods) {
    std::ofstream(dir_.File("t.proto")) << kBegin << methods << "}\n";
    const absl::StatusOr<Catalog> catalog = Catalog::FromProtoFiles({dir_.File("t.proto")}, {dir_.File("")});
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    return catalog.ok() ? *Transcoder::Make(*catalog) : nullptr;
  }
  static std::string Method(const std::string& name, const std::string& rule) {
    return Join("rpc ", name, "(M) returns (M) { option (http) = {", rule, "}; }\n");
  }
  static std::string Found(const Transcoder& transcoder, std::string_view verb, std::string_view path) {
    const auto match = transcoder.Find(verb, path);
    return match.ok() ? match->route->method.path : std::string(Message(match.status()));
  }

  const TempDir dir_;
};

TEST_F(TranscoderTest, TheMostSpecificRouteIsFoundWhateverTheOrder) {
  const std::string rules[] = {Method("Rest", R"(get: "/v1/{name=**}")"),
                               Method("One", R"(get: "/v1/{name}")"), Method("Own", R"(get: "/v1/own")"),
                               Method("Verb", R"(get: "/v1/{name=**}:do")"),
                               Method("Tags", R"(get: "/v1/{name=**}/tags/{tag}")")};
  for (const bool reversed : {false, true}) {
    std::string methods;
    for (const std::string& rule : rules) methods = reversed ? rule + methods : methods + rule;
    const auto transcoder = Of(methods);
    EXPECT_EQ(Found(*transcoder, "GET", "/v1/own"), "/t.S/Own");
    EXPECT_EQ(Found(*transcoder, "GET", "/v1/other"), "/t.S/One");
    EXPECT_EQ(Found(*transcoder, "GET", "/v1/a/b"), "/t.S/Rest");
    EXPECT_EQ(Found(*transcoder, "GET", "/v1/own:do"), "/t.S/Verb");
    EXPECT_EQ(Found(*transcoder, "GET", "/v1/a/b/tags/c"), "/t.S/Tags");
    EXPECT_THAT(transcoder->warnings(), IsEmpty());
  }
}

TEST_F(TranscoderTest, ACustomStarIsAnyVerb) {
  const auto transcoder =
      Of(Method("Any", R"(custom {kind: "*" path: "/v1/{name}"})") + Method("Get", R"(get: "/v1/{name}")") +
         Method("Head", R"(custom {kind: "HEAD" path: "/v1/{name}"})"));
  EXPECT_EQ(Found(*transcoder, "GET", "/v1/a"), "/t.S/Get");
  EXPECT_EQ(Found(*transcoder, "HEAD", "/v1/a"), "/t.S/Head");
  EXPECT_EQ(Found(*transcoder, "DELETE", "/v1/a"), "/t.S/Any");
  EXPECT_EQ(Found(*transcoder, "PROPFIND", "/v1/a"), "/t.S/Any");
}

TEST_F(TranscoderTest, ARuleThatCannotBeMappedIsLeftOutAlone) {
  const auto transcoder =
      Of(Method("Bad", R"(get: "/v1/{nothing}" additional_bindings {get: "/v1/bad/{name}"})") +
         Method("Worse", R"(get: "no path")") + Method("Good", R"(get: "/v1/{name}")"));
  EXPECT_EQ(Found(*transcoder, "GET", "/v1/a"), "/t.S/Good");
  EXPECT_EQ(Found(*transcoder, "GET", "/v1/bad/a"), "/t.S/Bad");
  for (const char* path : {"/t.S/Bad", "/t.S/Worse", "/t.S/Good"})
    EXPECT_EQ(Found(*transcoder, "POST", path), path);
  EXPECT_THAT(transcoder->warnings(),
              ElementsAre(HasSubstr("method /t.S/Bad: its path names a field that is not there: nothing"),
                          HasSubstr("method /t.S/Worse: path \"no path\"")));
}

TEST_F(TranscoderTest, DetailsOfAnErrorAreJson) {
  absl::Status status = absl::InvalidArgumentError("no such shelf");
  google::rpc::BadRequest request;
  request.add_field_violations()->set_field("shelf");
  request.mutable_field_violations(0)->set_description("from 1 to 9");
  AddDetail(status, request);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(2);
  AddDetail(status, retry);
  status.SetPayload("type.googleapis.com/t.M", absl::Cord("\x0a\x01n\x12\x01t"));
  status.SetPayload("example.com/google.protobuf.Duration", absl::Cord("\x08\x03"));
  status.SetPayload("type.googleapis.com/t.Unknown", absl::Cord("\xff"));
  status.SetPayload("type.googleapis.com/google.rpc.Help", absl::Cord("\xff"));
  const auto transcoder = Of(Method("Get", R"(get: "/v1/{name}")"));
  const auto json = nlohmann::json::parse(transcoder->Error(status));
  EXPECT_EQ(json["code"], 3);
  std::set<std::string> details;
  for (const auto& detail : json["details"]) details.insert(detail.dump());
  EXPECT_THAT(
      details,
      testing::UnorderedElementsAre(
          R"({"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"from 1 to 9","field":"shelf"}]})",
          R"({"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"})",
          R"({"@type":"type.googleapis.com/t.M","name":"n","tag":"t"})",
          R"({"@type":"example.com/google.protobuf.Duration","value":"3s"})",
          R"({"@type":"type.googleapis.com/t.Unknown","value":"/w"})",
          R"({"@type":"type.googleapis.com/google.rpc.Help","value":"/w"})"));
}

}  // namespace
}  // namespace curtail::gateway
