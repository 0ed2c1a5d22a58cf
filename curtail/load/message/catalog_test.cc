// SPDX-License-Identifier: Apache-2.0
//
// Against curtail's own reflection, servers that answer it wrongly, and .proto files. tests/interop has grpc++'s.
#include "curtail/load/message/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "curtail/base/strings.h"
#include "curtail/load/message/json_workload.h"
#include "curtail/rpc/call/message_bytes.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/transport/socket.h"
#include "google/protobuf/descriptor.pb.h"
#include "message/load_test.curtail.h"
#include "message/load_test.pb.h"

namespace curtail {
namespace {

using loadtest::Item;
using loadtest::Nasties;
using loadtest::Nasty;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr Nanos kTimeout = std::chrono::seconds(20);

std::string TextOf(const absl::Status& status) { return std::string(Message(status)); }

// A method that answers each message of a stream.
MethodHandler AnswersEach(std::string name, Handler answer) {
  return internal::StreamMethod(
      std::move(name),
      [answer = std::move(answer)](Context& ctx, internal::MessageStream& stream) -> absl::Status {
        for (std::string in, out; stream.Read(&in); out.clear()) {
          if (absl::Status status = answer(ctx, in, &out); !status.ok()) return status;
          if (!stream.Write(std::move(out))) break;
        }
        return stream.status();
      });
}

// Sends back what it got; of a stream, each message. Reflection lists only methods that are served.
class MirrorService final : public Service {
 public:
  std::string_view FullName() const override { return "curtail.loadtest.Nasties"; }
  std::vector<MethodHandler> Handlers() override {
    const auto mirror = [](Context&, std::string_view request, std::string* reply) {
      *reply = request;
      return absl::OkStatus();
    };
    return {{.name = "Send", .handler = mirror},
            {.name = "Seek", .handler = mirror},
            AnswersEach("Watch", mirror),
            AnswersEach("Upload", mirror),
            AnswersEach("Chat", mirror)};
  }
};

// Server reflection whose every answer a function gives.
class FakeReflection final : public Service {
 public:
  using Answer = std::function<absl::Status(int question, const std::string& argument, std::string* reply)>;
  FakeReflection(std::string name, Answer answer) : name_(std::move(name)), answer_(std::move(answer)) {}

  std::string_view FullName() const override { return name_; }
  std::vector<MethodHandler> Handlers() override {
    return {
        AnswersEach("ServerReflectionInfo", [this](Context&, std::string_view request, std::string* reply) {
          int question = 0;
          std::string argument;
          internal::ForEachField(request, [&](int field, std::string_view bytes, uint64_t) {
            if (field > 1) question = field, argument = bytes;
          });
          return answer_(question, argument, reply);
        })};
  }

