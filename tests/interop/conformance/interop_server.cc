// SPDX-License-Identifier: Apache-2.0
//
// The server of gRPC's interoperability tests, for the clients of other implementations, under any threading model.
// Takes the flags of any server.
#include <thread>

#include "curtail/rpc/server_main.h"
#include "interop.curtail.h"

namespace grpc::testing {
namespace {

using curtail::Context;

constexpr char kInitialKey[] = "x-grpc-test-echo-initial";
constexpr char kTrailingKey[] = "x-grpc-test-echo-trailing-bin";

void EchoMetadata(Context& ctx) {
  if (const auto value = ctx.metadata().Find(kInitialKey)) ctx.AddInitialMetadata(kInitialKey, *value);
  if (const auto value = ctx.metadata().Find(kTrailingKey)) ctx.AddTrailingMetadata(kTrailingKey, *value);
}

absl::Status StatusOf(const EchoStatus& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code()), status.message());
}

class Interop final : public TestService::CoroutineService {
 public:
  curtail::Coroutine EmptyCall(Context&, const Empty&, Empty*) override { co_return absl::OkStatus(); }

  curtail::Coroutine UnaryCall(Context& ctx, const SimpleRequest& request, SimpleResponse* reply) override {
    EchoMetadata(ctx);
    if (request.has_response_status()) co_return StatusOf(request.response_status());
    if (request.response_size() < 0) co_return absl::InvalidArgumentError("a negative size");
    reply->mutable_payload()->set_body(std::string(static_cast<size_t>(request.response_size()), '\0'));
    co_return absl::OkStatus();
  }

  curtail::Coroutine StreamingOutputCall(
      Context&, const StreamingOutputCallRequest& request,
      curtail::AsyncStreamWriter<StreamingOutputCallResponse>& replies) override {
    return Answer(request, replies);
  }

  curtail::Coroutine StreamingInputCall(Context&,
                                        curtail::AsyncStreamReader<StreamingInputCallRequest>& requests,
                                        StreamingInputCallResponse* reply) override {
    size_t sum = 0;
    for (StreamingInputCallRequest request; co_await requests.Read(&request);)
      sum += request.payload().body().size();
    reply->set_aggregated_payload_size(static_cast<int32_t>(sum));
    co_return requests.status();
  }

  curtail::Coroutine FullDuplexCall(
      Context& ctx,
      curtail::AsyncServerStream<StreamingOutputCallRequest, StreamingOutputCallResponse>& stream) override {
    EchoMetadata(ctx);
    for (StreamingOutputCallRequest request; co_await stream.Read(&request);) {
      absl::Status status = co_await Answer(request, stream);
      if (!status.ok()) co_return status;
    }
    co_return stream.status();
  }

  curtail::Coroutine HalfDuplexCall(
      Context&,
      curtail::AsyncServerStream<StreamingOutputCallRequest, StreamingOutputCallResponse>& stream) override {
    std::vector<StreamingOutputCallRequest> requests;
    for (StreamingOutputCallRequest request; co_await stream.Read(&request);) requests.push_back(request);
    for (const StreamingOutputCallRequest& request : requests) {
      absl::Status status = co_await Answer(request, stream);
      if (!status.ok()) co_return status;
    }
    co_return stream.status();
  }

 private:
  template <class Stream>
  static curtail::Coroutine Answer(const StreamingOutputCallRequest& request, Stream& stream) {
    if (request.has_response_status()) co_return StatusOf(request.response_status());
    for (const ResponseParameters& wanted : request.response_parameters()) {
      if (wanted.size() < 0) co_return absl::InvalidArgumentError("a negative size");
      std::this_thread::sleep_for(std::chrono::microseconds(wanted.interval_us()));
      StreamingOutputCallResponse reply;
      reply.mutable_payload()->set_body(std::string(static_cast<size_t>(wanted.size()), '\0'));
      if (!co_await stream.Write(reply)) co_return stream.status();
    }
    co_return absl::OkStatus();
  }
};

}  // namespace
}  // namespace grpc::testing

int main(int argc, char** argv) {
  return curtail::ServerMain(argc, argv, std::make_unique<grpc::testing::Interop>());
}
