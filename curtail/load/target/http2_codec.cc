// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: HTTP/2 by nghttp2, which keeps the rules of RFC 9113 and bounds what a server may provoke. curtail's own HTTP/2
// (curtail/wire) is reduced to what gRPC uses of it: docs/adr/ says why it stays so.
//
// A stream's state belongs to streams_ until nghttp2 has closed the stream. An exchange that is given up leaves it
// before, so that no callback finds the exchange any more.
#include <nghttp2/nghttp2.h>

#include <charconv>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/load/target/http_codec.h"

namespace curtail::internal {
namespace {

constexpr int32_t kStreamWindow = 4 << 20;
constexpr int32_t kConnectionWindow = 16 << 20;

struct Http2Stream {
  HttpExchange* exchange = nullptr;  // null once it was given up
  size_t sent = 0;                   // of its body
  size_t head_bytes = 0;             // of the reply
  bool opened = false;               // the request's head has left
  bool ended = false;                // the reply is whole
};

class Http2Codec final : public HttpCodec {
 public:
  explicit Http2Codec(const HttpLimits& limits);
  ~Http2Codec() override { nghttp2_session_del(session_); }
  Http2Codec(const Http2Codec&) = delete;
  Http2Codec& operator=(const Http2Codec&) = delete;

  bool CanStart() const override { return nghttp2_session_check_request_allowed(session_) != 0; }
  void Start(HttpExchange* exchange) override;
  bool Cancel(HttpExchange* exchange) override;
  absl::Status Receive(std::string_view bytes, Ended* ended) override;
  bool Pull(std::string* out, size_t limit, Ended* ended) override;
  bool Finished() const override { return !CanStart() && streams_.empty() && refused_.empty(); }
  absl::Status broken() const override { return broken_; }
  Ended TakeAll() override;

 private:
  static Http2Codec& Of(void* codec) { return *static_cast<Http2Codec*>(codec); }
  static nghttp2_session* NewSession(Http2Codec* codec);
  static ssize_t OnBody(nghttp2_session*, int32_t, uint8_t* to, size_t room, uint32_t* flags,
                        nghttp2_data_source* source, void*);
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* codec);
  static int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* codec);
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* codec);
  static int OnSent(nghttp2_session*, const nghttp2_frame* frame, void* codec);
  static int OnClose(nghttp2_session*, int32_t id, uint32_t code, void* codec);

  void TakeRefused(Ended* ended);
  // The stream of an exchange that is in flight, or null.
  Http2Stream* Find(int32_t id);
  // Resets a stream that breaks a limit.
  void Fail(int32_t id, Http2Stream* stream, absl::Status why);

  const HttpLimits limits_;
  std::unordered_map<int32_t, Http2Stream> streams_;  // its elements do not move
  Ended* ended_ = nullptr;   // while Receive() or Pull() runs, the callers of all callbacks
  Ended refused_;            // by nghttp2, until the next of these
  absl::Status broken_;      // by the server
  std::string first_bytes_;  // from the server: it may speak another protocol
  nghttp2_session* const session_;
};

nghttp2_session* Http2Codec::NewSession(Http2Codec* codec) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &OnHeader);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &OnData);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &OnFrame);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, &OnSent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &OnClose);
  nghttp2_session* session = nullptr;
  nghttp2_session_client_new(&session, callbacks, codec);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HttpLimits::kMaxHeadBytes}};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  return session;
}

Http2Codec::Http2Codec(const HttpLimits& limits) : limits_(limits), session_(NewSession(this)) {}

Http2Stream* Http2Codec::Find(int32_t id) {
  const auto at = streams_.find(id);
  return at == streams_.end() || at->second.exchange == nullptr ? nullptr : &at->second;
}

void Http2Codec::Start(HttpExchange* exchange) {
  const HttpEndpoint& endpoint = *exchange->endpoint;
  std::vector<nghttp2_nv> fields;
  fields.reserve(exchange->headers.size() + 5);
  const auto add = [&](std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view text) {
      return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
    };
    fields.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  };
  add(":method", endpoint.verb);
  add(":scheme", endpoint.scheme);
  add(":authority", exchange->headers.Find("host").value_or(endpoint.authority));
  add(":path", endpoint.path);
  for (const auto& [name, value] : exchange->headers) {
    if (name != "host") add(name, value);
  }
  const std::string length = std::to_string(exchange->body.size());
  if (!exchange->body.empty()) add("content-length", length);
  // nghttp2 copies the fields, and reads the body when the windows allow it.
  const int32_t next = nghttp2_session_get_next_stream_id(session_) & 0x7fffffff;
  const auto [at, fresh] = streams_.insert_or_assign(next, Http2Stream{.exchange = exchange});
  const nghttp2_data_provider body{.source = {.ptr = &at->second}, .read_callback = &OnBody};
  const int32_t id = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                            exchange->body.empty() ? nullptr : &body, nullptr);
  exchange->stream = id;
  if (id == next) return;
  streams_.erase(at);
  exchange->error = absl::UnavailableError(Join("HTTP/2: ", nghttp2_strerror(id)));
  refused_.push_back(exchange);
}

bool Http2Codec::Cancel(HttpExchange* exchange) {
  std::erase(refused_, exchange);
  const auto at = streams_.find(exchange->stream);
  if (at == streams_.end() || at->second.exchange != exchange) return true;
  at->second.exchange = nullptr;
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, at->first, NGHTTP2_CANCEL);
  return true;
}

