// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: HTTP/2 by nghttp2, which keeps the rules of RFC 9113 and bounds what a client may repeat. A stream's state is in
// streams_ until nghttp2 has closed the stream; an answer to one that is gone is dropped.
#include <nghttp2/nghttp2.h>

#include <cstring>
#include <unordered_map>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/gateway/http_codec.h"

namespace curtail::gateway {
namespace {

constexpr int32_t kStreamWindow = 1 << 20;
constexpr int32_t kConnectionWindow = 4 << 20;

struct Http2Stream {
  HttpRequest request;
  HttpReply reply;
  size_t head_bytes = 0;
  size_t counted = 0;   // bytes of the request, while it is not whole
  size_t sent = 0;      // of the reply's body
  bool headed = false;  // the head of the request is whole
  bool whole = false;
  bool answered = false;
  bool open = false;  // AddBody() adds to the answer

  // The client owes the rest of the request.
  bool partial() const { return !whole && !answered; }
  // The gateway owes the answer, or the rest of it.
  bool in_flight() const { return whole && (!answered || open); }
  size_t unsent() const { return reply.body.size() - sent; }
};

std::string_view Text(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

class Http2Codec final : public HttpServerCodec {
 public:
  explicit Http2Codec(const HttpLimits& limits) : limits_(limits), session_(NewSession(this)) {}
  ~Http2Codec() override { nghttp2_session_del(session_); }
  Http2Codec(const Http2Codec&) = delete;
  Http2Codec& operator=(const Http2Codec&) = delete;

  absl::Status Receive(std::string_view bytes, std::vector<HttpRequest>* requests) override;
  void Reply(int32_t id, HttpReply reply) override;
  void AddBody(int32_t id, std::string_view bytes, bool last) override;
  bool Abort(int32_t id) override {
    return nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL) == 0;
  }
  size_t unsent(int32_t id) const override {
    const auto at = streams_.find(id);
    return at == streams_.end() ? 0 : at->second.unsent();
  }
  std::vector<int32_t> TakeGivenUp() override { return std::exchange(given_up_, {}); }
  void Pull(std::string* out, size_t limit) override;
  // A client that hears of it before its first request would send none here (RFC 9113, 6.8), and is told with that.
  void LastCall() override {
    last_call_ = true;
    if (begun_) Notice();
  }
  void Drain() override { Notice(), EndSoon(); }
  bool WantsInput() const override { return true; }  // it brings windows for what is to leave
  bool RefuseBodies(bool on) override;
  bool Finished() const override {
    return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
  }
  size_t in_flight() const override { return in_flight_; }
  bool in_request() const override { return partial_ > 0; }
  size_t held_bytes() const override { return partial_bytes_ + out_bytes_; }
  size_t owed_bytes() const override { return out_bytes_; }

 private:
  static Http2Codec& Of(void* codec) { return *static_cast<Http2Codec*>(codec); }
  nghttp2_session* NewSession(Http2Codec* codec) const;
  static ssize_t OnBody(nghttp2_session*, int32_t, uint8_t* to, size_t room, uint32_t* flags,
                        nghttp2_data_source* source, void* codec);
  static int OnBegin(nghttp2_session*, const nghttp2_frame* frame, void* codec);
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* codec);
  static int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* codec);
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* codec);
  static int OnClose(nghttp2_session*, int32_t id, uint32_t, void* codec);

  Http2Stream* Find(int32_t id);
  // Counts bytes of a request that is not whole, until Uncount().
  void Count(Http2Stream& stream, size_t bytes) { stream.counted += bytes, partial_bytes_ += bytes; }
  void Uncount(Http2Stream& stream) { partial_bytes_ -= std::exchange(stream.counted, 0); }
  void Notice() {
    if (!std::exchange(noticed_, true)) nghttp2_submit_shutdown_notice(session_);
  }
  void EndSoon() {
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                          NGHTTP2_NO_ERROR, nullptr, 0);
  }
  void Refuse(int32_t id, Http2Stream& stream, int status, std::string_view why);
  void RefuseBody(int32_t id, Http2Stream& stream) { Refuse(id, stream, 503, "the gateway holds too much"); }

  const HttpLimits limits_;
  std::unordered_map<int32_t, Http2Stream> streams_;  // its elements do not move
  size_t in_flight_ = 0;                              // of these
  size_t partial_ = 0;                                // likewise
  size_t partial_bytes_ = 0;                          // of requests that are not whole
  size_t out_bytes_ = 0;                              // of bodies of replies that have not left
  std::vector<int32_t> given_up_;
  bool refuses_bodies_ = false;
  bool begun_ = false;  // a request has come, in part at least
  bool last_call_ = false;
  bool noticed_ = false;                          // the client is told of the end
  std::vector<HttpRequest>* requests_ = nullptr;  // while Receive() runs
  nghttp2_session* const session_;
};

