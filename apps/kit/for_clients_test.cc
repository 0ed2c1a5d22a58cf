// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/for_clients.h"

#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/async_stream.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/in_process.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/stream.h"

namespace curtail::apps {
namespace {

using google::protobuf::Int32Value;

constexpr char kWords[] = "unix:/run/secret.sock: SELECT 1";

constexpr int kMarked = 100;  // and the code

absl::Status Of(int code) {
  if (code == 0) return absl::OkStatus();
  const absl::Status error(static_cast<absl::StatusCode>(code % kMarked), kWords);
  return code > kMarked ? ForClients(error) : error;
}

// Ends each call with the code that its request asks for.
class FailingService final : public Service {
 public:
  std::string_view FullName() const override { return "test.Failing"; }
  std::vector<MethodHandler> Handlers() override {
    std::vector<MethodHandler> handlers;
    handlers.push_back(internal::CoroutineMethod<Int32Value, Int32Value>(
        "Fail",
        [](Context&, const Int32Value& code, Int32Value* reply) { return Fail(code.value(), reply); }));
    handlers.push_back(internal::AsyncBidirectionalMethod<Int32Value, Int32Value>(
        "FailLate",
        [](Context&, AsyncServerStream<Int32Value, Int32Value>& stream) { return FailLate(stream); }));
    return handlers;
  }

 private:
  static Coroutine Fail(int code, Int32Value* reply) {
    reply->set_value(code);
    co_return Of(code);
  }
  static Coroutine FailLate(AsyncServerStream<Int32Value, Int32Value>& stream) {
    Int32Value code;
    co_await stream.Read(&code);
    co_return Of(code.value());
  }
};

// A failure of the service gets general words. An error for the client keeps its own.
void ExpectWords(const absl::Status& status, int code, const std::string& where) {
  using Code = absl::StatusCode;
  const bool own =
      code < kMarked && (status.code() == Code::kUnknown || status.code() == Code::kInternal ||
                         status.code() == Code::kDataLoss || status.code() == Code::kUnavailable ||
                         status.code() == Code::kDeadlineExceeded);
  EXPECT_EQ(static_cast<int>(status.code()), code % kMarked) << where;
  EXPECT_EQ(status.message() == kWords, !status.ok() && !own) << where << ": " << status;
  EXPECT_EQ(status.message().empty(), status.ok()) << where << ": " << status;
}

void ExpectWordsOfCalls(Channel& channel, const std::string& where) {
  std::vector<int> codes = {kMarked + static_cast<int>(absl::StatusCode::kUnavailable)};
  for (int code = 0; code <= 16; ++code) codes.push_back(code);
  for (const int code : codes) {
    Int32Value request, reply;
    request.set_value(code);
    Context ctx(kMaxTestWait);
    ExpectWords(channel.Call(ctx, "/test.Failing/Fail", request, &reply), code, where);

    Context streams(kMaxTestWait);
    ClientStream<Int32Value, Int32Value> stream(
        internal::OpenStream(streams, channel, "/test.Failing/FailLate"));
    stream.Write(request);
    ExpectWords(stream.Finish(), code, where + ", a stream");
  }
}

TEST(ForClients, RewordsFailuresOfTheServiceUnderAllModels) {
  Client client;
  for (const char* config : {"SIB1", "SDB1-2", "FIB1", "AIB1-1"}) {
    ServerOptions options;
    options.config = *Config::Parse(config);
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(ForClients(std::make_unique<FailingService>()));
    auto server = Server::Start(std::move(options), std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    Channel channel(&client, (*server)->addresses()[0]);
    ExpectWordsOfCalls(channel, config);
  }
}

TEST(ForClients, RewordsThemForCallersInTheProcess) {
  Client client;
  const std::unique_ptr<Service> service = ForClients(std::make_unique<FailingService>());
  InProcess here("here");
  ASSERT_TRUE(here.Serve(*service).ok());
  Channel channel(&client, &here);
  ExpectWordsOfCalls(channel, "in process");
}

}  // namespace
}  // namespace curtail::apps
