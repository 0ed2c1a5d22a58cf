// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: HTTP's layer on an HTTP/2 connection, at a client's end. The tag of a stream is its exchange, or null once the
// exchange was given up. Of a reply nothing is kept but its status and its body.
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/wire/http/http_client_codec.h"
#include "curtail/wire/internal/http2.h"

namespace curtail::internal {
namespace {

using wire::StreamId;
using wire::internal::ErrorCode;
using wire::internal::HeaderField;
using wire::internal::HpackEncoder;
using wire::internal::Stream;

wire::SessionOptions Options() {
  wire::SessionOptions options;
  options.max_header_bytes = HttpLimits::kMaxHeadBytes;
  return options;
}

class Http2ClientCodec final : public HttpCodec, private wire::StreamEvents, private wire::internal::Http2 {
 public:
  explicit Http2ClientCodec(const HttpLimits& limits)
      : Http2(wire::Role::kClient, Options(), this), limits_(limits) {}

  bool CanStart() const override { return takes_streams(); }
  void Start(HttpExchange* exchange) override;
  bool Cancel(HttpExchange* exchange) override;
  absl::Status Receive(std::string_view bytes, Ended* ended) override;
  void Pull(std::string* out, size_t limit) override;
  bool Finished() const override { return !CanStart() && open_streams() == 0; }
  Ended TakeAll() override;
  size_t held_bytes() const override { return held_; }

 private:
  static HttpExchange& Of(const Stream* s) { return *static_cast<HttpExchange*>(s->tag); }

  void OnCallUnprocessed(StreamId, void* tag, std::string&&) override;
  void OnCallEnd(StreamId, void* tag, absl::Status&& status, wire::Metadata&&) override;
  TimePoint now() override { return Now(); }

  void SendRequest(Stream* s) override;
  bool DecodeFields(std::string_view block) override;
  void OnFields(Stream* s, StreamId, bool end_stream) override;
  void OnContent(Stream* s, std::string_view content, bool end) override;
  // END_STREAM has arrived.
  void OnReplyEnd(Stream* s);
  // The reply breaks a limit.
  void Fail(Stream* s, std::string_view what, size_t limit);

