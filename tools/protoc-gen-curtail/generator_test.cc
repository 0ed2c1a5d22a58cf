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

#include "curtail/rpc/channel.h"
#include "curtail/rpc/server.h"
#include "here.curtail.h"
#include "names.h"
#include "testdata/nasty.curtail.h"
#include "testdata/no_package.curtail.h"
#include "testdata/other.curtail.h"
#include "testdata/taken.curtail.h"

namespace curtail {
namespace {

namespace nasty = generator_test::v1;
namespace taken = ::generator_test::taken;
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

// The plugin's output, by file name.
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

TEST(Generator, ListsUnaryHandlersAndStreams) {
  nasty::Search::Service service;
  EXPECT_EQ(service.FullName(), "curtail.generator_test.v1.Search");
  std::vector<std::string> unary, streams;
  for (const MethodHandler& handler : service.Handlers()) {
    (handler.kind == MethodHandler::Kind::kUnary ? unary : streams).push_back(handler.name);
  }
  EXPECT_THAT(unary, testing::ElementsAre("Search", "Nearest", "lower_case_name", "ctx", "reply", "Status",
                                          "Channel", "std"));
  EXPECT_THAT(streams, testing::ElementsAre("Sum", "Upload", "Watch"));
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

TEST(Generator, OnlyServicesThatSaySoNeverWait) {
  struct Leaf final : nasty::Search::Service {
    Leaf() : Service(/*never_waits=*/true) {}
  } leaf;
  for (const MethodHandler& handler : leaf.Handlers()) {
    EXPECT_EQ(handler.never_waits, handler.kind == MethodHandler::Kind::kUnary) << handler.name;
  }
  AddsOne waits;
  for (const MethodHandler& handler : waits.Handlers()) EXPECT_FALSE(handler.never_waits) << handler.name;
}

// A handler's answer when it has nothing to wait for.
absl::StatusOr<nasty::Reply> Answer(const MethodHandler& handler, const nasty::Query& query) {
  Context ctx{Deadline::Infinite()};
  std::string bytes;
  if (absl::Status status = handler.handler(ctx, query.SerializeAsString(), &bytes); !status.ok())
    return status;
  nasty::Reply reply;
  EXPECT_TRUE(reply.ParseFromString(bytes));
  return reply;
}

std::vector<std::string> Names(const std::vector<MethodHandler>& handlers) {
  std::vector<std::string> names;
  for (const MethodHandler& handler : handlers) names.push_back(handler.name);
  return names;
}

class AddsTwo final : public nasty::Search::CoroutineService {
 public:
  Coroutine Search(Context&, const nasty::Query& request, nasty::Reply* reply) override {
    reply->set_sum(request.number() + 2);
    co_return absl::OkStatus();
  }
};

TEST(GeneratorCoroutines, HandlersReachTheOverride) {
  AddsTwo service;
  EXPECT_EQ(service.FullName(), nasty::Search::kServiceName);
  const std::vector<MethodHandler> handlers = service.Handlers();
  EXPECT_THAT(Names(handlers), testing::ElementsAre("Search", "Nearest", "lower_case_name", "ctx", "reply",
                                                    "Status", "Channel", "std", "Sum", "Upload", "Watch"));
  for (const MethodHandler& handler : handlers) {
    const bool unary = handler.kind == MethodHandler::Kind::kUnary;
    EXPECT_EQ(handler.handler && handler.continuation, unary) << handler.name;
    EXPECT_EQ(handler.stream && handler.start_stream, !unary) << handler.name;
  }
  nasty::Query query;
  query.set_number(40);
  const absl::StatusOr<nasty::Reply> reply = Answer(handlers[0], query);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->sum(), 42);
}

TEST(GeneratorCoroutines, AnswerUnimplementedWhatIsNotOverridden) {
  AddsTwo service;
  const absl::StatusOr<nasty::Reply> reply = Answer(service.Handlers()[5], {});
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("curtail.generator_test.v1.Search.Status"));
}

// Serves by continuation; what it did not override it refuses.
class AddsThree final : public nasty::Search::ContinuationService {
 public:
  void ProcessSearch(Context&, const nasty::Query& request, TypedResponder<nasty::Reply> responder) override {
    nasty::Reply reply;
    reply.set_sum(request.number() + 3);
    responder.Finish(reply);
  }
};

TEST(GeneratorContinuations, HandlersReachTheOverrideOrAnswerUnimplemented) {
  ServerOptions options;
  options.config = *Config::Parse("AIB1-1");
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<AddsThree>());
  auto server = Server::Start(std::move(options), std::move(services));
  ASSERT_TRUE(server.ok()) << server.status();
  Client client;
  Channel channel(&client, (*server)->addresses()[0]);
  const nasty::Search::Stub stub(&channel);
  Context ctx(std::chrono::seconds(20));
  nasty::Query query;
  query.set_number(39);
  nasty::Reply reply;
  const absl::Status answered = stub.Search(ctx, query, &reply);
  ASSERT_TRUE(answered.ok()) << answered;
  EXPECT_EQ(reply.sum(), 42);
  const absl::Status refused = stub.Status(ctx, query, &reply);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("curtail.generator_test.v1.Search.Status"));
}