 private:
  const std::string name_;
  const Answer answer_;
};

constexpr char kV1[] = "grpc.reflection.v1.ServerReflection";
constexpr char kV1Alpha[] = "grpc.reflection.v1alpha.ServerReflection";
constexpr int kFile = 3, kSymbol = 4, kList = 7;

std::unique_ptr<Server> Start(bool reflection, std::unique_ptr<Service> service) {
  ServerOptions options;
  options.config = *Config::Parse("SIB1");
  options.reflection = reflection;
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  auto server = Server::Start(std::move(options), std::move(services));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

absl::StatusOr<Catalog> Ask(const Server& server, std::string_view method = {}) {
  return Catalog::FromServer(server.addresses()[0], {}, kTimeout, method);
}

// The answer of a reflection service: field `kind` with `content`.
std::string Reply(int kind, const std::string& content) {
  internal::MessageWriter out;
  out.Bytes(kind, content);
  return out.Take();
}
std::string OneField(const std::string& content) { return Reply(1, content); }
std::string FileReply(const google::protobuf::FileDescriptorProto& file) {
  return Reply(4, OneField(file.SerializeAsString()));
}
std::string ErrorReply(absl::StatusCode code, const std::string& message) {
  internal::MessageWriter error;
  error.Int(1, static_cast<int>(code));
  error.Bytes(2, message);
  return Reply(7, error.Take());
}

// Sends one file a question, as grpc's Go server does.
FakeReflection::Answer OneFileAtATime() {
  return [](int question, const std::string& argument, std::string* reply) {
    const auto* pool = google::protobuf::DescriptorPool::generated_pool();
    if (question == kList) {
      *reply = Reply(6, OneField(OneField("curtail.loadtest.Nasties")));
      return absl::OkStatus();
    }
    const auto* file =
        question == kFile ? pool->FindFileByName(argument) : pool->FindFileContainingSymbol(argument);
    google::protobuf::FileDescriptorProto proto;
    if (file != nullptr) file->CopyTo(&proto);
    *reply = file == nullptr ? ErrorReply(absl::StatusCode::kNotFound, "no such file") : FileReply(proto);
    return absl::OkStatus();
  };
}

TEST(Catalog, LearnsFromTheServerAndCallsIt) {
  const auto server = Start(true, std::make_unique<MirrorService>());
  for (const char* only : {"", "curtail.loadtest.Nasties/Send"}) {
    const auto catalog = Ask(*server, only);
    ASSERT_TRUE(catalog.ok()) << catalog.status();
    EXPECT_THAT(catalog->services(), Contains("curtail.loadtest.Nasties"));
    for (const char* name : {"curtail.loadtest.Nasties/Send", "/curtail.loadtest.Nasties/Send",
                             "curtail.loadtest.Nasties.Send"}) {
      const auto method = catalog->FindMethod(name);
      ASSERT_TRUE(method.ok()) << method.status();
      EXPECT_EQ(method->path, "/curtail.loadtest.Nasties/Send");
      EXPECT_EQ(method->request_type, "curtail.loadtest.Nasty");
    }
    const auto method = catalog->FindMethod("curtail.loadtest.Nasties/Send");
    const auto workload = MakeJsonWorkload(
        *method, {.text = R"({"an_int32": 7, "at": "1970-01-01T00:00:01Z", "strings": ["{{index}}"],
                              "any": {"@type": "type.googleapis.com/curtail.loadtest.Item", "name": "in any"}})"},
        1);
    ASSERT_TRUE(workload.ok()) << workload.status();
    Nasty request;
    ASSERT_TRUE(request.ParseFromString((*workload)->Request(3)));
    EXPECT_EQ(request.an_int32(), 7);
    EXPECT_EQ(request.at().seconds(), 1);
    EXPECT_EQ(request.strings(0), "3");
    Item inside;
    EXPECT_TRUE(request.any().UnpackTo(&inside));
    EXPECT_EQ(inside.name(), "in any");

    Client client;
    Channel channel(&client, server->addresses()[0]);
    Context ctx(kTimeout);
    Nasty reply;
    ASSERT_TRUE(channel.Call(ctx, (*workload)->method(), request, &reply).ok());
    const auto json = ReplyToJson(*method, reply.SerializeAsString());
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_THAT(*json, AllOf(HasSubstr("\"an_int32\": 7"), HasSubstr("\"in any\"")));
  }
}

TEST(Catalog, NamesWhatThereIsWhenSomethingIsNotFound) {
  const auto server = Start(true, std::make_unique<MirrorService>());
  const auto catalog = Ask(*server);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  const auto error = [&](const char* name, absl::StatusCode code) {
    const auto method = catalog->FindMethod(name);
    EXPECT_EQ(method.status().code(), code) << name;
    return TextOf(method.status());
  };
  EXPECT_EQ(error("curtail.loadtest.Nasties/Sned", absl::StatusCode::kNotFound),
            "the service curtail.loadtest.Nasties has no method \"Sned\"; did you mean \"Send\"? There are "
            "Send, Seek, "
            "Watch, Upload, Chat");
  EXPECT_THAT(
      error("Nasties/Send", absl::StatusCode::kNotFound),
      AllOf(HasSubstr("there is no service Nasties in 127.0.0.1:"),
            HasSubstr(
                "; did you mean \"curtail.loadtest.Nasties\"? There are curtail.loadtest.Nasties, grpc.")));
  EXPECT_EQ(error("curtail.loadtest.Nasties/Watch", absl::StatusCode::kInvalidArgument),
            "curtail.loadtest.Nasties/Watch streams replies; say with --stream N how to call it");
  EXPECT_TRUE(catalog->FindMethod("curtail.loadtest.Nasties/Watch", true).ok());
  EXPECT_EQ(catalog->FindMethod("curtail.loadtest.Nasties/Send", true).status(),
            absl::InvalidArgumentError("curtail.loadtest.Nasties/Send does not stream; leave --stream out"));
  EXPECT_THAT(error("curtail.loadtest.Nasties/Upload", absl::StatusCode::kInvalidArgument),
              HasSubstr("streams requests;"));
  EXPECT_THAT(error("curtail.loadtest.Nasties/Chat", absl::StatusCode::kInvalidArgument),
              HasSubstr("streams requests and replies;"));
  for (const char* name : {"", "/", "Send", "a/", "/b", "a/b/c", "."}) {
    EXPECT_THAT(error(name, absl::StatusCode::kInvalidArgument), HasSubstr("write package.Service/Method"))
        << name;
  }
}

TEST(Catalog, ListsMethodsWithTheirTypes) {
  const auto server = Start(true, std::make_unique<MirrorService>());
  const auto catalog = Ask(*server, "curtail.loadtest.Nasties/Send");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  std::vector<std::string> lines;
  for (const CatalogMethod& m : catalog->ListMethods()) {
    lines.push_back(Join(m.path, m.client_streaming ? " stream " : " ", m.request_type,
                         m.server_streaming ? " stream " : " ", m.reply_type));
  }
  EXPECT_THAT(
      lines, testing::ElementsAre(
                 "/curtail.loadtest.Nasties/Send curtail.loadtest.Nasty curtail.loadtest.Nasty",
                 "/curtail.loadtest.Nasties/Seek curtail.loadtest.Item curtail.loadtest.Item",
                 "/curtail.loadtest.Nasties/Watch curtail.loadtest.Item stream curtail.loadtest.Item",
                 "/curtail.loadtest.Nasties/Upload stream curtail.loadtest.Item curtail.loadtest.Item",
                 "/curtail.loadtest.Nasties/Chat stream curtail.loadtest.Item stream curtail.loadtest.Item"));
}

TEST(Catalog, AsksForImportsAndSpeaksTheOldVersion) {
  for (const char* name : {kV1, kV1Alpha}) {
    const auto server = Start(false, std::make_unique<FakeReflection>(name, OneFileAtATime()));
    const auto catalog = Ask(*server);
    ASSERT_TRUE(catalog.ok()) << catalog.status();
    const auto method = catalog->FindMethod("curtail.loadtest.Nasties/Send");
    ASSERT_TRUE(method.ok()) << method.status();
    EXPECT_TRUE(MakeJsonWorkload(*method, {.text = R"({"at": "1970-01-01T00:00:01Z"})"}, 1).ok());
  }
}

TEST(Catalog, AMissingImportIsNamed) {
  const auto whole = OneFileAtATime();
  const auto server =
      Start(false, std::make_unique<FakeReflection>(
                       kV1, [&](int question, const std::string& argument, std::string* reply) {
                         const bool missing = argument == "google/protobuf/any.proto";
                         return whole(question, missing ? "none" : argument, reply);
                       }));
  const auto catalog = Ask(*server);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  const auto method = catalog->FindMethod("curtail.loadtest.Nasties/Send");
  EXPECT_THAT(TextOf(method.status()), AllOf(HasSubstr("google/protobuf/any.proto"), HasSubstr("--proto")));
  EXPECT_TRUE(catalog->ListMethods().empty());
}

TEST(Catalog, OneServiceInOrderIsEnough) {
  const auto whole = OneFileAtATime();
  const auto server =
      Start(false, std::make_unique<FakeReflection>(
                       kV1, [&](int question, const std::string& argument, std::string* reply) {
                         if (question == kList) {
                           *reply = Reply(6, OneField(OneField("bad.Service")) +
                                                 OneField(OneField("curtail.loadtest.Nasties")));
                           return absl::OkStatus();
                         }
                         return whole(question, argument, reply);
                       }));
  const auto catalog = Ask(*server);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_TRUE(catalog->FindMethod("curtail.loadtest.Nasties/Send").ok());
  EXPECT_THAT(TextOf(catalog->FindMethod("bad.Service/Do").status()), HasSubstr("no such file"));
}

TEST(Catalog, ServersThatCannotAnswer) {
  const auto none = Start(false, std::make_unique<MirrorService>());
  const auto unimplemented = Ask(*none);
  EXPECT_EQ(unimplemented.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(TextOf(unimplemented.status()), AllOf(HasSubstr(none->addresses()[0]), HasSubstr("--proto")));

  EXPECT_EQ(Catalog::FromServer("127.0.0.1:1", {}, kTimeout).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Catalog::FromServer("nowhere", {}, kTimeout).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Catalog::FromServer("127.0.0.1:1", {}, kTimeout, "x").status().code(),
            absl::StatusCode::kInvalidArgument);

  for (const std::string& answer : {std::string(), std::string("\xff\xff"), Reply(2, "x"), Reply(7, "\xff"),
                                    Reply(7, ""), Reply(6, "\x0a\x05")}) {
    const auto server =
        Start(false, std::make_unique<FakeReflection>(kV1, [&](int, const std::string&, std::string* reply) {
                *reply = answer;
                return absl::OkStatus();
              }));
    EXPECT_EQ(Ask(*server).status().code(), absl::StatusCode::kDataLoss) << testing::PrintToString(answer);
  }
  const auto server =
      Start(false, std::make_unique<FakeReflection>(kV1, [&](int question, const std::string& argument,
                                                             std::string* reply) {
              if (question == kSymbol) *reply = Reply(4, OneField("\xff"));
              return question == kSymbol ? absl::OkStatus() : OneFileAtATime()(question, argument, reply);
            }));
  const auto catalog = Ask(*server);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_EQ(catalog->FindMethod("curtail.loadtest.Nasties/Send").status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(Catalog, GivesUpOnASilentServer) {
  // The kernel accepts for a socket that listens; no program reads.
  const absl::StatusOr<internal::UniqueFd> listener = internal::Listen(*Address::Resolve("127.0.0.1:0"));
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string target = internal::BoundAddress(listener->get());
  const TimePoint begin = Now();
  const auto catalog = Catalog::FromServer(target, {}, std::chrono::milliseconds(100));
  EXPECT_EQ(catalog.status().code(), absl::StatusCode::kDeadlineExceeded) << catalog.status();
  EXPECT_THAT(TextOf(catalog.status()), AllOf(HasSubstr(target), HasSubstr("in time")));
  EXPECT_LT(Now() - begin, kTimeout);
}

// A folder of .proto files that goes with the test.
class ProtoFolder : public testing::Test {
 protected:
  ProtoFolder() { std::filesystem::create_directories(folder_ + "/sub"); }
  ~ProtoFolder() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  const std::string folder_ = Join(testing::TempDir(), "catalog_test.", getpid());
};

TEST_F(ProtoFolder, IsRead) {
  Write("sub/common.proto", "syntax = \"proto3\"; package c; message Common { string text = 1; }");
  const std::string file = Write("s.proto",
                                 "syntax = \"proto3\"; package p; import \"sub/common.proto\";\n"
                                 "import \"google/protobuf/timestamp.proto\";\n"
                                 "message R { c.Common common = 1; google.protobuf.Timestamp at = 2; }\n"
                                 "service S { rpc Do(R) returns (c.Common); }");
  for (const auto& [name, paths] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {file, {}}, {file, {folder_}}, {"s.proto", {folder_}}}) {
    const auto catalog = Catalog::FromProtoFiles({name}, paths);
    ASSERT_TRUE(catalog.ok()) << catalog.status();
    const auto method = catalog->FindMethod("p.S/Do");
    ASSERT_TRUE(method.ok()) << method.status();
    EXPECT_EQ(method->reply_type, "c.Common");
    EXPECT_TRUE(
        MakeJsonWorkload(*method, {.text = R"({"common": {"text": "x"}, "at": "1970-01-01T00:00:01Z"})"}, 1)
            .ok());
    EXPECT_THAT(TextOf(catalog->FindMethod("p.T/Do").status()),
                HasSubstr("in the .proto files; did you mean \"p.S\"?"));
  }
}

TEST_F(ProtoFolder, DescriptorSetsAreRead) {
  namespace pb = google::protobuf;
  pb::FileDescriptorSet set;
  pb::FileDescriptorProto* const file = set.add_file();
  file->set_name("s.proto"), file->set_package("p"), file->set_syntax("proto3");
  file->add_dependency("google/protobuf/empty.proto");  // left out, as protoc does without --include_imports
  pb::ServiceDescriptorProto* const service = file->add_service();
  service->set_name("S");
  pb::MethodDescriptorProto* const method = service->add_method();
  method->set_name("Do"), method->set_input_type(".google.protobuf.Empty");
  method->set_output_type(".google.protobuf.Empty");
  const std::string path = Write("s.protoset", set.SerializeAsString());
  const auto catalog = Catalog::FromProtoFiles({path}, {});
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_TRUE(catalog->FindMethod("p.S/Do").ok()) << catalog->FindMethod("p.S/Do").status();
  EXPECT_EQ(catalog->ListMethods().size(), 1u);
  set.mutable_file(0)->add_dependency("other.proto");
  const auto lacks = Catalog::FromProtoFiles({Write("lacks.pb", set.SerializeAsString())}, {});
  ASSERT_TRUE(lacks.ok()) << lacks.status();
  EXPECT_THAT(TextOf(lacks->FindMethod("p.S/Do").status()), HasSubstr("--include_imports"));
  const auto wrong = Catalog::FromProtoFiles({Write("wrong.desc", "syntax = \"proto3\";")}, {});
  EXPECT_THAT(TextOf(wrong.status()), HasSubstr("wrong.desc is not a descriptor set"));
}

TEST_F(ProtoFolder, ErrorsNameThePlace) {
  const auto error = [](const std::string& file) {
    return TextOf(Catalog::FromProtoFiles({file}, {}).status());
  };
  EXPECT_THAT(error(Write("a.proto", "syntax = \"proto3\";\nmessage A { strin name = 1; }\n")),
              HasSubstr("a.proto:2:13: \"strin\" is not defined."));
  EXPECT_THAT(error(Write("b.proto", "syntax = \"proto3\";\nmessage B {\n  string name = ;\n}\n")),
              HasSubstr("b.proto:3:17: "));
  EXPECT_THAT(error(Write("c.proto", "syntax = \"proto3\";\nimport \"none.proto\";\n")),
              HasSubstr("c.proto:2: cannot find import \"none.proto\"; name its folder with --import-path"));
  EXPECT_THAT(error(folder_), HasSubstr(" is a folder; name a .proto file"));
  EXPECT_THAT(error(folder_ + "/absent.proto"), HasSubstr("/absent.proto, here or in an --import-path"));
  EXPECT_EQ(Catalog::FromProtoFiles({folder_ + "/absent.proto"}, {}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Catalog::FromProtoFiles({folder_ + "/a.proto"}, {folder_ + "/sub"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace curtail
