// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A Session is a thin layer over one nghttp2 session, which owns framing, HPACK, flow control and the
// stream state machine of HTTP/2. Each call has one Stream, which nghttp2 carries as the stream's user data,
// so a frame finds its call without a table of ours. Three files share the work: this one sets nghttp2 up and
// moves bytes, internal/session_receive.cc turns nghttp2's callbacks into events, internal/session_send.cc
// turns the owner's calls into nghttp2 submissions.
//
//   R1  Receive() and Pull() are the only places that run nghttp2; callbacks and events run inside them. An
//   event may
//       submit frames (nghttp2 allows that in callbacks) but never runs nghttp2, so nothing nests.
//   R2  A Stream is freed in OnStreamClose() alone, or with the session. nghttp2 calls that from Receive()
//   and Pull()
//       only, so by R1 an event never loses the Stream it runs on, whatever it cancels or aborts.
//   R3  Finish() is the only caller of OnCallEnd and marks the Stream done first. A done Stream may live on
//   until its
//       last frames have left; the owner's calls no longer reach it, and what the peer sends for it is
//       dropped.
//   R4  Messages wait in the Stream's SendQueue. nghttp2 asks for DATA when windows allow it (OnReadData),
//   and the
//       bytes go straight into the output of Pull(): one copy. Trailers are submitted when the last message
//       is taken, so HEADERS, DATA and trailers of a reply leave in one Pull().
//   R5  A client stream that nghttp2 has not opened yet (its HEADERS wait for a free stream or for Pull()) is
//   found in
//       our list, newest first; ids above last_sent_request_ tell which those are.
//
// A server holds its SETTINGS back until the client's preface has arrived, so that a peer that speaks HTTP/1
// reads an answer in its own language.
//
// Not offered: compressed messages, server push, priorities, CONNECT, HTTP/1 upgrade,
// grpc-status-details-bin.

#include "curtail/wire/session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "curtail/wire/internal/session_impl.h"

namespace curtail::wire {
namespace {

constexpr std::string_view kPreface(NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);

// Incoming RST_STREAM frames allowed at once and per second. nghttp2's default of 33 a second is far below
// what an honest client sends whose deadlines run out under overload; a reset costs little here.
constexpr uint64_t kResetBurst = 20000;
constexpr uint64_t kResetsPerSecond = 10000;

// The largest window HTTP/2 allows.
constexpr uint32_t kMaxWindow = 0x7fffffff;

constexpr std::string_view kPlainAnswer =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 48\r\nConnection: close\r\n\r\n"
    "This port speaks gRPC over HTTP/2, not HTTP/1.\r\n";

// Whether this looks like the start of an HTTP/1 request: a method in capitals, and a space if it is long
// enough.
bool LooksLikeHttp1(std::string_view bytes) {
  const auto end =
      std::find_if_not(bytes.begin(), bytes.end(), [](char c) { return absl::ascii_isupper(c); });
  return end != bytes.begin() && (end == bytes.end() || *end == ' ');
}

}  // namespace

struct Session::Impl::Callbacks {
  static Impl& Self(void* user_data) { return *static_cast<Impl*>(user_data); }

  static int BeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    Self(self).OnBeginHeaders(*frame);
    return 0;
  }
  static int Header(nghttp2_session*, const nghttp2_frame*, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* self) {
    Impl& impl = Self(self);
    if (impl.header_stream_ != nullptr) {
      impl.OnHeader(impl.header_stream_, {reinterpret_cast<const char*>(name), name_size},
                    {reinterpret_cast<const char*>(value), value_size});
    }
    return 0;
  }
  static int Frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    Self(self).OnFrame(*frame);
    return 0;
  }
  static int Data(nghttp2_session* h2, uint8_t, int32_t id, const uint8_t* data, size_t size, void* self) {
    auto* s = static_cast<Stream*>(nghttp2_session_get_stream_user_data(h2, id));
    if (s != nullptr) Self(self).OnData(s, {reinterpret_cast<const char*>(data), size});
    return 0;
  }
  static int Close(nghttp2_session* h2, int32_t id, uint32_t error_code, void* self) {
    auto* s = static_cast<Stream*>(nghttp2_session_get_stream_user_data(h2, id));
    if (s != nullptr) Self(self).OnStreamClose(s, error_code);
    return 0;
  }
  static int Sent(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    Self(self).OnFrameSent(*frame);
    return 0;
  }
  static int NotSent(nghttp2_session*, const nghttp2_frame* frame, int error, void* self) {
    Self(self).OnFrameNotSent(*frame, error);
    return 0;
  }
  static ssize_t Read(nghttp2_session*, int32_t, uint8_t*, size_t room, uint32_t* flags,
                      nghttp2_data_source* source, void* self) {
    return Self(self).OnReadData(static_cast<Stream*>(source->ptr), room, flags);
  }
  static int SendData(nghttp2_session*, nghttp2_frame*, const uint8_t* header, size_t size,
                      nghttp2_data_source* source, void* self) {
    Impl& impl = Self(self);
    impl.out_->append(reinterpret_cast<const char*>(header), kFrameHeaderBytes);
    static_cast<Stream*>(source->ptr)->queue.Take(size, impl.out_);
    impl.queued_bytes_ -= size;
    return 0;
  }

  static constexpr size_t kFrameHeaderBytes = 9;
};

