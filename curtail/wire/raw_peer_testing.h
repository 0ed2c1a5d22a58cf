// SPDX-License-Identifier: Apache-2.0
//
// raw_peer_testing.h - for the tests of Session: a raw HTTP/2 peer that can say what a Session would not.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/wire/http/http2_frames_testing.h"
#include "curtail/wire/session.h"

namespace curtail::wire {

// A RawPeer speaks HTTP/2 through nghttp2 and puts arbitrary header fields and bytes on its streams.
class RawPeer {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  struct Stream {
    std::vector<Fields> blocks;  // one a HEADERS frame
    std::string data;
    bool ended = false;
    std::optional<uint32_t> reset;
    std::string_view Field(std::string_view name) const {
      for (const Fields& block : blocks) {
        for (const auto& [key, value] : block) {
          if (key == name) return value;
        }
      }
      return {};
    }
  };

  explicit RawPeer(Role role, const std::vector<nghttp2_settings_entry>& settings = {}) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, BeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, Header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Frame);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, InvalidHeader);
    nghttp2_session_callbacks_set_select_padding_callback(callbacks, Pad);
    role == Role::kClient ? nghttp2_session_client_new(&h2, callbacks, this)
                          : nghttp2_session_server_new(&h2, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(h2, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  }
  ~RawPeer() { nghttp2_session_del(h2); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  static Fields GrpcRequest() {
    return {{":method", "POST"}, {":scheme", "http"}, {":path", "/a.B/C"},
            {":authority", "x"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  }

  // Without `end` the stream stays open after `body`.
  int32_t Request(const Fields& fields, std::string body, bool end = true) {
    Body& b = NewBody(std::move(body), end);
    nghttp2_data_provider provider = b.Provider();
    auto nv = Nv(fields);
    return nghttp2_submit_request(h2, nullptr, nv.data(), nv.size(), &provider, nullptr);
  }
  // `trailers` empty: the body ends the stream.
  void Reply(int32_t id, const Fields& fields, std::string body, const Fields& trailers) {
    Body& b = NewBody(std::move(body), true);
    b.trailers = trailers;
    b.id = id;
    nghttp2_data_provider provider = b.Provider();
    auto nv = Nv(fields);
    nghttp2_submit_response(h2, id, nv.data(), nv.size(), &provider);
  }
  void ReplyHeadersOnly(int32_t id, const Fields& fields) {
    auto nv = Nv(fields);
    nghttp2_submit_response(h2, id, nv.data(), nv.size(), nullptr);
  }
  void ResetStream(int32_t id, uint32_t code) { nghttp2_submit_rst_stream(h2, 0, id, code); }

  std::string Output() {
    std::string out;
    const uint8_t* data = nullptr;
    for (ssize_t n; (n = nghttp2_session_mem_send(h2, &data)) > 0;) {
      out.append(reinterpret_cast<const char*>(data), static_cast<size_t>(n));
    }
    return out;
  }
  // Moves bytes both ways until both ends are silent.
  absl::Status Pump(Session* session) {
    for (bool moved = true; moved;) {
      const std::string out = Output();
      if (absl::Status status = session->Receive(out); !status.ok()) return status;
      std::string in;
      while (session->Pull(&in)) continue;
      nghttp2_session_mem_recv(h2, reinterpret_cast<const uint8_t*>(in.data()), in.size());
      moved = !out.empty() || !in.empty();
    }
    return absl::OkStatus();
  }

  nghttp2_session* h2 = nullptr;
  std::map<int32_t, Stream> streams;
  std::optional<uint32_t> goaway;
  int window_updates = 0;
  size_t padding = 0;  // of each frame that may have it

 private:
  struct Body {
    std::string bytes;
    size_t at = 0;
    bool end = true;
    Fields trailers;
    int32_t id = 0;

    nghttp2_data_provider Provider() { return {{.ptr = this}, Read}; }
    static ssize_t Read(nghttp2_session* h2, int32_t, uint8_t* out, size_t room, uint32_t* flags,
                        nghttp2_data_source* source, void*) {
      Body& b = *static_cast<Body*>(source->ptr);
      const size_t n = std::min(room, b.bytes.size() - b.at);
      if (n == 0 && !b.end) return NGHTTP2_ERR_DEFERRED;
      std::copy_n(b.bytes.data() + b.at, n, out);
      b.at += n;
      if (b.at < b.bytes.size() || !b.end) return static_cast<ssize_t>(n);
      *flags = NGHTTP2_DATA_FLAG_EOF;
      if (!b.trailers.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        auto nv = Nv(b.trailers);
        nghttp2_submit_trailer(h2, b.id, nv.data(), nv.size());
      }
      return static_cast<ssize_t>(n);
    }
  };

  Body& NewBody(std::string bytes, bool end) {
    bodies_.push_back(std::make_unique<Body>());
    bodies_.back()->bytes = std::move(bytes);
    bodies_.back()->end = end;
    return *bodies_.back();
  }

  static std::vector<nghttp2_nv> Nv(const Fields& fields) {
    std::vector<nghttp2_nv> nv;
    auto bytes = [](const std::string& s) { return reinterpret_cast<uint8_t*>(const_cast<char*>(s.data())); };
    for (const auto& [name, value] : fields) {
      nv.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    return nv;
  }

  static RawPeer& Self(void* self) { return *static_cast<RawPeer*>(self); }
  static int BeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    Self(self).streams[frame->hd.stream_id].blocks.emplace_back();
    return 0;
  }
  static int Header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* self) {
    Self(self).streams[frame->hd.stream_id].blocks.back().emplace_back(
        std::string(name, name + name_size), std::string(value, value + value_size));
    return 0;
  }
  static int Data(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* self) {
    Self(self).streams[id].data.append(data, data + size);
    return 0;
  }
  // Without this nghttp2 drops the field alone.
  static int InvalidHeader(nghttp2_session*, const nghttp2_frame*, const uint8_t*, size_t, const uint8_t*,
                           size_t, uint8_t, void*) {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  static ssize_t Pad(nghttp2_session*, const nghttp2_frame* frame, size_t most, void* self) {
    return static_cast<ssize_t>(std::min(frame->hd.length + Self(self).padding, most));
  }
  static int Frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    RawPeer& peer = Self(self);
    if (frame->hd.type == NGHTTP2_RST_STREAM)
      peer.streams[frame->hd.stream_id].reset = frame->rst_stream.error_code;
    if (frame->hd.type == NGHTTP2_GOAWAY) peer.goaway = frame->goaway.error_code;
    if (frame->hd.type == NGHTTP2_WINDOW_UPDATE) ++peer.window_updates;
    const bool carries_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (carries_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
      peer.streams[frame->hd.stream_id].ended = true;
    return 0;
  }

  std::vector<std::unique_ptr<Body>> bodies_;
};

// `fields` with another value of `name`.
inline RawPeer::Fields With(RawPeer::Fields fields, const std::string& name, const std::string& value) {
  for (auto& [key, old] : fields) {
    if (key == name) {
      old = value;
      return fields;
    }
  }
  fields.emplace_back(name, value);
  return fields;
}

}  // namespace curtail::wire
