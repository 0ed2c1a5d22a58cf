// SPDX-License-Identifier: Apache-2.0
//
// The memory that messages take, foretold; and a server that refuses those for which it has not enough.
#include "curtail/rpc/call/parsed_size.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "curtail/rpc/rpc_testing.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/field_mask.pb.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"

namespace curtail {
namespace {

using google::protobuf::FileDescriptorProto;
using google::protobuf::ListValue;
using internal::ParsedSize;
using std::string_literals::operator""s;

constexpr internal::ParsedSizes kAll = {SIZE_MAX, SIZE_MAX};

// The estimate has malloc's share, which SpaceUsedLong() leaves out.
void ExpectNear(const google::protobuf::Message& message) {
  const size_t foretold = ParsedSize(message.SerializeAsString(), message, kAll).bytes;
  EXPECT_GE(foretold, message.SpaceUsedLong() * 3 / 4) << message.GetTypeName();
  EXPECT_LE(foretold, message.SpaceUsedLong() * 4) << message.GetTypeName();
}

TEST(ParsedSize, IsNearWhatMessagesTake) {
  ExpectNear(StringValue());
  ExpectNear(Text(std::string(10'000, 'x')));

  FileDescriptorProto file;
  FileDescriptorProto::descriptor()->file()->CopyTo(&file);
  ExpectNear(file);

  ListValue list;
  for (int i = 0; i < 1000; ++i) list.add_values();
  ExpectNear(list);
  for (int i = 0; i < 1000; ++i) list.add_values()->mutable_list_value()->add_values()->set_number_value(i);
  ExpectNear(list);

  google::protobuf::Struct map;
  for (int i = 0; i < 1000; ++i) (*map.mutable_fields())[std::to_string(i)].set_string_value("a value");
  ExpectNear(map);

  google::protobuf::FieldMask names;
  for (int i = 0; i < 1000; ++i) names.add_paths("a name that is longer than fits into the object");
  ExpectNear(names);

  google::protobuf::Empty unknown;
  google::protobuf::UnknownFieldSet* const fields = unknown.GetReflection()->MutableUnknownFields(&unknown);
  for (int i = 0; i < 1000; ++i) fields->AddVarint(i + 1, 7);
  for (int i = 0; i < 1000; ++i) fields->AddLengthDelimited(i + 1, "some unknown bytes");
  ExpectNear(unknown);
}

TEST(ParsedSize, EndsWhenItIsEnough) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += "\x0a\0"s;
  EXPECT_GT(ParsedSize(bytes, ListValue(), kAll).bytes, 4'000'000u);
  EXPECT_EQ(ParsedSize(bytes, ListValue(), kAll).objects, 100'000u);
  const size_t some = ParsedSize(bytes, ListValue(), {1'000'000, SIZE_MAX}).bytes;
  EXPECT_GT(some, 1'000'000u);
  EXPECT_LT(some, 1'001'000u);
  EXPECT_EQ(ParsedSize(bytes, ListValue(), {SIZE_MAX, 1000}).objects, 1001u);
  EXPECT_EQ(ParsedSize(std::string(1000, '\0'), ListValue(), kAll).bytes, ListValue().SpaceUsedLong());
}

TEST(ParsedSize, TakesAnyBytes) {
  std::mt19937 rng(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(rng() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(rng() % (round % 2 == 0 ? 256 : 32));
    FileDescriptorProto parsed;
    const size_t foretold = ParsedSize(bytes, parsed, kAll).bytes;
    if (parsed.ParseFromString(bytes)) {
      EXPECT_GE(foretold, parsed.SpaceUsedLong() / 2);
    }
  }
  std::string deep;  // deeper than the parser goes
  for (int i = 0; i < 300; ++i)
    deep = "\x32" + std::string(1, static_cast<char>(deep.size())) + deep.substr(0, 120);
  ParsedSize(deep, ListValue(), kAll);
}

// Counts the entries of a list, of one message or of a stream's.
class ListService final : public Service {
 public:
  std::string_view FullName() const override { return "test.List"; }
  std::vector<MethodHandler> Handlers() override {
    std::vector<MethodHandler> handlers;
    handlers.push_back({.name = "Count",
                        .handler = internal::UnaryHandler<ListValue, StringValue>(
                            [](Context&, const ListValue& in, StringValue* out) -> absl::Status {
                              out->set_value(std::to_string(in.values_size()));
                              return absl::OkStatus();
                            })});
    handlers.push_back(internal::ClientStreamingMethod<ListValue, StringValue>(
        "CountAll", [](Context&, StreamReader<ListValue>& in, StringValue* out) -> absl::Status {
          int count = 0;
          for (ListValue list; in.Read(&list);) count += list.values_size();
          out->set_value(std::to_string(count));
          return in.status();
        }));
    return handlers;
  }
};

class GrowingRequestTest : public RpcBase, public testing::TestWithParam<const char*> {
 protected:
  GrowingRequestTest() {
    ServerOptions options;
    options.config = *Config::Parse(GetParam());
    options.max_held_bytes = 8u << 20;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<ListService>());
    auto server = Server::Start(options, std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = std::make_unique<Channel>(&client_, server_->addresses()[0]);
  }
  static ListValue List(int entries) {
    ListValue list;
    for (int i = 0; i < entries; ++i) list.add_values();
    return list;
  }
  absl::StatusCode Count(int entries, wire::Encoding encoding = wire::Encoding::kIdentity) {
    Context ctx(kMaxTestWait);
    ctx.SetEncoding(encoding);
    StringValue reply;
    const absl::Status status = channel_->Call(ctx, "/test.List/Count", List(entries), &reply);
    if (status.ok()) {
      EXPECT_EQ(reply.value(), std::to_string(entries));
    }
    return status.code();
  }

  std::unique_ptr<Server> server_;
  Client client_;
  std::unique_ptr<Channel> channel_;
};
INSTANTIATE_TEST_SUITE_P(Configs, GrowingRequestTest, testing::Values("FIB1", "SDB1-2"));

TEST_P(GrowingRequestTest, AMessageThatTakesMoreThanThereIsIsRefused) {
  EXPECT_EQ(Count(12'500), absl::StatusCode::kOk);
  EXPECT_EQ(Count(125'000), absl::StatusCode::kResourceExhausted);  // 250 KB, which become 7.5 MB
  EXPECT_EQ(Count(12'500), absl::StatusCode::kOk);
  const Deadline deadline = Deadline::In(kMaxTestWait);  // an answer may leave before its request is freed
  while (server_->Sample().held_bytes >= 128u << 10 && !deadline.Expired()) BetweenLooks();
  const ServerStats stats = server_->Sample();
  EXPECT_LT(stats.held_bytes, 128u << 10);
  ASSERT_EQ(stats.limits.size(), 1);
  EXPECT_EQ(stats.limits[0].name, "parsed size");
  EXPECT_EQ(stats.limits[0].times, 1);
}

// Two bytes for each entry, of which compression leaves next to nothing.
TEST_P(GrowingRequestTest, BytesThatDidNotComePayForFewObjects) {
  EXPECT_EQ(Count(60'000), absl::StatusCode::kOk);
  EXPECT_EQ(Count(12'500, wire::Encoding::kGzip), absl::StatusCode::kOk);
  EXPECT_EQ(Count(60'000, wire::Encoding::kGzip), absl::StatusCode::kOk) << "the first call's bytes pay";
  channel_ = std::make_unique<Channel>(&client_, server_->addresses()[0]);
  EXPECT_EQ(Count(12'500, wire::Encoding::kGzip), absl::StatusCode::kOk);
  EXPECT_EQ(Count(60'000, wire::Encoding::kGzip), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Count(60'000), absl::StatusCode::kOk);
}

TEST_P(GrowingRequestTest, EachMessageOfAStreamStandsForItself) {
  for (const auto& [entries, code] :
       {std::pair{12'500, absl::StatusCode::kOk}, {125'000, absl::StatusCode::kResourceExhausted}}) {
    const ListValue list = List(entries);
    Context ctx(kMaxTestWait);
    const auto call = internal::OpenStream(ctx, *channel_, "/test.List/CountAll");
    internal::ParsedStream stream(*call);
    for (int i = 0; i < 20; ++i) stream.Write(list);
    StringValue reply;
    EXPECT_EQ(internal::FinishWithReply(*call, &reply).code(), code);
  }
}

}  // namespace
}  // namespace curtail