Session::Impl::Impl(Role role, const SessionOptions& options, Events* events)
    : role_(role), options_(options), events_(events) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::BeginHeaders);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::Header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::Frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::Data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::Close);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::Sent);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, Callbacks::NotSent);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, Callbacks::SendData);
  nghttp2_option_new(&option);
  nghttp2_option_set_stream_reset_rate_limit(option, kResetBurst, kResetsPerSecond);
  nghttp2_option_set_no_closed_streams(option, 1);
  // A grpc-message may end in a space, which gRPC does not escape.
  nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
  if (is_client()) {
    nghttp2_session_client_new2(&h2_, callbacks, this, option);
  } else {
    nghttp2_session_server_new2(&h2_, callbacks, this, option);
  }
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  Configure();
}

void Session::Impl::Configure() {
  nghttp2_settings_entry settings[4] = {
      // Nobody uses the old priority tree; saying so spares both ends its upkeep (RFC 9218, 2.1).
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, std::min(options_.stream_window_bytes, kMaxWindow)},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options_.max_header_bytes},
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
  };
  if (!is_client()) settings[3] = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.max_concurrent_streams};
  nghttp2_submit_settings(h2_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(
      h2_, NGHTTP2_FLAG_NONE, 0,
      static_cast<int32_t>(std::min(options_.connection_window_bytes, kMaxWindow)));
}

Session::Impl::~Impl() {
  nghttp2_session_del(h2_);
  while (oldest_ != nullptr) Free(oldest_);
}

nghttp2_data_source_read_callback Session::Impl::ReadCallback() { return Callbacks::Read; }

internal::Stream* Session::Impl::NewStream(StreamId id) {
  auto* s = std::make_unique<Stream>().release();  // owned by the list until Free()
  s->id = id;
  s->previous = newest_;
  (newest_ != nullptr ? newest_->next : oldest_) = s;
  newest_ = s;
  return s;
}

void Session::Impl::Free(Stream* s) {
  const std::unique_ptr<Stream> owned(s);
  (s->previous != nullptr ? s->previous->next : oldest_) = s->next;
  (s->next != nullptr ? s->next->previous : newest_) = s->previous;
  if (header_stream_ == s) header_stream_ = nullptr;
}

void Session::Impl::Finish(Stream* s, absl::Status&& status, Metadata&& trailing) {
  if (s->done) return;
  s->done = true;
  held_bytes_ -= s->reader.held_bytes();
  s->reader.Reset();
  queued_bytes_ -= s->queue.Clear();
  if (!s->known) return;
  --open_streams_;
  events_->OnCallEnd(s->id, s->tag, std::move(status), std::move(trailing));
}

internal::Stream* Session::Impl::Find(StreamId id) {
  Stream* s = Lookup(id);
  if (s == nullptr && is_client() && id > last_sent_request_) {
    for (s = newest_; s != nullptr && s->id > id; s = s->previous) continue;
    if (s != nullptr && s->id != id) s = nullptr;
  }
  return s == nullptr || s->done || !s->known ? nullptr : s;
}

const absl::Status& Session::Impl::Broken(absl::Status why) {
  if (broken_.ok()) broken_ = std::move(why);
  return broken_;
}

absl::Status Session::Impl::CheckPreface(std::string_view bytes) {
  const std::string_view expected = kPreface.substr(preface_have_, bytes.size());
  if (bytes.substr(0, expected.size()) == expected) {
    preface_have_ += expected.size();
    return absl::OkStatus();
  }
  const std::string start = std::string(kPreface, 0, preface_have_).append(bytes.substr(0, 16));
  silent_ = true;
  if (!LooksLikeHttp1(start)) return Broken(absl::InvalidArgumentError("the peer does not speak HTTP/2"));
  plain_answer_ = kPlainAnswer;
  return Broken(absl::InvalidArgumentError("the peer speaks HTTP/1; this is a gRPC port"));
}

