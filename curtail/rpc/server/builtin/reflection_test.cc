// SPDX-License-Identifier: Apache-2.0
//
// Reflection as a stream, under all models. tests/interop has the descriptors in its answers.
#include <gmock/gmock.h>

#include "curtail/rpc/call/message_bytes.h"
#include "curtail/rpc/interceptor.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/server/builtin/builtin_services.h"
#include "curtail/rpc/stream.h"

namespace curtail {
namespace {

using internal::ClientStreamCall;
using testing::ElementsAre;

constexpr std::string_view kV1 = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
constexpr std::string_view kV1Alpha = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
// Fields of ServerReflectionRequest, then of ServerReflectionResponse.
constexpr int kBySymbol = 4, kList = 7;
constexpr int kOriginal = 2, kServices = 6, kError = 7;

std::string Request(int field, std::string_view argument) {
  internal::MessageWriter request;
  request.Bytes(field, argument);
  return request.Take();
}

// The fields of an answer, but for the request that it repeats.
std::vector<int> Fields(const std::string& answer, const std::string& request) {
  std::vector<int> fields;
  EXPECT_TRUE(internal::ForEachField(answer, [&](int field, std::string_view bytes, uint64_t) {
    if (field == kOriginal) {
      EXPECT_EQ(bytes, request);
    }
    if (field > kOriginal) fields.push_back(field);
  }));
  return fields;
}

class ReflectionTest : public MidTier {
 protected:
  ~ReflectionTest() override { mid_.reset(); }  // before its observers and interceptors