nghttp2_session* Http2Codec::NewSession(Http2Codec* codec) const {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, &OnBegin);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &OnHeader);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &OnData);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &OnFrame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &OnClose);
  nghttp2_session* session = nullptr;
  nghttp2_session_server_new(&session, callbacks, codec);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(limits_.max_head_bytes)}};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  return session;
}

Http2Stream* Http2Codec::Find(int32_t id) {
  const auto at = streams_.find(id);
  return at == streams_.end() ? nullptr : &at->second;
}

absl::Status Http2Codec::Receive(std::string_view bytes, std::vector<HttpRequest>* requests) {
  requests_ = requests;
  const ssize_t taken =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  requests_ = nullptr;
  if (taken >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("the client broke HTTP/2: ", nghttp2_strerror(static_cast<int>(taken))));
}

void Http2Codec::Reply(int32_t id, HttpReply reply) {
  Http2Stream* const stream = Find(id);
  if (stream == nullptr || stream->answered) return;
  if (stream->partial()) --partial_;
  if (stream->whole && !reply.more) --in_flight_;
  stream->answered = true;
  stream->open = reply.more;
  stream->reply = std::move(reply);
  out_bytes_ += stream->reply.body.size();
  const std::string status = std::to_string(stream->reply.status);
  const std::string length = std::to_string(stream->reply.body.size());
  std::vector<nghttp2_nv> fields;
  const auto add = [&](std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view text) {
      return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
    };
    fields.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  };
  add(":status", status);
  for (const auto& [name, value] : stream->reply.headers) add(name, value);
  const bool bodiless = stream->reply.status == 204 || stream->reply.status == 304;
  if (!stream->open && !bodiless) add("content-length", length);
  const bool empty = (stream->reply.body.empty() && !stream->open) || stream->request.verb == "HEAD";
  const nghttp2_data_provider body{.source = {.ptr = stream}, .read_callback = &OnBody};
  nghttp2_submit_response(session_, id, fields.data(), fields.size(), empty ? nullptr : &body);
}

void Http2Codec::AddBody(int32_t id, std::string_view bytes, bool last) {
  Http2Stream* const stream = Find(id);
  if (stream == nullptr || !stream->open) return;
  if (stream->request.verb != "HEAD") {
    stream->reply.body.append(bytes);
    out_bytes_ += bytes.size();
  }
  if (last) {
    stream->open = false;
    if (stream->whole) --in_flight_;
  }
  nghttp2_session_resume_data(session_, id);
}

void Http2Codec::Pull(std::string* out, size_t limit) {
  while (out->size() < limit) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size <= 0) return;
    out->append(Text(data, static_cast<size_t>(size)));
  }
}