absl::Status Session::Impl::Receive(std::string_view bytes) {
  if (!broken_.ok()) return broken_;
  if (!is_client() && preface_have_ < kPreface.size()) {
    if (absl::Status status = CheckPreface(bytes); !status.ok()) return status;
  }
  const ssize_t n =
      nghttp2_session_mem_recv(h2_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (n >= 0) return broken_;  // an event may have called Abort()
  nghttp2_session_terminate_session(
      h2_, n == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR);
  return Broken(
      absl::UnavailableError(absl::StrCat("connection error: ", nghttp2_strerror(static_cast<int>(n)))));
}

bool Session::Impl::Pull(std::string* out, size_t limit) {
  if (silent_) {
    out->append(std::exchange(plain_answer_, {}));
    return false;
  }
  if (!is_client() && preface_have_ < kPreface.size()) return false;
  out_ = out;
  out_limit_ = limit;
  ssize_t n = 1;
  while (n > 0 && out->size() < limit) {
    const uint8_t* data = nullptr;
    n = nghttp2_session_mem_send(h2_, &data);
    if (n > 0) out->append(reinterpret_cast<const char*>(data), static_cast<size_t>(n));
  }
  out_ = nullptr;
  if (n < 0) {
    silent_ = true;
    Abort(Broken(
        absl::UnavailableError(absl::StrCat("connection error: ", nghttp2_strerror(static_cast<int>(n))))));
    return false;
  }
  // nghttp2 found the peer in breach of HTTP/2 and has said so in a GOAWAY.
  if (!broken_.ok()) Abort(broken_);
  return nghttp2_session_want_write(h2_) != 0;
}

void Session::Impl::Abort(const absl::Status& why) {
  Broken(why.ok() ? absl::UnavailableError("connection closed") : why);
  nghttp2_session_terminate_session(h2_, NGHTTP2_NO_ERROR);
  for (Stream* s = oldest_; s != nullptr; s = s->next) Finish(s, absl::Status(why.ok() ? broken_ : why));
}

void Session::Impl::SendPing(uint64_t payload) {
  uint8_t bytes[sizeof(payload)];
  std::memcpy(bytes, &payload, sizeof(payload));
  nghttp2_submit_ping(h2_, NGHTTP2_FLAG_NONE, bytes);
}

void Session::Impl::SendGoaway() {
  if (last_accepted_) return;
  last_accepted_ = nghttp2_session_get_last_proc_stream_id(h2_);
  nghttp2_submit_goaway(h2_, NGHTTP2_FLAG_NONE, *last_accepted_, NGHTTP2_NO_ERROR, nullptr, 0);
}

bool Session::Impl::Finished() const {
  if (silent_) return plain_answer_.empty();
  // A client that has not even begun will hear no goodbye: a server holds everything back until its preface.
  if (!is_client() && last_accepted_ && preface_have_ < kPreface.size()) return true;
  return nghttp2_session_want_read(h2_) == 0 && nghttp2_session_want_write(h2_) == 0;
}

Session::Session(Role role, const SessionOptions& options, Events* events)
    : impl_(std::make_unique<Impl>(role, options, events)) {}
Session::~Session() = default;

absl::Status Session::Receive(std::string_view bytes) { return impl_->Receive(bytes); }
bool Session::Pull(std::string* out, size_t limit) { return impl_->Pull(out, limit); }

absl::StatusOr<StreamId> Session::StartCall(const RequestHead& head, void* tag) {
  absl::StatusOr<internal::Stream*> s = impl_->StartCall(head, tag);
  if (!s.ok()) return s.status();
  return (*s)->id;
}

absl::StatusOr<StreamId> Session::StartUnaryCall(const RequestHead& head, std::string message, void* tag) {
  absl::StatusOr<internal::Stream*> s = impl_->StartCall(head, tag);
  if (!s.ok()) return s.status();
  impl_->SendMessage(*s, std::move(message));
  impl_->EndRequest(*s);
  return (*s)->id;
}

void Session::EndRequest(StreamId id) {
  if (internal::Stream* s = impl_->Find(id)) impl_->EndRequest(s);
}

void Session::SendHead(StreamId id, const Metadata& metadata) {
  if (internal::Stream* s = impl_->Find(id)) impl_->SendHead(s, metadata);
}

void Session::EndCall(StreamId id, const absl::Status& status, const Metadata& trailing) {
  if (internal::Stream* s = impl_->Find(id)) impl_->EndCall(s, status, trailing);
}

void Session::SendMessage(StreamId id, std::string message) {
  if (internal::Stream* s = impl_->Find(id)) impl_->SendMessage(s, std::move(message));
}

void Session::Cancel(StreamId id) {
  if (internal::Stream* s = impl_->Find(id))
    impl_->Reset(s, NGHTTP2_CANCEL, absl::CancelledError("cancelled"));
}

void Session::Abort(const absl::Status& why) { impl_->Abort(why); }
void Session::SendPing(uint64_t payload) { impl_->SendPing(payload); }
void Session::SendGoaway() { impl_->SendGoaway(); }
void Session::SendShutdownNotice() { impl_->SendShutdownNotice(); }
size_t Session::queued_bytes() const { return impl_->queued_bytes(); }
size_t Session::open_streams() const { return impl_->open_streams(); }
bool Session::Finished() const { return impl_->Finished(); }

}  // namespace curtail::wire