absl::Status Http2Codec::Receive(std::string_view bytes, Ended* ended) {
  constexpr std::string_view kHttp1 = "HTTP/1";
  if (first_bytes_.size() < kHttp1.size()) {
    first_bytes_.append(bytes.substr(0, kHttp1.size() - first_bytes_.size()));
    if (first_bytes_ == kHttp1) return absl::UnavailableError("the server speaks HTTP/1.1, not HTTP/2");
  }
  ended_ = ended;
  const ssize_t taken =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  ended_ = nullptr;
  TakeRefused(ended);
  if (taken < 0) {
    return absl::UnavailableError(
        Join("the server broke HTTP/2: ", nghttp2_strerror(static_cast<int>(taken))));
  }
  return broken_;
}

bool Http2Codec::Pull(std::string* out, size_t limit, Ended* ended) {
  ended_ = ended;
  bool more = true;
  while (more && out->size() < limit) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size > 0) out->append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    more = size > 0;
  }
  ended_ = nullptr;
  TakeRefused(ended);
  return more;
}

void Http2Codec::TakeRefused(Ended* ended) {
  ended->insert(ended->end(), refused_.begin(), refused_.end());
  refused_.clear();
}

HttpCodec::Ended Http2Codec::TakeAll() {
  Ended all = std::move(refused_);
  refused_.clear();
  for (auto& [id, stream] : streams_) {
    if (stream.exchange == nullptr) continue;
    stream.exchange->unprocessed = !stream.opened;
    all.push_back(std::exchange(stream.exchange, nullptr));
  }
  return all;
}

ssize_t Http2Codec::OnBody(nghttp2_session*, int32_t, uint8_t* to, size_t room, uint32_t* flags,
                           nghttp2_data_source* source, void*) {
  Http2Stream& stream = *static_cast<Http2Stream*>(source->ptr);
  if (stream.exchange == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  const std::string_view left = std::string_view(stream.exchange->body).substr(stream.sent, room);
  std::memcpy(to, left.data(), left.size());
  stream.sent += left.size();
  if (stream.sent == stream.exchange->body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(left.size());
}

int Http2Codec::OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                         const uint8_t* value, size_t value_size, uint8_t, void* codec) {
  const int32_t id = frame->hd.stream_id;
  Http2Stream* const stream = Of(codec).Find(id);
  if (stream == nullptr) return 0;
  stream->head_bytes += name_size + value_size;
  if (stream->head_bytes > HttpLimits::kMaxHeadBytes) {
    Of(codec).Fail(id, stream,
                   absl::ResourceExhaustedError(
                       Join("the head of the reply has more than ", HttpLimits::kMaxHeadBytes, " bytes")));
    return 0;
  }
  if (std::string_view(reinterpret_cast<const char*>(name), name_size) != ":status") return 0;
  const char* const text = reinterpret_cast<const char*>(value);
  std::from_chars(text, text + value_size, stream->exchange->status);  // nghttp2 has checked it
  return 0;
}

int Http2Codec::OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* codec) {
  Http2Stream* const stream = Of(codec).Find(id);
  if (stream == nullptr) return 0;
  std::string& reply = stream->exchange->reply;
  const size_t limit = Of(codec).limits_.max_body_bytes;
  if (size > limit - reply.size()) {
    Of(codec).Fail(id, stream, absl::ResourceExhaustedError(Join("a reply of more than ", limit, " bytes")));
    return 0;
  }
  reply.append(reinterpret_cast<const char*>(data), size);
  return 0;
}

int Http2Codec::OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* codec) {
  const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
                    (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA);
  Http2Stream* const stream = last ? Of(codec).Find(frame->hd.stream_id) : nullptr;
  if (stream != nullptr) stream->ended = true;
  return 0;
}

int Http2Codec::OnSent(nghttp2_session*, const nghttp2_frame* frame, void* codec) {
  if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
    Of(codec).broken_ = absl::UnavailableError(
        Join("the server broke HTTP/2: ", nghttp2_http2_strerror(frame->goaway.error_code)));
  }
  Http2Stream* const stream =
      frame->hd.type == NGHTTP2_HEADERS ? Of(codec).Find(frame->hd.stream_id) : nullptr;
  if (stream != nullptr) stream->opened = true;
  return 0;
}

// Every stream of ours ends here.
int Http2Codec::OnClose(nghttp2_session*, int32_t id, uint32_t code, void* codec) {
  Http2Codec& self = Of(codec);
  const auto at = self.streams_.find(id);
  if (at == self.streams_.end()) return 0;
  HttpExchange* const exchange = at->second.exchange;
  if (exchange != nullptr) {
    if (!at->second.ended) {
      exchange->unprocessed = code == NGHTTP2_REFUSED_STREAM || !at->second.opened;
      exchange->error =
          absl::UnavailableError(Join("the server reset the request: ", nghttp2_http2_strerror(code)));
    }
    self.ended_->push_back(exchange);
  }
  self.streams_.erase(at);
  return 0;
}

void Http2Codec::Fail(int32_t id, Http2Stream* stream, absl::Status why) {
  stream->exchange->error = std::move(why);
  ended_->push_back(std::exchange(stream->exchange, nullptr));
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

}  // namespace

std::unique_ptr<HttpCodec> MakeHttp2Codec(const HttpLimits& limits) {
  return std::make_unique<Http2Codec>(limits);
}

}  // namespace curtail::internal
