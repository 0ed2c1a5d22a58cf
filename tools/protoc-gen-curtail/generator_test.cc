// SPDX-License-Identifier: Apache-2.0
#include "generator.h"

#include <gmock/gmock.h>
#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "names.h"
#include "testdata/nasty.curtail.h"
#include "testdata/no_package.curtail.h"
#include "testdata/other.curtail.h"

namespace curtail {
namespace {

namespace nasty = generator_test::v1;
using google::protobuf::Empty;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::StringOutputStream;
using google::protobuf::io::ZeroCopyInputStream;
using google::protobuf::io::ZeroCopyOutputStream;
using testing::HasSubstr;
using testing::Not;

// The files of a test, by name.
class FakeSourceTree final : public google::protobuf::compiler::SourceTree {
 public:
  explicit FakeSourceTree(std::string text) : text_(std::move(text)) {}
  ZeroCopyInputStream* Open(const std::string& name) override {
    return name == "x.proto" ? new ArrayInputStream(text_.data(), static_cast<int>(text_.size())) : nullptr;
  }

 private:
  const std::string text_;
};

class FailOnError final : public google::protobuf::compiler::MultiFileErrorCollector {
 public:
  void AddError(const std::string& file, int line, int column, const std::string& message) override {
    ADD_FAILURE() << file << ":" << line + 1 << ":" << column + 1 << ": " << message;
  }
};

// What the plugin writes, by file name.
class MemoryOutput final : public google::protobuf::compiler::GeneratorContext {
 public:
  ZeroCopyOutputStream* Open(const std::string& name) override {
    return new StringOutputStream(&files[name]);
  }
  std::map<std::string, std::string> files;
};

struct Generated {
  bool ok = false;
  std::string error;
  std::map<std::string, std::string> files;
};

// Runs the generator over a file x.proto of the given body.
Generated Generate(const std::string& body, const std::string& parameter = "") {
  FakeSourceTree tree("syntax = \"proto3\";\n" + body);
  FailOnError errors;
  google::protobuf::compiler::Importer importer(&tree, &errors);
  const google::protobuf::FileDescriptor* file = importer.Import("x.proto");
  if (file == nullptr) return {};
  MemoryOutput output;
  Generated result;
  result.ok = Generator().Generate(file, parameter, &output, &result.error);
  result.files = std::move(output.files);
  return result;
}

std::string ErrorOf(const std::string& body) {
  const Generated result = Generate(body);
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(result.files.empty());
  return result.error;
}

TEST(Generator, NamesMethodsAndServicesAsTheWireDoes) {
  EXPECT_EQ(nasty::Search::kServiceName, "curtail.generator_test.v1.Search");
  EXPECT_EQ(nasty::Search::kSearch.path, "/curtail.generator_test.v1.Search/Search");
  EXPECT_EQ(nasty::Search::kLowerCaseName.path, "/curtail.generator_test.v1.Search/lower_case_name");
  EXPECT_EQ(NoPackage::kServiceName, "NoPackage");
  EXPECT_EQ(NoPackage::kCall.path, "/NoPackage/Call");
  static_assert(std::is_same_v<decltype(nasty::Search::kLowerCaseName),
                               const Method<other::absl::Outer::Inner, Empty>>);
  static_assert(std::is_same_v<decltype(nasty::Hides::kQuery), const Method<nasty::Query, nasty::Reply>>);
}

TEST(Generator, ListsUnaryAndPerMessageHandlersButNoOtherStreams) {
  nasty::Search::Service service;
  EXPECT_EQ(service.FullName(), "curtail.generator_test.v1.Search");
  std::vector<std::string> unary, each;
  for (const MethodHandler& handler : service.Handlers()) {
    (handler.kind == MethodHandler::Kind::kUnary ? unary : each).push_back(handler.name);
  }
  EXPECT_THAT(unary, testing::ElementsAre("Search", "Nearest", "lower_case_name", "ctx", "reply", "Status",
                                          "Channel", "std"));
  EXPECT_THAT(each, testing::ElementsAre("Sum"));
  EXPECT_TRUE(nasty::Empty::Service().Handlers().empty());
}

class AddsOne final : public nasty::Search::Service {
 public:
  absl::Status Search(Context&, const nasty::Query& request, nasty::Reply* reply) override {
    reply->set_sum(request.number() + 1);
    return absl::OkStatus();
  }
};

TEST(Generator, HandlersReachTheOverride) {
  AddsOne service;
  nasty::Query query;
  query.set_number(41);
  Context ctx{Deadline::Infinite()};
  std::string bytes;
  const std::vector<MethodHandler> handlers = service.Handlers();
  ASSERT_EQ(handlers[0].name, "Search");
  ASSERT_TRUE(handlers[0].handler(ctx, query.SerializeAsString(), &bytes).ok());
  nasty::Reply reply;
  ASSERT_TRUE(reply.ParseFromString(bytes));
  EXPECT_EQ(reply.sum(), 42);
}

TEST(Generator, AnswersUnimplementedWhatIsNotOverridden) {
  AddsOne service;
  Context ctx{Deadline::Infinite()};
  std::string bytes;
  const std::vector<MethodHandler> handlers = service.Handlers();
  const absl::Status status = handlers[1].handler(ctx, "", &bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("curtail.generator_test.v1.Search.Nearest"));
}

TEST(Generator, WritesBothFilesWithoutServices) {
  const Generated result = Generate("package p;\nmessage M {}\n");
  ASSERT_TRUE(result.ok) << result.error;
  EXPECT_THAT(result.files.at("x.curtail.h"), HasSubstr("#include \"x.pb.h\""));
  EXPECT_THAT(result.files.at("x.curtail.h"), Not(HasSubstr("namespace")));
  EXPECT_THAT(result.files.at("x.curtail.cc"), HasSubstr("#include \"x.curtail.h\""));
}

TEST(Generator, KeepsCommentsAndCutsTheirTrailingBackslash) {
  const Generated result =
      Generate("// Finds things. \\\nservice S {\n  // Asks.\n  rpc Ask(M) returns (M);\n}\nmessage M {}\n");
  ASSERT_TRUE(result.ok) << result.error;
  const std::string& header = result.files.at("x.curtail.h");
  EXPECT_THAT(header, HasSubstr("\n// Finds things.\nclass S final {"));
  EXPECT_THAT(header, HasSubstr("\n    // Asks.\n    virtual ::absl::Status Ask("));
}

TEST(Generator, SaysWhichStreamsItLeavesOut) {
  const Generated result = Generate("service S { rpc Up(stream M) returns (M); }\nmessage M {}\n");
  ASSERT_TRUE(result.ok) << result.error;
  EXPECT_THAT(result.files.at("x.curtail.h"),
              HasSubstr("// Up streams in one direction, which is not supported."));
  EXPECT_THAT(result.files.at("x.curtail.h"), Not(HasSubstr("virtual")));
}

TEST(GeneratorErrors, MethodIsAKeyword) {
  EXPECT_EQ(ErrorOf("package p;\nmessage M {}\nservice S {\n  rpc delete(M) returns (M);\n}\n"),
            "x.proto:5:3: method \"p.S.delete\" is a C++ keyword; rename it");
}

TEST(GeneratorErrors, ServiceIsAKeyword) {
  EXPECT_EQ(ErrorOf("service requires {}\n"),
            "x.proto:2:1: service \"requires\" is a C++ keyword; rename it");
}

TEST(GeneratorErrors, ServiceIsNamedAsItsMember) {
  EXPECT_EQ(ErrorOf("service Stub {}\n"),
            "x.proto:2:1: service \"Stub\" has the name of a member of its own class; rename it");
}

TEST(GeneratorErrors, MethodIsNamedAsAMember) {
  EXPECT_EQ(
      ErrorOf("message M {}\nservice S {\n  rpc FullName(M) returns (M);\n}\n"),
      "x.proto:4:3: method \"S.FullName\" has the name of a member of the generated classes; rename it");
  EXPECT_EQ(
      ErrorOf("message M {}\nservice S {\n  rpc Handlers(M) returns (M);\n}\n"),
      "x.proto:4:3: method \"S.Handlers\" has the name of a member of the generated classes; rename it");
}

TEST(GeneratorErrors, TwoMethodsNeedOneConstant) {
  EXPECT_EQ(
      ErrorOf("message M {}\nservice S {\n  rpc Query(M) returns (M);\n  rpc query(M) returns (M);\n}\n"),
      "x.proto:5:3: method \"S.query\" and \"Query\" both need the constant kQuery; rename one");
}

TEST(GeneratorErrors, MethodNeedsATakenConstant) {
  EXPECT_EQ(
      ErrorOf("message M {}\nservice S {\n  rpc ServiceName(M) returns (M);\n}\n"),
      "x.proto:4:3: method \"S.ServiceName\" needs the constant kServiceName, which is taken; rename it");
}

TEST(GeneratorErrors, PackageHoldsAKeyword) {
  EXPECT_EQ(ErrorOf("package a.class;\nservice S {}\n"),
            "x.proto: package \"a.class\" holds the C++ keyword class; rename it");
  EXPECT_TRUE(Generate("package a.class;\nmessage M {}\n").ok);
}

TEST(GeneratorErrors, ProtocWritesServicesToo) {
  EXPECT_EQ(ErrorOf("option cc_generic_services = true;\nservice S {}\n"),
            "x.proto: cc_generic_services makes protoc write classes of the same names; remove it");
}

TEST(GeneratorErrors, TakesNoOptions) {
  const Generated result = Generate("message M {}\n", "lite");
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.error, "protoc-gen-curtail takes no options, but was given \"lite\"");
}

TEST(Names, ConstantName) {
  EXPECT_EQ(ConstantName("Query"), "kQuery");
  EXPECT_EQ(ConstantName("query"), "kQuery");
  EXPECT_EQ(ConstantName("get_user_2"), "kGetUser2");
  EXPECT_EQ(ConstantName("URLOf"), "kURLOf");
}

}  // namespace
}  // namespace curtail
