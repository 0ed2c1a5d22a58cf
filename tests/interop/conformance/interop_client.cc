// SPDX-License-Identifier: Apache-2.0
//
// The client of gRPC's interoperability tests, for the servers of other implementations: the fourteen basic cases.
//
// Usage: interop_client ADDRESS [CA_FILE SERVER_NAME]
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"
#include "interop.curtail.h"

namespace grpc::testing {
namespace {

using curtail::Channel;
using curtail::Context;
using curtail::Join;

constexpr auto kTimeout = std::chrono::seconds(20);
constexpr int kRequestSizes[] = {27182, 8, 1828, 45904};
constexpr int kReplySizes[] = {31415, 9, 2653, 58979};

// The fault that a case finds; empty: none.
using Outcome = std::string;

Outcome Want(bool holds, std::string_view what) { return holds ? Outcome() : Outcome(what); }
Outcome WantStatus(const absl::Status& status, absl::StatusCode code, std::string_view message = {}) {
  const bool right = status.code() == code && (message.empty() || curtail::Message(status) == message);
  return Want(right, Join("status ", status.ToString()));
}

StreamingOutputCallRequest Ask(int request_size, int reply_size) {
  StreamingOutputCallRequest request;
  request.add_response_parameters()->set_size(reply_size);
  request.mutable_payload()->set_body(std::string(static_cast<size_t>(request_size), '\0'));
  return request;
}

SimpleRequest Large() {
  SimpleRequest request;
  request.set_response_size(314159);
  request.mutable_payload()->set_body(std::string(271828, '\0'));
  return request;
}

class Cases {
 public:
  explicit Cases(Channel& channel) : channel_(channel), stub_(&channel) {}

  Outcome EmptyUnary() {
    Empty reply;
    return WantStatus(stub_.EmptyCall(ctx_, Empty(), &reply), absl::StatusCode::kOk);
  }
  Outcome LargeUnary() {
    SimpleResponse reply;
    const absl::Status status = stub_.UnaryCall(ctx_, Large(), &reply);
    if (!status.ok()) return status.ToString();
    return Want(reply.payload().body() == std::string(314159, '\0'), "another payload");
  }
  Outcome ClientStreaming() {
    auto stream = stub_.StreamingInputCall(ctx_);
    for (const int size : kRequestSizes) {
      StreamingInputCallRequest request;
      request.mutable_payload()->set_body(std::string(static_cast<size_t>(size), '\0'));
      if (!stream.Write(request)) return "cannot write";
    }
    StreamingInputCallResponse reply;
    const absl::Status status = stream.Finish(&reply);
    if (!status.ok()) return status.ToString();
    return Want(reply.aggregated_payload_size() == 74922, "another sum");
  }
  Outcome ServerStreaming() {
    StreamingOutputCallRequest request;
    for (const int size : kReplySizes) request.add_response_parameters()->set_size(size);
    auto stream = stub_.StreamingOutputCall(ctx_, request);
    StreamingOutputCallResponse reply;
    for (const int size : kReplySizes) {
      if (!stream.Read(&reply)) return "too few messages";
      if (reply.payload().body().size() != static_cast<size_t>(size)) return "another size";
    }
    if (stream.Read(&reply)) return "too many messages";
    return WantStatus(stream.Finish(), absl::StatusCode::kOk);
  }
  Outcome PingPong() {
    auto stream = stub_.FullDuplexCall(ctx_);
    StreamingOutputCallResponse reply;
    for (int i = 0; i < 4; ++i) {
      if (!stream.Write(Ask(kRequestSizes[i], kReplySizes[i])) || !stream.Read(&reply)) return "no answer";
      if (reply.payload().body().size() != static_cast<size_t>(kReplySizes[i])) return "another size";
    }
    stream.WritesDone();
    if (stream.Read(&reply)) return "too many messages";
    return WantStatus(stream.Finish(), absl::StatusCode::kOk);
  }
  Outcome EmptyStream() {
    auto stream = stub_.FullDuplexCall(ctx_);
    stream.WritesDone();
    StreamingOutputCallResponse reply;
    if (stream.Read(&reply)) return "a message";
    return WantStatus(stream.Finish(), absl::StatusCode::kOk);
  }
  Outcome TimeoutOnSleepingServer() {
    ctx_.ShortenDeadline(curtail::Deadline::In(std::chrono::milliseconds(1)));
    auto stream = stub_.FullDuplexCall(ctx_);
    StreamingOutputCallRequest request;  // that wants no answer
    request.mutable_payload()->set_body(std::string(27182, '\0'));
    stream.Write(request);
    StreamingOutputCallResponse reply;
    if (stream.Read(&reply)) return "an answer";
    return WantStatus(stream.Finish(), absl::StatusCode::kDeadlineExceeded);
  }
  Outcome CancelAfterBegin() {
    auto stream = stub_.StreamingInputCall(ctx_);
    stream.Cancel();
    StreamingInputCallResponse reply;
    return WantStatus(stream.Finish(&reply), absl::StatusCode::kCancelled);
  }
  Outcome CancelAfterFirstResponse() {
    auto stream = stub_.FullDuplexCall(ctx_);
    StreamingOutputCallResponse reply;
    if (!stream.Write(Ask(27182, 31415)) || !stream.Read(&reply)) return "no answer";
    stream.Cancel();
    return WantStatus(stream.Finish(), absl::StatusCode::kCancelled);
  }
  Outcome StatusCodeAndMessage() { return EchoesStatus("test status message"); }
  Outcome SpecialStatusMessage() {
    return EchoesStatus(
        "\t\ntest with whitespace\r\nand Unicode BMP \xe2\x98\xba and non-BMP \xf0\x9f\x98\x88\t\n");
  }
  Outcome CustomMetadata() {
    const std::string bytes("\xab\xab\xab");
    ctx_.AddMetadata("x-grpc-test-echo-initial", "test_initial_metadata_value");
    ctx_.AddMetadata("x-grpc-test-echo-trailing-bin", bytes);
    const auto echoed = [&](const curtail::ReplyMetadata& metadata) {
      return metadata.initial.Find("x-grpc-test-echo-initial") == "test_initial_metadata_value" &&
             metadata.trailing.Find("x-grpc-test-echo-trailing-bin") == bytes;
    };
    SimpleResponse reply;
    curtail::ReplyMetadata metadata;
    if (!stub_.UnaryCall(ctx_, Large(), &reply, &metadata).ok()) return "the unary call fails";
    if (!echoed(metadata)) return "the unary call's metadata are others";
    auto stream = stub_.FullDuplexCall(ctx_);
    stream.Write(Ask(271828, 314159));
    if (!stream.Finish().ok()) return "the stream fails";
    return Want(echoed(stream.metadata()), "the stream's metadata are others");
  }
  Outcome UnimplementedMethod() { return NotThere("/grpc.testing.TestService/UnimplementedCall"); }
  Outcome UnimplementedService() { return NotThere("/grpc.testing.UnimplementedService/UnimplementedCall"); }

