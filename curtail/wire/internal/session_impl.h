// SPDX-License-Identifier: Apache-2.0
//
// session_impl.h - the inside of a Session. session.cc explains how the parts work together.
#pragma once

#include <nghttp2/nghttp2.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/wire/internal/header_block.h"
#include "curtail/wire/internal/stream.h"
#include "curtail/wire/session.h"

namespace curtail::wire {

class Session::Impl {
 public:
  using Stream = internal::Stream;

  Impl(Role role, const SessionOptions& options, Events* events);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // The stream of an id that the owner may still act on, or null.
  Stream* Find(StreamId id);

  absl::Status Receive(std::string_view bytes);
  bool Pull(std::string* out, size_t limit);
  void Abort(const absl::Status& why);
  void SendPing(uint64_t payload);
  void SendGoaway();
  void SendShutdownNotice() { nghttp2_submit_shutdown_notice(h2_); }
  bool Finished() const;

  // session_send.cc
  absl::StatusOr<Stream*> StartCall(const RequestHead& head, void* tag);
  void SendHead(Stream* s, const Metadata& metadata);
  void SendMessage(Stream* s, std::string&& message);
  // Client: END_STREAM after the queued messages. Server: the trailers, or a trailers-only reply.
  void EndRequest(Stream* s);
  void EndCall(Stream* s, const absl::Status& status, const Metadata& trailing);
  // Resets the stream and ends the call with `status`.
  void Reset(Stream* s, uint32_t error_code, absl::Status status);

  bool is_client() const { return role_ == Role::kClient; }
  size_t queued_bytes() const { return queued_bytes_; }
  size_t open_streams() const { return open_streams_; }

 private:
  // session.cc
  void Configure();
  // Server: checks the connection preface, byte for byte, ahead of nghttp2, so that other protocols get an
  // answer.
  absl::Status CheckPreface(std::string_view bytes);
  // Records why the connection is beyond use, unless that is known already.
  const absl::Status& Broken(absl::Status why);
  Stream* NewStream(StreamId id);
  void Free(Stream* s);
  // The one place that calls OnCallEnd. Drops what is queued and held.
  void Finish(Stream* s, absl::Status&& status, Metadata&& trailing = {});
  Stream* Lookup(StreamId id) const {
    return static_cast<Stream*>(nghttp2_session_get_stream_user_data(h2_, id));
  }

  // session_send.cc
  void Resume(Stream* s);
  void SubmitTrailers(Stream* s);
  ssize_t OnReadData(Stream* s, size_t room, uint32_t* flags);
  void OnFrameSent(const nghttp2_frame& frame);
  void OnFrameNotSent(const nghttp2_frame& frame, int error);

  // session_receive.cc
  void OnBeginHeaders(const nghttp2_frame& frame);
  void OnHeader(Stream* s, std::string_view name, std::string_view value);
  void OnPseudoHeader(Stream* s, std::string_view name, std::string_view value);
  // Takes a field that is gRPC's or HTTP's own; whether it was one.
  bool OnKnownHeader(Stream* s, std::string_view name, std::string_view value);
  void OnMetadata(Stream* s, std::string_view name, std::string_view value);
  void OnFrame(const nghttp2_frame& frame);
  void OnRequestHeaders(Stream* s);
  void OnReplyHeaders(Stream* s, bool end_stream);
  void OnData(Stream* s, std::string_view bytes);
  // END_STREAM has arrived.
  void OnRequestEnd(Stream* s);
  void OnReplyEnd(Stream* s);
  void OnGoaway(StreamId last);
  void OnStreamClose(Stream* s, uint32_t error_code);
  // The peer broke gRPC's rules or a limit: ends the call here and tells the peer.
  void Fail(Stream* s, absl::Status status);
  // Server: a reply that consists of an HTTP status, for requests that are not gRPC.
  void RefuseHttp(Stream* s, std::string_view http_status);

  // nghttp2's C callbacks; `self` is the Impl.
  struct Callbacks;
  static nghttp2_data_source_read_callback ReadCallback();

  // Immutable after construction.
  const Role role_;
  const SessionOptions options_;
  Events* const events_;
  nghttp2_session* h2_ = nullptr;

  // All streams that nghttp2 knows or will open.
  Stream* oldest_ = nullptr;
  Stream* newest_ = nullptr;
  size_t open_streams_ = 0;
  size_t queued_bytes_ = 0;
  // Bytes of unfinished messages held by all streams.
  size_t held_bytes_ = 0;

  // The stream whose header block is arriving; set by each HEADERS frame anew.
  Stream* header_stream_ = nullptr;
  // Client: ids up to here have left in HEADERS, so nghttp2 knows them.
  StreamId last_sent_request_ = 0;
  // Only during Pull(): where DATA goes, and how much may lie there.
  std::string* out_ = nullptr;
  size_t out_limit_ = 0;

  // Set by SendGoaway(). Streams above it are ignored even before the GOAWAY has left: it promises that they
  // were not looked at.
  std::optional<StreamId> last_accepted_;

  // Server: bytes of the client's preface that have arrived and matched.
  size_t preface_have_ = 0;
  // What a peer that speaks HTTP/1 is told instead of HTTP/2 frames.
  std::string plain_answer_;
  bool silent_ = false;
  // Why the connection is beyond use; OK while it is not.
  absl::Status broken_;
};

}  // namespace curtail::wire