  const HttpLimits limits_;
  Ended* ended_ = nullptr;             // while Receive() runs, in which all exchanges end
  StreamId last_pulled_ = 0;           // the last stream whose request has left
  size_t held_ = 0;                    // bytes of replies in exchanges that are in flight
  std::string first_bytes_;            // from the server: it may speak another protocol
  wire::internal::HttpFields fields_;  // of the block being decoded
};

// ----- requests -------------------------------------------------------------------------------------------

void Http2ClientCodec::Start(HttpExchange* exchange) {
  Stream* const s = OpenStream(exchange);
  exchange->stream = s->id;
  s->head_only = exchange->endpoint->verb == "HEAD";
  s->ending = true;
  queued_bytes_ += exchange->body.size();
  s->queue.Append(std::string(exchange->body));
  if (s->waiting) return;
  SendRequest(s);
  MarkReady(s);
}

void Http2ClientCodec::SendRequest(Stream* s) {
  using enum HpackEncoder::Indexing;
  const HttpExchange& exchange = Of(s);
  const HttpEndpoint& endpoint = *exchange.endpoint;
  const size_t begin = BeginBlock();
  encoder_.Encode(":method", endpoint.verb, kIndex, &out_);
  encoder_.Encode(":scheme", endpoint.scheme, kIndex, &out_);
  encoder_.Encode(":authority", exchange.headers.Find("host").value_or(endpoint.authority), kIndex, &out_);
  encoder_.Encode(":path", endpoint.path, kIndex, &out_);
  for (const auto& [name, value] : exchange.headers) {
    if (name != "host") encoder_.Encode(name, value, kIndex, &out_);
  }
  s->sent_end = s->queue.empty();
  if (!s->sent_end) encoder_.Encode("content-length", Join(exchange.body.size()), kNone, &out_);
  EndBlock(begin, s->id, s->sent_end);
}

bool Http2ClientCodec::Cancel(HttpExchange* exchange) {
  Stream* const s = Find(exchange->stream);
  if (s == nullptr || s->tag != exchange) return true;
  s->tag = nullptr;
  held_ -= exchange->reply.size();
  Reset(s, ErrorCode::kCancel, absl::CancelledError("given up"));
  return true;
}

void Http2ClientCodec::Pull(std::string* out, size_t limit) {
  Http2::Pull(out, limit);
  last_pulled_ = last_opened_;
}

HttpCodec::Ended Http2ClientCodec::TakeAll() {
  Ended all;
  streams_.ForEach([&](Stream* s) {
    Of(s).unprocessed = s->id > last_pulled_;
    all.push_back(&Of(s));
  });
  Abort(absl::UnavailableError("the connection is gone"));
  return all;
}

// ----- replies --------------------------------------------------------------------------------------------

absl::Status Http2ClientCodec::Receive(std::string_view bytes, Ended* ended) {
  constexpr std::string_view kHttp1 = "HTTP/1";
  if (first_bytes_.size() < kHttp1.size()) {
    first_bytes_.append(bytes.substr(0, kHttp1.size() - first_bytes_.size()));
    if (first_bytes_ == kHttp1) return absl::UnavailableError("the server speaks HTTP/1.1, not HTTP/2");
  }
  ended_ = ended;
  const absl::Status status = Http2::Receive(bytes);
  ended_ = nullptr;
  if (status.ok()) return status;
  return absl::UnavailableError(Join("the server broke HTTP/2: ", Message(status)));
}

void Http2ClientCodec::OnCallUnprocessed(StreamId, void* tag, std::string&&) {
  if (tag != nullptr) static_cast<HttpExchange*>(tag)->unprocessed = true;
}

void Http2ClientCodec::OnCallEnd(StreamId, void* tag, absl::Status&& status, wire::Metadata&&) {
  auto* const exchange = static_cast<HttpExchange*>(tag);
  if (exchange == nullptr) return;
  held_ -= exchange->reply.size();
  if (ended_ == nullptr) return;
  if (exchange->error.ok() && !status.ok()) exchange->error = absl::UnavailableError(status.message());
  ended_->push_back(exchange);
}

bool Http2ClientCodec::DecodeFields(std::string_view block) {
  fields_ = {};
  return decoder_.Decode(
      block, [this](const HeaderField& field) { fields_.Take(field, options_.max_header_bytes); });
}

void Http2ClientCodec::OnFields(Stream* s, StreamId, bool end_stream) {
  const bool informational = !s->got_head && fields_.status < 200 && !fields_.too_long;
  const bool well_formed = s->got_head ? fields_.IsTrailers(end_stream) : fields_.IsReply();
  if (s->got_end || !well_formed || (informational && (end_stream || fields_.status == 101))) {
    return StreamError(s, s->got_end ? ErrorCode::kStreamClosed : ErrorCode::kProtocolError);
  }
  s->head_bytes += fields_.bytes;
  head_bytes_ += fields_.bytes;
  if (s->head_bytes > options_.max_header_bytes) return Fail(s, "a header", options_.max_header_bytes);
  if (informational) return;
  if (!s->got_head) {
    s->got_head = true;
    Of(s).status = fields_.status;
    // A reply without content may say how long it would be.
    const bool no_content = s->head_only || fields_.status == 204 || fields_.status == 304;
    if (no_content) fields_.has_length = true, fields_.content_length = 0;
    if (fields_.has_length) SetContentLength(s, fields_);
  }
  if (!end_stream) return;
  if (!CountContent(s, 0, true)) return StreamError(s, ErrorCode::kProtocolError);
  OnReplyEnd(s);
}

void Http2ClientCodec::OnContent(Stream* s, std::string_view content, bool end) {
  if (!CountContent(s, content.size(), end)) return StreamError(s, ErrorCode::kProtocolError);
  std::string& reply = Of(s).reply;
  if (content.size() > limits_.max_body_bytes - reply.size())
    return Fail(s, "a reply", limits_.max_body_bytes);
  reply.append(content);
  held_ += content.size();
  if (end) OnReplyEnd(s);
}

void Http2ClientCodec::OnReplyEnd(Stream* s) {
  if (!s->sent_end) AppendReset(s->id, ErrorCode::kNoError);  // nobody will read the rest of the request
  Close(s);
  Finish(s, absl::OkStatus());
}

void Http2ClientCodec::Fail(Stream* s, std::string_view what, size_t limit) {
  Of(s).error = absl::ResourceExhaustedError(Join(what, " of more than ", limit, " bytes"));
  Reset(s, ErrorCode::kCancel, absl::CancelledError("too long"));
}

}  // namespace

std::unique_ptr<HttpCodec> MakeHttp2Codec(const HttpLimits& limits) {
  return std::make_unique<Http2ClientCodec>(limits);
}

}  // namespace curtail::internal