TEST(GeneratorContinuations, HaveNoHandlerForOtherModelsAndNoStreams) {
  AddsThree service;
  EXPECT_EQ(service.FullName(), nasty::Search::kServiceName);
  const std::vector<MethodHandler> handlers = service.Handlers();
  EXPECT_THAT(Names(handlers), testing::ElementsAre("Search", "Nearest", "lower_case_name", "ctx", "reply",
                                                    "Status", "Channel", "std"));
  for (const MethodHandler& handler : handlers) {
    EXPECT_TRUE(handler.continuation) << handler.name;
    EXPECT_FALSE(handler.handler) << handler.name;
  }
}

// Handlers may be called like the types that they use, and messages like handlers.
struct HiddenTypes final : nasty::Context::ContinuationService {
  void ProcessCoroutine(::curtail::Context&, const nasty::ProcessCoroutine&,
                        TypedResponder<nasty::CoroutineService> responder) override {
    responder.Finish({});
  }
};

TEST(GeneratorContinuations, MayHideMessages) {
  HiddenTypes service;
  EXPECT_THAT(
      Names(service.Handlers()),
      testing::ElementsAre("MethodHandler", "Coroutine", "ProcessCoroutine", "TypedResponder", "responder"));
}

TEST(Generator, WritesNoContinuationsForStreamsAlone) {
  const Generated streams = Generate("message M {}\nservice S { rpc Each(stream M) returns (stream M); }\n");
  ASSERT_TRUE(streams.ok) << streams.error;
  EXPECT_THAT(streams.files.at("x.curtail.h"), HasSubstr("virtual ::absl::Status Each("));
  EXPECT_THAT(streams.files.at("x.curtail.h"), HasSubstr("virtual ::curtail::Coroutine Each("));
  EXPECT_THAT(streams.files.at("x.curtail.h"), HasSubstr("async_stream.h"));
  for (const char* word : {"/coroutine.h", "ContinuationService"}) {
    EXPECT_THAT(streams.files.at("x.curtail.h"), Not(HasSubstr(word)));
  }
  const Generated nothing = Generate("service S {}\n");
  ASSERT_TRUE(nothing.ok) << nothing.error;
  for (const char* word : {"coroutine.h", "async_stream.h", "CoroutineService", "ContinuationService"}) {
    EXPECT_THAT(nothing.files.at("x.curtail.h"), Not(HasSubstr(word)));
  }
  const Generated mixed = Generate(
      "message M {}\nservice S { rpc Each(stream M) returns (stream M); }\n"
      "service T { rpc One(M) returns (M); rpc Each(stream M) returns (stream M); }\n");
  ASSERT_TRUE(mixed.ok) << mixed.error;
  const std::string& header = mixed.files.at("x.curtail.h");
  EXPECT_THAT(header, HasSubstr("coroutine.h"));
  EXPECT_THAT(header, HasSubstr("virtual ::curtail::Coroutine One("));
  EXPECT_THAT(header, HasSubstr("virtual void ProcessOne("));
  EXPECT_THAT(header, HasSubstr("Methods that stream exist in the other two only."));
  EXPECT_THAT(header, HasSubstr("Coroutine Each("));
  EXPECT_THAT(header, Not(HasSubstr("ProcessEach(")));
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

TEST(Generator, WritesStreamsByWhoStreams) {
  const Generated result = Generate(
      "service S {\n  // Takes.\n  rpc Up(stream M) returns (M);\n  rpc Down(M) returns (stream M);\n"
      "  rpc Both(stream M) returns (stream M);\n}\nmessage M {}\n");
  ASSERT_TRUE(result.ok) << result.error;
  const std::string& header = result.files.at("x.curtail.h");
  EXPECT_THAT(header,
              HasSubstr("    // Takes.\n    virtual ::absl::Status Up(\n        ::curtail::Context& ctx, "
                        "::curtail::StreamReader<M>& reader, M* reply);"));
  EXPECT_THAT(header,
              HasSubstr("::curtail::Context& ctx, const M& request, ::curtail::StreamWriter<M>& writer);"));
  EXPECT_THAT(header, HasSubstr("::curtail::Context& ctx, ::curtail::ServerStream<M, M>& stream);"));
  EXPECT_THAT(header, HasSubstr("[[nodiscard]] ::curtail::ClientWriter<M, M> Up("));
  EXPECT_THAT(header, HasSubstr("[[nodiscard]] ::curtail::ClientReader<M> Down("));
  EXPECT_THAT(header, HasSubstr("[[nodiscard]] ::curtail::ClientStream<M, M> Both("));
  EXPECT_THAT(
      header,
      HasSubstr("    // Takes.\n    virtual ::curtail::Coroutine Up(\n        ::curtail::Context& ctx, "
                "::curtail::AsyncStreamReader<M>& reader, M* reply);"));
  EXPECT_THAT(header, HasSubstr("const M& request, ::curtail::AsyncStreamWriter<M>& writer);"));
  EXPECT_THAT(header, HasSubstr("::curtail::Context& ctx, ::curtail::AsyncServerStream<M, M>& stream);"));
  EXPECT_THAT(header, HasSubstr("[[nodiscard]] ::curtail::AsyncClientWriter<M, M> Up("));
  EXPECT_THAT(header, HasSubstr("[[nodiscard]] ::curtail::AsyncClientReader<M> Down("));
  EXPECT_THAT(header, HasSubstr("[[nodiscard]] ::curtail::AsyncClientStream<M, M> Both("));
}

// taken.proto compiles; here is how its names are found.
// The folder of its own CMakeLists.txt takes protos beside and above it, by absolute paths and by import folders.
TEST(CurtailProto, TakesFilesOfAnyFolder) {
  EXPECT_EQ(::generator_test::paths::Paths::kTwo.path, "/generator_test.paths.Paths/Two");
  EXPECT_TRUE(::generator_test::paths::Whole().SerializeAsString().empty());
}

TEST(Generator, TakenNamesGetAnUnderscoreAndKeepTheirPaths) {
  EXPECT_EQ(taken::Service_::kServiceName, "generator_test.taken.Service");
  EXPECT_EQ(taken::Stub__::kServiceName, "generator_test.taken.Stub") << "there is a message Stub_";
  EXPECT_EQ(taken::requires_::kDelete.path, "/generator_test.taken.requires/delete");
  EXPECT_EQ(taken::requires_::kQuery.path, "/generator_test.taken.requires/Query");
  EXPECT_EQ(taken::requires_::kQuery_.path, "/generator_test.taken.requires/query");
  EXPECT_EQ(taken::requires_::kServiceName_.path, "/generator_test.taken.requires/ServiceName");
  static_assert(
      std::is_same_v<decltype(taken::requires_::kQuery), const Method<taken::request, taken::reply>>);
  class Deletes final : public taken::requires_::Service {
   public:
    absl::Status delete__(Context&, const taken::ctx&, taken::handlers*) override { return absl::OkStatus(); }
  } service;
  const std::vector<MethodHandler> handlers = service.Handlers();
  EXPECT_THAT(Names(handlers),
              testing::ElementsAre("delete", "delete_", "Query", "query", "ServiceName", "Handlers",
                                   "FullName", "Stub", "errno", "Watch", "channel_"));
  Context ctx{Deadline::Infinite()};
  std::string bytes;
  EXPECT_TRUE(handlers[0].handler(ctx, "", &bytes).ok());
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