  void Serve() {
    ServeCoroutine([](Context&, const StringValue& in, StringValue* out) -> Coroutine {
      *out = in;
      co_return absl::OkStatus();
    });
  }
  // A new connection for later streams.
  void Connect() { channel_ = std::make_unique<Channel>(&front_, mid_->addresses()[0]); }
  std::unique_ptr<ClientStreamCall> Open(Context& ctx, std::string_view path = kV1) {
    return internal::OpenStream(ctx, *channel_, path);
  }
  // Opens a stream that has its place: its first answer has come.
  std::unique_ptr<ClientStreamCall> Hold(Context& ctx, std::string_view path = kV1) {
    auto stream = Open(ctx, path);
    std::string answer;
    EXPECT_TRUE(stream->Write(Request(kList, "*")) && stream->Read(&answer));
    return stream;
  }
};
INSTANTIATE_TEST_SUITE_P(Models, ReflectionTest,
                         testing::Values("SIB1", "SIP1", "SDB1-2", "SDP1-2", "AIB1-1", "AIP1-1", "ADB1-2-2",
                                         "ADP1-2-2", "FIB1", "FIP1", "FDB1-2", "FDP1-2"),
                         ModelName);

TEST_P(ReflectionTest, AnswersEachRequestInOrder) {
  Serve();
  const std::string list = Request(kList, "*"), unknown = Request(kBySymbol, "no.Such");
  for (const std::string_view path : {kV1, kV1Alpha}) {
    Context ctx(kMaxTestWait);
    const auto stream = Open(ctx, path);
    for (const std::string& request : {list, unknown, list}) EXPECT_TRUE(stream->Write(std::string(request)));
    std::string answer;
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_THAT(Fields(answer, list), ElementsAre(kServices));
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_THAT(Fields(answer, unknown), ElementsAre(kError));
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_THAT(Fields(answer, list), ElementsAre(kServices));
    const absl::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << path << ": " << status;
  }
}

// Each of the server's threads has a role in these configs.
class FullPoolReflectionTest : public ReflectionTest {};
INSTANTIATE_TEST_SUITE_P(Models, FullPoolReflectionTest, testing::Values("SIB64", "SDB1-64"), ModelName);

TEST_P(FullPoolReflectionTest, HasAThread) {
  Serve();
  Context ctx(kMaxTestWait);
  EXPECT_NE(Hold(ctx), nullptr);
}

TEST_P(ReflectionTest, BytesThatAreNotARequestEndTheStream) {
  Serve();
  Context ctx(kMaxTestWait);
  const auto stream = Hold(ctx);
  EXPECT_TRUE(stream->Write("\xff"));
  std::string answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kInternal);
}

TEST_P(ReflectionTest, EndsWithItsDeadlineAndWithItsClient) {
  Serve();
  Context late(milliseconds(20));
  std::string answer;
  const auto stream = Open(late);
  stream->Write(Request(kList, "*"));  // in vain, on a machine that is slow to connect
  while (stream->Read(&answer)) continue;
  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kDeadlineExceeded);
  Context left(kMaxTestWait);
  const auto cancelled = Hold(left);
  left.Cancel();
  EXPECT_EQ(cancelled->Finish().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(mid_->Drain(Deadline::In(seconds(5))).ok());
}

// A stream may hold a thread or a fiber, of which other calls need some.
TEST_P(ReflectionTest, HasFewStreamsAtOnce) {
  Serve();
  Context ctx(kMaxTestWait);
  std::vector<std::unique_ptr<Channel>> clients;
  std::vector<std::unique_ptr<ClientStreamCall>> held;
  while (held.size() < internal::kMostReflectionStreams) {
    clients.push_back(std::move(channel_));
    Connect();
    for (int i = 0; i < internal::kMostReflectionStreamsOfClient; ++i) held.push_back(Hold(ctx));
  }
  clients.push_back(std::move(channel_));
  Connect();
  const auto newcomer = Hold(ctx);
  EXPECT_EQ(held.front()->Finish(),
            absl::ResourceExhaustedError(
                "this server has 16 streams of grpc.reflection.v1.ServerReflection, and others asked later"));
  EXPECT_TRUE(newcomer->Finish().ok());
  EXPECT_TRUE(Hold(ctx, kV1Alpha)->Finish().ok());
  EXPECT_TRUE(Run("x").ok());
  EXPECT_TRUE(held.back()->Finish().ok());
  EXPECT_TRUE(Hold(ctx)->Finish().ok());
}

TEST_P(ReflectionTest, AConnectionHasFewStreams) {
  Serve();
  Context ctx(kMaxTestWait);
  std::vector<std::unique_ptr<ClientStreamCall>> held;
  while (held.size() < internal::kMostReflectionStreamsOfClient) held.push_back(Hold(ctx));
  EXPECT_EQ(Open(ctx)->Finish(),
            absl::ResourceExhaustedError(
                "this connection has 4 streams of grpc.reflection.v1.ServerReflection, and "
                "may have no more"));
  EXPECT_TRUE(held.front()->Finish().ok());
  EXPECT_TRUE(Hold(ctx)->Finish().ok());
}

TEST_P(ReflectionTest, InterceptorsStandAroundTheStream) {
  class Guard final : public ServerInterceptor {
   public:
    explicit Guard(EventLog* log) : log_(log) {}
    absl::Status Before(const IncomingCall& call) override {
      EXPECT_EQ(call.path, kV1);
      log_->Add("before");
      if (call.context.metadata().Find("x-refuse")) return absl::PermissionDeniedError("not here");
      return absl::OkStatus();
    }
    void After(const IncomingCall&, const absl::Status& status, Nanos) override {
      log_->Add(absl::StatusCodeToString(status.code()));
    }

   private:
    EventLog* const log_;
  } guard(&log_);
  interceptors_ = {&guard};
  Serve();
  Context ctx(kMaxTestWait);
  {
    const auto stream = Hold(ctx);
    std::string answer;
    EXPECT_TRUE(stream->Write(Request(kList, "*")) && stream->Read(&answer));
    EXPECT_TRUE(stream->Finish().ok());
  }
  Context refused(kMaxTestWait);
  refused.AddMetadata("x-refuse", "1");
  EXPECT_EQ(Open(refused)->Finish().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(log_.Await(3), ElementsAre("before", "OK", "before"));
  mid_.reset();  // before the guard
}

}  // namespace
}  // namespace curtail
