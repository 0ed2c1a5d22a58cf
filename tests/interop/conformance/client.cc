// SPDX-License-Identifier: Apache-2.0
//
// The client that the conformance suite drives: it makes the calls that come on standard input, one after the
// other, and writes their outcomes to standard output.
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "compat.h"
#include "connectrpc/conformance/v1/client_compat.pb.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/stream.h"

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

// A call that the suite wants, and what becomes of it.
struct Job {
  const v1::ClientCompatRequest& wanted;
  v1::ClientCompatResponse* outcome;
  Context ctx{wanted.has_timeout_ms() ? Deadline::In(std::chrono::milliseconds(wanted.timeout_ms()))
                                      : Deadline::Infinite()};
  Channel& channel;
  const std::string path = Join("/", wanted.service(), "/", wanted.method());
  std::optional<CancelLater> cancel = {};

  v1::ClientResponseResult& result() { return *outcome->mutable_response(); }
  // All has been sent: a call that shall be cancelled is, now or later.
  void Sent() {
    if (wanted.cancel().has_before_close_send()) ctx.Cancel();
    if (wanted.cancel().has_after_close_send_ms()) {
      cancel.emplace(ctx, std::chrono::milliseconds(wanted.cancel().after_close_send_ms()));
    }
  }
  template <class Reply>
  void Got(const Reply& reply) {
    if constexpr (requires { reply.payload(); }) *result().add_payloads() = reply.payload();
    const auto& when = wanted.cancel();
    if (when.has_after_num_responses() &&
        result().payloads_size() == static_cast<int>(when.after_num_responses())) {
      ctx.Cancel();
    }
  }
  void End(const absl::Status& status, const ReplyMetadata& metadata) {
    AddHeaders(metadata.initial, result().mutable_response_headers());
    AddHeaders(metadata.trailing, result().mutable_response_trailers());
    if (!status.ok()) *result().mutable_error() = ToError(status);
  }
};

template <class Request>
Request RequestOf(const Job& job, int i) {
  Request request;
  if (i < job.wanted.request_messages_size()) job.wanted.request_messages(i).UnpackTo(&request);
  return request;
}

// Writes all requests; `each` follows each of them, and may end the writing.
template <class Request, class Stream, class Each>
void WriteAll(Job& job, Stream& stream, Each each) {
  const int count = job.wanted.request_messages_size();
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(job.wanted.request_delay_ms()));
    if (!stream.Write(RequestOf<Request>(job, i))) {
      job.result().set_num_unsent_requests(count - i);
      break;
    }
    if (!each()) break;
  }
  job.Sent();
}

template <class Request, class Reply>
void CallUnary(Job& job) {
  job.Sent();
  Reply reply;
  ReplyMetadata metadata;
  const absl::Status status =
      job.channel.Call(job.ctx, job.path, RequestOf<Request>(job, 0), &reply, &metadata);
  if (status.ok()) job.Got(reply);
  job.End(status, metadata);
}

void CallServerStream(Job& job) {
  ClientReader<v1::ServerStreamResponse> stream(curtail::internal::OpenStream(
      job.ctx, job.channel, job.path, RequestOf<v1::ServerStreamRequest>(job, 0)));
  job.Sent();
  for (v1::ServerStreamResponse reply; stream.Read(&reply);) job.Got(reply);
  const absl::Status status = stream.Finish();
  job.End(status, stream.metadata());
}

void CallClientStream(Job& job) {
  ClientWriter<v1::ClientStreamRequest, v1::ClientStreamResponse> stream(
      curtail::internal::OpenStream(job.ctx, job.channel, job.path));
  WriteAll<v1::ClientStreamRequest>(job, stream, [] { return true; });
  v1::ClientStreamResponse reply;
  const absl::Status status = stream.Finish(&reply);
  if (status.ok()) job.Got(reply);
  job.End(status, stream.metadata());
}

void CallBidiStream(Job& job) {
  ClientStream<v1::BidiStreamRequest, v1::BidiStreamResponse> stream(
      curtail::internal::OpenStream(job.ctx, job.channel, job.path));
  const bool full_duplex = job.wanted.stream_type() == v1::STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM;
  v1::BidiStreamResponse reply;
  const auto read = [&] {
    const bool there = stream.Read(&reply);
    if (there) job.Got(reply);
    return there;
  };
  WriteAll<v1::BidiStreamRequest>(job, stream, [&] { return !full_duplex || read(); });
  stream.WritesDone();
  while (read()) continue;
  const absl::Status status = stream.Finish();
  job.End(status, stream.metadata());
}

absl::StatusOr<std::shared_ptr<const ClientTls>> TlsOf(const v1::ClientCompatRequest& wanted) {
  const ScratchFile ca(wanted.server_tls_cert());
  const ScratchFile certificate(wanted.client_tls_creds().cert());
  const ScratchFile key(wanted.client_tls_creds().key());
  TlsOptions options{.ca_file = ca.path()};
  if (wanted.has_client_tls_creds()) {
    options.certificate_file = certificate.path();
    options.key_file = key.path();
  }
  return ClientTls::Load(options);
}

void Run(const v1::ClientCompatRequest& wanted, v1::ClientCompatResponse* outcome) {
  ChannelOptions options;
  if (wanted.compression() == v1::COMPRESSION_GZIP) options.encoding = wire::Encoding::kGzip;
  if (wanted.compression() == v1::COMPRESSION_DEFLATE) options.encoding = wire::Encoding::kDeflate;
  if (wanted.message_receive_limit() > 0) options.max_message_bytes = wanted.message_receive_limit();
  if (!wanted.server_tls_cert().empty()) {
    auto tls = TlsOf(wanted);
    if (!tls.ok()) return outcome->mutable_error()->set_message(std::string(Message(tls.status())));
    options.tls = *std::move(tls);
  }
  Client client;
  Channel channel(&client, Join(wanted.host(), ":", wanted.port()), options);
  Job job{.wanted = wanted, .outcome = outcome, .channel = channel};
  ForEachHeader(wanted.request_headers(),
                [&](const std::string& key, const std::string& value) { job.ctx.AddMetadata(key, value); });
  if (wanted.method() == "Unary") {
    CallUnary<v1::UnaryRequest, v1::UnaryResponse>(job);
  } else if (wanted.method() == "Unimplemented") {
    CallUnary<v1::UnimplementedRequest, v1::UnimplementedResponse>(job);
  } else if (wanted.method() == "ServerStream") {
    CallServerStream(job);
  } else if (wanted.method() == "ClientStream") {
    CallClientStream(job);
  } else if (wanted.method() == "BidiStream") {
    CallBidiStream(job);
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