ssize_t Http2Codec::OnBody(nghttp2_session*, int32_t, uint8_t* to, size_t room, uint32_t* flags,
                           nghttp2_data_source* source, void* codec) {
  Http2Stream& stream = *static_cast<Http2Stream*>(source->ptr);
  if (stream.unsent() == 0 && stream.open) return NGHTTP2_ERR_DEFERRED;
  const std::string_view left = std::string_view(stream.reply.body).substr(stream.sent, room);
  std::memcpy(to, left.data(), left.size());
  stream.sent += left.size();
  Of(codec).out_bytes_ -= left.size();
  const auto size = static_cast<ssize_t>(left.size());
  if (stream.unsent() == 0) {
    if (!stream.open) *flags |= NGHTTP2_DATA_FLAG_EOF;
    stream.reply.body.clear();
    stream.sent = 0;
  } else if (stream.open && stream.sent >= kStreamWindow / 4) {
    stream.reply.body.erase(0, std::exchange(stream.sent, 0));
  }
  return size;
}

int Http2Codec::OnBegin(nghttp2_session*, const nghttp2_frame* frame, void* codec) {
  if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  Of(codec).streams_[frame->hd.stream_id].request.stream = frame->hd.stream_id;
  ++Of(codec).partial_;
  Of(codec).begun_ = true;
  if (Of(codec).last_call_) Of(codec).Notice();
  return 0;
}

int Http2Codec::OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                         const uint8_t* value, size_t value_size, uint8_t, void* codec) {
  const int32_t id = frame->hd.stream_id;
  Http2Stream* const stream = Of(codec).Find(id);
  if (stream == nullptr || stream->answered) return 0;
  const size_t bytes = name_size + value_size + 32;  // as SETTINGS_MAX_HEADER_LIST_SIZE counts
  stream->head_bytes += bytes;
  Of(codec).Count(*stream, bytes);
  if (stream->head_bytes > Of(codec).limits_.max_head_bytes) {
    Of(codec).Refuse(id, *stream, 431, "the header is too long");
    return 0;
  }
  const std::string_view key = Text(name, name_size), text = Text(value, value_size);
  if (key == ":method") {
    stream->request.verb = text;
  } else if (key == ":path") {
    stream->request.target = text;
  } else if (key == ":authority") {
    stream->request.headers.Add("host", text);
  } else if (!key.starts_with(':')) {
    stream->request.headers.Add(key, text);
  }
  return 0;
}

int Http2Codec::OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* codec) {
  Http2Codec& self = Of(codec);
  Http2Stream* const stream = self.Find(id);
  if (stream == nullptr || stream->answered) return 0;
  std::string& body = stream->request.body;
  if (size > self.limits_.max_body_bytes - body.size()) {
    self.Refuse(id, *stream, 413, "the body is too long");
  } else if (self.partial_bytes_ + size > self.limits_.max_partial_bytes) {
    self.Refuse(id, *stream, 503, "too many bytes of unfinished requests on this connection");
  } else if (self.refuses_bodies_) {
    self.RefuseBody(id, *stream);
  } else {
    body.append(Text(data, size));
    self.Count(*stream, size);
  }
  return 0;
}

bool Http2Codec::RefuseBodies(bool on) {
  refuses_bodies_ = on;
  if (!on || partial_ == 0) return true;
  for (auto& [id, stream] : streams_) {
    if (stream.partial() && stream.headed) RefuseBody(id, stream);
  }
  return true;
}

int Http2Codec::OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* codec) {
  Http2Codec& self = Of(codec);
  if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
  Http2Stream* const stream = self.Find(frame->hd.stream_id);
  if (stream == nullptr || stream->whole) return 0;
  stream->headed = true;
  if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  if (stream->partial()) --self.partial_;
  stream->whole = true;
  self.Uncount(*stream);
  if (stream->answered) return 0;
  ++self.in_flight_;
  if (self.out_bytes_ >= self.limits_.max_partial_bytes) {
    self.Refuse(frame->hd.stream_id, *stream, 503, "too many bytes of answers wait on this connection");
    return 0;
  }
  HttpRequest request = std::move(stream->request);
  stream->request.verb = request.verb;
  stream->request.body.clear();
  self.requests_->push_back(std::move(request));
  return 0;
}

