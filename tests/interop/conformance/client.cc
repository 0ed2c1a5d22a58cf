// SPDX-License-Identifier: Apache-2.0
//
// The client that the conformance suite drives: it makes the unary calls that come on standard input, one after the
// other, and writes their outcomes to standard output.
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "compat.h"
#include "connectrpc/conformance/v1/client_compat.pb.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"

namespace curtail::conformance {
namespace {

// Cancels a context after some time, unless it is destroyed before.
class CancelLater {
 public:
  CancelLater(Context& ctx, std::chrono::milliseconds after)
      : thread_([this, &ctx, after] {
          std::unique_lock lock(mu_);
          if (!cv_.wait_for(lock, after, [this] { return over_; })) ctx.Cancel();
        }) {}
  ~CancelLater() {
    {
      std::lock_guard lock(mu_);
      over_ = true;
    }
    cv_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  bool over_ = false;
  std::thread thread_;
};

template <class Request, class Reply>
void Call(Channel& channel, const v1::ClientCompatRequest& wanted, v1::ClientCompatResponse* outcome) {
  Request request;
  if (wanted.request_messages_size() != 1 || !wanted.request_messages(0).UnpackTo(&request)) {
    outcome->mutable_error()->set_message("a unary call has one message, of the method's type");
    return;
  }
  Context ctx(wanted.has_timeout_ms() ? Deadline::In(std::chrono::milliseconds(wanted.timeout_ms()))
                                      : Deadline::Infinite());
  ForEachHeader(wanted.request_headers(),
                [&](const std::string& key, const std::string& value) { ctx.AddMetadata(key, value); });
  std::optional<CancelLater> cancel;
  if (wanted.cancel().has_after_close_send_ms()) {
    cancel.emplace(ctx, std::chrono::milliseconds(wanted.cancel().after_close_send_ms()));
  }
  Reply reply;
  ReplyMetadata metadata;
  const std::string path = Join("/", wanted.service(), "/", wanted.method());
  const absl::Status status = channel.Call(ctx, path, request, &reply, &metadata);
  v1::ClientResponseResult& result = *outcome->mutable_response();
  AddHeaders(metadata.initial, result.mutable_response_headers());
  AddHeaders(metadata.trailing, result.mutable_response_trailers());
  if (!status.ok()) {
    *result.mutable_error() = ToError(status);
  } else if constexpr (requires { reply.payload(); }) {
    *result.add_payloads() = reply.payload();
  }
}

void Run(const v1::ClientCompatRequest& wanted, v1::ClientCompatResponse* outcome) {
  ChannelOptions options;
  if (wanted.compression() == v1::COMPRESSION_GZIP) options.encoding = wire::Encoding::kGzip;
  if (wanted.compression() == v1::COMPRESSION_DEFLATE) options.encoding = wire::Encoding::kDeflate;
  if (wanted.message_receive_limit() > 0) options.max_message_bytes = wanted.message_receive_limit();
  Client client;
  Channel channel(&client, Join(wanted.host(), ":", wanted.port()), options);
  if (wanted.method() == "Unary") {
    Call<v1::UnaryRequest, v1::UnaryResponse>(channel, wanted, outcome);
  } else if (wanted.method() == "Unimplemented") {
    Call<v1::UnimplementedRequest, v1::UnimplementedResponse>(channel, wanted, outcome);
  } else {
    outcome->mutable_error()->set_message(Join("no such method here: ", wanted.method()));
  }
}

}  // namespace
}  // namespace curtail::conformance

int main() {
  using namespace curtail::conformance;
  v1::ClientCompatRequest wanted;
  while (Read(&wanted)) {
    v1::ClientCompatResponse outcome;
    outcome.set_test_name(wanted.test_name());
    Run(wanted, &outcome);
    Write(outcome);
  }
  return 0;
}
