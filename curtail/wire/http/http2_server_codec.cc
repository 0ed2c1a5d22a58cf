// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: HTTP's layer on an HTTP/2 connection, at a server's end. A request is partial until its last byte, or until it is
// refused; it stands in partials_ meanwhile. Then it is in flight until the owner has given the last byte of its answer.
// The tag of a stream is the stream. Answers always queue there, so that the owner knows what has not left.
//
// Not offered: CONNECT, and trailers, which are read and dropped.
#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "curtail/base/strings.h"
#include "curtail/wire/http/http_codec.h"
#include "curtail/wire/internal/http2.h"

namespace curtail::wire {
namespace {

using internal::ErrorCode;
using internal::Field;
using internal::HeaderField;
using internal::HpackEncoder;
using internal::Stream;

SessionOptions OptionsOf(const HttpLimits& limits) {
  SessionOptions options;
  options.max_header_bytes = static_cast<uint32_t>(limits.max_head_bytes);
  options.max_concurrent_streams = limits.max_streams;
  options.stream_window_bytes = 1u << 20;
  options.connection_window_bytes = 4u << 20;
  return options;
}

bool EqualInAnyCase(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return absl::ascii_tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool IsOf(std::string_view text, std::string_view marks) {
  const auto is_one = [marks](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || marks.find(c) != marks.npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_one);
}
bool IsToken(std::string_view text) { return IsOf(text, "!#$%&'*+-.^_`|~"); }
// A host, perhaps with a port, without a user's name (RFC 3986, 3.2).
bool IsAuthority(std::string_view text) { return IsOf(text, "-._~%!$&'()*+,;=:[]"); }
// A path, perhaps with a query. Bytes beyond ASCII are let through, as browsers send them.
bool IsTarget(std::string_view text, std::string_view verb) {
  const auto visible = [](char c) { return static_cast<unsigned char>(c) > ' ' && c != '\x7f'; };
  if (text == "*") return verb == "OPTIONS";
  return text.starts_with('/') && std::all_of(text.begin(), text.end(), visible);
}

class Http2ServerCodec final : public HttpServerCodec, private StreamEvents, private internal::Http2 {
 public:
  explicit Http2ServerCodec(const HttpLimits& limits)
      : Http2(Role::kServer, OptionsOf(limits), this), limits_(limits) {
    // A request costs its owner more than it costs this codec, and one that is given up costs it no less.
    resets_ = {1000, 100};
  }

  absl::Status Receive(std::string_view bytes, std::vector<HttpRequest>* requests) override;
  void Reply(int32_t id, HttpReply reply) override;
  void AddBody(int32_t id, std::string_view bytes, bool last) override;
  bool Abort(int32_t id) override {
    if (Stream* const s = Find(id)) Reset(s, ErrorCode::kCancel, absl::CancelledError("cut short"));
    return true;
  }
  size_t unsent(int32_t id) const override {
    const Stream* const s = Find(id);
    return s == nullptr ? 0 : s->queue.size();
  }
  std::vector<int32_t> TakeGivenUp() override { return std::exchange(given_up_, {}); }
  void Pull(std::string* out, size_t limit) override { Http2::Pull(out, limit); }
  // A client that hears of it before its first request would send none here (RFC 9113, 6.8), and is told with that.
  void LastCall() override {
    last_call_ = true;
    if (last_opened_ > 0) Notice();
  }
  void Drain() override { Notice(), SendGoaway(); }
  bool WantsInput() const override { return true; }  // it brings windows for what is to leave
  bool RefuseBodies(bool on) override;
  bool Finished() const override { return Http2::Finished(); }
  size_t in_flight() const override { return in_flight_; }
  bool in_request() const override { return !partials_.empty() || input_unfinished(); }
  size_t held_bytes() const override { return partial_bytes_ + input_bytes() + owed_bytes(); }
  size_t owed_bytes() const override { return queued_bytes_ + (begun() ? out_.size() : 0); }
  uint64_t refused() const override { return refused_; }

 private:
  struct Partial {
    HttpRequest request;
    size_t bytes;
  };

  void OnCallEnd(StreamId id, void* tag, absl::Status&&, Metadata&&) override;
  TimePoint now() override { return limits_.now(); }

  bool DecodeFields(std::string_view block) override;
  void OnField(const HeaderField& field);
  void OnFields(Stream* s, StreamId id, bool end_stream) override;
  void OnRequestHead(StreamId id, bool end_stream);
  // The head is whole. False: it is malformed.
  bool FinishHead();
  void OnContent(Stream* s, std::string_view content, bool end) override;
  // END_STREAM has arrived.
  void OnRequestEnd(Stream* s);
  // The request is whole, and nobody has refused it.
  void Take(Stream* s, HttpRequest request);
  // It is not partial any more.
  void EndPartial(StreamId id);
  void Refuse(Stream* s, int status, std::string_view why);
  void RefuseBody(Stream* s) { Refuse(s, 503, "the gateway holds too much"); }
  // The last byte of the answer has been given.
  void EndAnswer(Stream* s);
  void Queue(Stream* s, std::string&& body);
  void SendRequest(Stream*) override {}  // a client's
  void Notice() {
    if (!std::exchange(noticed_, true)) SendShutdownNotice();
  }

  const HttpLimits limits_;
  std::unordered_map<StreamId, Partial> partials_;
  size_t partial_bytes_ = 0;  // of these
  size_t in_flight_ = 0;
  uint64_t refused_ = 0;
  std::vector<int32_t> given_up_;
  bool refuses_bodies_ = false;
  bool last_call_ = false;
  bool noticed_ = false;            // the client is told of the end
  std::vector<HttpRequest> taken_;  // by the Receive() that runs

  // Of the block being decoded.
  internal::HttpFields fields_;
  HttpRequest request_;
  std::string authority_;
  std::string cookies_;
  bool has_host_ = false;  // a field of that name
  bool bad_host_ = false;
  bool expects_ = false;
};

absl::Status Http2ServerCodec::Receive(std::string_view bytes, std::vector<HttpRequest>* requests) {
  const absl::Status status = Http2::Receive(bytes);
  std::move(taken_.begin(), taken_.end(), std::back_inserter(*requests));
  taken_.clear();
  if (status.ok()) return status;
  return absl::InvalidArgumentError(Join("the client broke HTTP/2: ", Message(status)));
}

void Http2ServerCodec::OnCallEnd(StreamId id, void* tag, absl::Status&&, Metadata&&) {
  const Stream* const s = static_cast<Stream*>(tag);
  EndPartial(id);
  if (!s->got_end || s->ending) return;
  --in_flight_;
  const auto is_it = [id](const HttpRequest& request) { return request.stream == id; };
  // One that came with its reset never reaches the owner.
  if (std::erase_if(taken_, is_it) == 0) given_up_.push_back(id);
}

// ----- requests -------------------------------------------------------------------------------------------

bool Http2ServerCodec::DecodeFields(std::string_view block) {
  fields_ = {};
  request_ = {};
  authority_.clear();
  cookies_.clear();
  has_host_ = bad_host_ = expects_ = false;
  return decoder_.Decode(block, [this](const HeaderField& field) { OnField(field); });
}

void Http2ServerCodec::OnField(const HeaderField& field) {
  if (!fields_.Take(field, options_.max_header_bytes)) return;
  const std::string_view name = field.name, value = field.value;
  switch (field.field) {
    case Field::kMethod:
      request_.verb.assign(value);
      return;
    case Field::kPath:
      request_.target.assign(value);
      return;
    case Field::kScheme:
      return;
    default:
      break;
  }
  if (field.field == Field::kAuthority || name == "host") {
    bad_host_ |= has_host_ || !IsAuthority(value);
    bad_host_ |= !authority_.empty() && !EqualInAnyCase(authority_, value);
    has_host_ = name == "host";
    authority_.assign(value);
  } else if (name == "cookie") {  // RFC 9113, 8.2.3
    cookies_.append(cookies_.empty() ? "" : "; ").append(value);
  } else {
    expects_ |= name == "expect" && EqualInAnyCase(value, "100-continue");
    request_.headers.AddLowerCase(name, value);
  }
}

bool Http2ServerCodec::FinishHead() {
  if (!IsToken(request_.verb) || !IsTarget(request_.target, request_.verb)) return false;
  if (bad_host_ || authority_.empty()) return false;
  request_.headers.AddLowerCase("host", authority_);
  if (!cookies_.empty()) request_.headers.AddLowerCase("cookie", cookies_);
  return true;
}

void Http2ServerCodec::OnFields(Stream* s, StreamId id, bool end_stream) {
  if (s == nullptr) return OnRequestHead(id, end_stream);
  if (s->got_end) return StreamError(s, ErrorCode::kStreamClosed);
  if (!fields_.IsTrailers(end_stream) || !CountContent(s, 0, true))
    return StreamError(s, ErrorCode::kProtocolError);
  OnRequestEnd(s);
}

void Http2ServerCodec::OnRequestHead(StreamId id, bool end_stream) {
  const bool malformed = !fields_.IsRequest(end_stream) || (!fields_.too_long && !FinishHead());
  if (malformed || !HasRoom()) return RefuseRequest(id, malformed);
  if (fields_.too_long && !Spend(&resets_, Limit::kResets)) return;
  Stream* const s = AcceptStream(id);
  s->tag = s;
  s->got_end = end_stream;
  s->head_only = request_.verb == "HEAD";
  if (fields_.has_length) SetContentLength(s, fields_);
  if (last_call_) Notice();
  if (fields_.too_long) {
    in_flight_ += end_stream;
    return Refuse(s, 431, "the header is too long");
  }
  if (end_stream) return Take(s, std::move(request_));
  partials_.emplace(id, Partial{std::move(request_), fields_.bytes});
  partial_bytes_ += fields_.bytes;
  if (fields_.content_length > static_cast<int64_t>(limits_.max_body_bytes))
    return Refuse(s, 413, "the body is too long");
  if (expects_) {
    const size_t begin = BeginBlock();
    encoder_.Encode(":status", "100", HpackEncoder::Indexing::kNone, &out_);
    EndBlock(begin, id, /*end_stream=*/false);
  }
}

void Http2ServerCodec::OnContent(Stream* s, std::string_view content, bool end) {
  if (!CountContent(s, content.size(), end)) return StreamError(s, ErrorCode::kProtocolError);
  if (const auto at = partials_.find(s->id); at != partials_.end() && !content.empty()) {
    std::string& body = at->second.request.body;
    if (content.size() > limits_.max_body_bytes - body.size()) {
      Refuse(s, 413, "the body is too long");
    } else if (partial_bytes_ + content.size() > limits_.max_partial_bytes) {
      Refuse(s, 503, "too many bytes of unfinished requests on this connection");
    } else if (refuses_bodies_) {
      RefuseBody(s);
    } else {
      body.append(content);
      at->second.bytes += content.size();
      partial_bytes_ += content.size();
    }
  }
  if (end && !s->closed) OnRequestEnd(s);
}

void Http2ServerCodec::OnRequestEnd(Stream* s) {
  s->got_end = true;
  const auto at = partials_.find(s->id);
  if (at == partials_.end()) return;  // refused
  HttpRequest request = std::move(at->second.request);
  EndPartial(s->id);
  Take(s, std::move(request));
}

void Http2ServerCodec::Take(Stream* s, HttpRequest request) {
  ++in_flight_;
  if (queued_bytes_ >= limits_.max_partial_bytes)
    return Refuse(s, 503, "too many bytes of answers wait on this connection");
  request.stream = s->id;
  taken_.push_back(std::move(request));
}

void Http2ServerCodec::EndPartial(StreamId id) {
  const auto at = partials_.find(id);
  if (at == partials_.end()) return;
  partial_bytes_ -= at->second.bytes;
  partials_.erase(at);
}

bool Http2ServerCodec::RefuseBodies(bool on) {
  refuses_bodies_ = on;
  while (on && !partials_.empty()) RefuseBody(Find(partials_.begin()->first));
  return true;
}

// ----- answers --------------------------------------------------------------------------------------------

void Http2ServerCodec::Refuse(Stream* s, int status, std::string_view why) {
  ++refused_;
  Reply(s->id, {status, {{"content-type", "text/plain"}}, Join(why, "\n")});
}

void Http2ServerCodec::Reply(int32_t id, HttpReply reply) {
  Stream* const s = Find(id);
  if (s == nullptr || s->sent_head) return;
  EndPartial(id);
  const bool no_content = reply.status == 204 || reply.status == 304;
  const bool empty = no_content || s->head_only || (reply.body.empty() && !reply.more);
  const size_t begin = BeginBlock();
  encoder_.Encode(":status", Join(reply.status), HpackEncoder::Indexing::kIndex, &out_);
  for (const auto& [name, value] : reply.headers) {
    encoder_.Encode(name, value, HpackEncoder::Indexing::kIndex, &out_);
  }
  if (!reply.more && !no_content) {
    encoder_.Encode("content-length", Join(reply.body.size()), HpackEncoder::Indexing::kNone, &out_);
  }
  EndBlock(begin, id, empty);
  s->sent_head = true;
  if (!reply.more) EndAnswer(s);
  if (empty) return Leave(s);
  Queue(s, std::move(reply.body));
}

void Http2ServerCodec::AddBody(int32_t id, std::string_view bytes, bool last) {
  Stream* const s = Find(id);
  if (s == nullptr || !s->sent_head || s->ending) return;
  if (last) EndAnswer(s);
  Queue(s, std::string(bytes));
  if (!last || !s->queue.empty()) return;
  SendEnd(s);
  Leave(s);
}

void Http2ServerCodec::EndAnswer(Stream* s) {
  s->ending = true;
  if (s->got_end) --in_flight_;
}

void Http2ServerCodec::Queue(Stream* s, std::string&& body) {
  queued_bytes_ += body.size();
  s->queue.Append(std::move(body));
  MarkReady(s);
}

}  // namespace

std::unique_ptr<HttpServerCodec> MakeHttp2Codec(const HttpLimits& limits) {
  return std::make_unique<Http2ServerCodec>(limits);
}

}  // namespace curtail::wire