int Http2Codec::OnClose(nghttp2_session*, int32_t id, uint32_t, void* codec) {
  Http2Codec& self = Of(codec);
  const auto at = self.streams_.find(id);
  if (at == self.streams_.end()) return 0;
  Http2Stream& stream = at->second;
  self.Uncount(stream);
  if (stream.partial()) --self.partial_;
  if (stream.in_flight()) {
    --self.in_flight_;
    self.given_up_.push_back(id);
  }
  self.out_bytes_ -= stream.unsent();
  self.streams_.erase(at);
  return 0;
}

void Http2Codec::Refuse(int32_t id, Http2Stream& stream, int status, std::string_view why) {
  Uncount(stream);
  stream.request.body.clear();
  HttpReply reply;
  reply.status = status;
  reply.headers.emplace_back("content-type", "text/plain");
  reply.body = Join(why, "\n");
  Reply(id, std::move(reply));
}

// Waits for the first bytes.
class AnyCodec final : public HttpServerCodec {
 public:
  explicit AnyCodec(const HttpLimits& limits) : limits_(limits) {}

  absl::Status Receive(std::string_view bytes, std::vector<HttpRequest>* requests) override {
    if (codec_ != nullptr) return codec_->Receive(bytes, requests);
    constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n";
    first_.append(bytes);
    const size_t known = std::min(first_.size(), kPreface.size());
    const bool like_http2 = std::string_view(first_).substr(0, known) == kPreface.substr(0, known);
    if (like_http2 && known < kPreface.size()) return absl::OkStatus();
    codec_ = like_http2 ? MakeHttp2Codec(limits_) : MakeHttp1Codec(limits_);
    if (last_call_) codec_->LastCall();
    if (draining_) codec_->Drain();
    return codec_->Receive(std::exchange(first_, {}), requests);
  }
  void Reply(int32_t stream, HttpReply reply) override { codec_->Reply(stream, std::move(reply)); }
  void AddBody(int32_t stream, std::string_view bytes, bool last) override {
    codec_->AddBody(stream, bytes, last);
  }
  bool Abort(int32_t stream) override { return codec_->Abort(stream); }
  size_t unsent(int32_t stream) const override { return codec_ == nullptr ? 0 : codec_->unsent(stream); }
  std::vector<int32_t> TakeGivenUp() override {
    return codec_ == nullptr ? std::vector<int32_t>() : codec_->TakeGivenUp();
  }
  void Pull(std::string* out, size_t limit) override {
    if (codec_ != nullptr) codec_->Pull(out, limit);
  }
  void LastCall() override {
    last_call_ = true;
    if (codec_ != nullptr) codec_->LastCall();
  }
  void Drain() override {
    draining_ = true;
    if (codec_ != nullptr) codec_->Drain();
  }
  bool WantsInput() const override { return codec_ == nullptr ? !draining_ : codec_->WantsInput(); }
  bool RefuseBodies(bool on) override { return codec_ == nullptr ? !on : codec_->RefuseBodies(on); }
  bool Finished() const override { return codec_ == nullptr ? draining_ : codec_->Finished(); }
  size_t in_flight() const override { return codec_ == nullptr ? 0 : codec_->in_flight(); }
  bool in_request() const override { return codec_ == nullptr ? !first_.empty() : codec_->in_request(); }
  size_t held_bytes() const override { return codec_ == nullptr ? first_.size() : codec_->held_bytes(); }
  size_t owed_bytes() const override { return codec_ == nullptr ? 0 : codec_->owed_bytes(); }

 private:
  const HttpLimits limits_;
  std::string first_;
  std::unique_ptr<HttpServerCodec> codec_;
  bool last_call_ = false;
  bool draining_ = false;
};

}  // namespace

std::unique_ptr<HttpServerCodec> MakeHttp2Codec(const HttpLimits& limits) {
  return std::make_unique<Http2Codec>(limits);
}
std::unique_ptr<HttpServerCodec> MakeAnyHttpCodec(const HttpLimits& limits) {
  return std::make_unique<AnyCodec>(limits);
}

}  // namespace curtail::gateway