 private:
  Outcome EchoesStatus(std::string_view message) {
    SimpleRequest request;
    request.mutable_response_status()->set_code(2);
    request.mutable_response_status()->set_message(std::string(message));
    SimpleResponse reply;
    const Outcome unary =
        WantStatus(stub_.UnaryCall(ctx_, request, &reply), absl::StatusCode::kUnknown, message);
    if (!unary.empty()) return unary;
    StreamingOutputCallRequest ask;
    *ask.mutable_response_status() = request.response_status();
    auto stream = stub_.FullDuplexCall(ctx_);
    stream.Write(ask);
    return WantStatus(stream.Finish(), absl::StatusCode::kUnknown, message);
  }
  Outcome NotThere(std::string_view path) {
    Empty reply;
    return WantStatus(channel_.Call(ctx_, path, Empty(), &reply), absl::StatusCode::kUnimplemented);
  }

  Context ctx_{kTimeout};
  Channel& channel_;
  TestService::Stub stub_;
};

constexpr struct {
  const char* name;
  Outcome (Cases::*run)();
} kCases[] = {
    {"empty_unary", &Cases::EmptyUnary},
    {"large_unary", &Cases::LargeUnary},
    {"client_streaming", &Cases::ClientStreaming},
    {"server_streaming", &Cases::ServerStreaming},
    {"ping_pong", &Cases::PingPong},
    {"empty_stream", &Cases::EmptyStream},
    {"timeout_on_sleeping_server", &Cases::TimeoutOnSleepingServer},
    {"cancel_after_begin", &Cases::CancelAfterBegin},
    {"cancel_after_first_response", &Cases::CancelAfterFirstResponse},
    {"status_code_and_message", &Cases::StatusCodeAndMessage},
    {"special_status_message", &Cases::SpecialStatusMessage},
    {"custom_metadata", &Cases::CustomMetadata},
    {"unimplemented_method", &Cases::UnimplementedMethod},
    {"unimplemented_service", &Cases::UnimplementedService},
};

int Run(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::fprintf(stderr, "usage: interop_client ADDRESS [CA_FILE SERVER_NAME]\n");
    return 104;
  }
  curtail::ChannelOptions options;
  if (argc == 4) {
    auto tls = curtail::ClientTls::Load({.ca_file = argv[2], .server_name = argv[3]});
    if (!tls.ok()) {
      std::fprintf(stderr, "%s\n", tls.status().ToString().c_str());
      return 104;
    }
    options.tls = *std::move(tls);
  }
  curtail::Client client;
  Channel channel(&client, argv[1], options);
  int failed = 0;
  for (const auto& one : kCases) {
    Cases cases(channel);
    const Outcome wrong = (cases.*one.run)();
    std::printf("%s %s%s\n", wrong.empty() ? "ok  " : "FAIL", one.name,
                Join(wrong.empty() ? "" : ": ", wrong).c_str());
    failed += wrong.empty() ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace grpc::testing

int main(int argc, char** argv) { return grpc::testing::Run(argc, argv); }
