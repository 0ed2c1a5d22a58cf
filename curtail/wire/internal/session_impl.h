// SPDX-License-Identifier: Apache-2.0
//
// session_impl.h - the inside of a Session. session.cc explains how the parts work together.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/wire/internal/binary_fields.h"
#include "curtail/wire/internal/frame.h"
#include "curtail/wire/internal/hpack.h"
#include "curtail/wire/internal/stream.h"
#include "curtail/wire/session.h"

namespace curtail::wire {

// The meaning of the header fields of one block, besides path, timeout and metadata.
struct ReceivedFields {
  uint32_t bytes = 0;      // as RFC 9113 6.5.2 counts: names, values, 32 a field
  uint32_t joined = 0;     // values that share a field with others
  uint16_t pseudo = 0;     // which pseudo-header fields there were, a bit each
  bool too_long = false;   // more than max_header_bytes
  bool malformed = false;  // grpc-timeout or base64 that cannot be parsed
  bool bad_http = false;   // breaks RFC 9113, section 8
  bool past_pseudo = false;
  bool is_post = false;
  bool grpc_content = false;
  bool unknown_encoding = false;
  Encoding encoding = Encoding::kIdentity;
  bool has_length = false;
  int64_t content_length = 0;
  bool has_grpc_status = false;
  bool has_grpc_message = false;
  bool has_details = false;
  int16_t http_status = 0;
};

// An act that a peer may do so often at once, and so often again once a second has passed since.
struct Allowance {
  uint32_t left;
  const uint32_t per_second;
  TimePoint since = {};
};

class Session::Impl {
 public:
  using Stream = internal::Stream;
  using ErrorCode = internal::ErrorCode;
  using FrameHeader = internal::FrameHeader;

  Impl(Role role, const SessionOptions& options, Events* events);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // The stream of an id that the owner may still act on, or null.
  Stream* Find(StreamId id) const {
    Stream* s = streams_.Find(id);
    return s == nullptr || s->done || !s->known ? nullptr : s;
  }

  absl::Status Receive(std::string_view bytes);
  std::span<char> Room(size_t least);
  absl::Status ReceivedInRoom(size_t bytes);
  bool TookLong() { return std::exchange(took_long_, false); }
  bool Pull(std::string* out, size_t limit);
  bool Gather(Output* out, size_t limit);
  void Written() { lender_.Return(); }
  void Abort(const absl::Status& why);
  void SendPing(uint64_t payload);
  void SendGoaway();
  void SendShutdownNotice();
  bool Finished() const;
  void FailCall(Stream* s, const absl::Status& status) { Fail(s, status); }
  std::vector<OpenCall> OpenCalls() const;
  void LimitHeld(size_t bytes, size_t alone) { held_limit_ = bytes, held_alone_limit_ = alone; }
  size_t memory_bytes() const;
  bool begun() const { return got_settings_; }
  bool input_unfinished() const;
  uint64_t inputs() const { return inputs_; }

  // session_send.cc
  absl::StatusOr<Stream*> StartCall(const RequestHead& head, void* tag);
  void SendHead(Stream* s, const Metadata& metadata);
  // `last`: the client sends no more messages.
  void SendMessage(Stream* s, std::string&& message, bool last = false);
  void EndRequest(Stream* s);
  void EndCall(Stream* s, const absl::Status& status, const Metadata& trailing);
  void SetReading(Stream* s, bool reading);
  // Resets the stream and ends the call with `status`.
  void Reset(Stream* s, ErrorCode code, absl::Status status);

  bool is_client() const { return role_ == Role::kClient; }
  size_t queued_bytes() const { return queued_bytes_ + ready_bytes_; }
  size_t open_streams() const { return open_streams_; }

 private:
  // Header fields as they were encoded last, good for as long as the encoder's generation stands.
  struct EncodedFields {
    std::string key;  // of a request: its path
    std::string bytes;
    std::optional<uint64_t> generation;
  };

  // session.cc
  // Server: takes the connection preface from the front of `bytes`, and answers other protocols.
  absl::Status TakePreface(std::string_view* bytes);
  // Records why the connection is beyond use, unless that is known already.
  const absl::Status& Broken(absl::Status why);
  // The peer broke HTTP/2: says so in a GOAWAY.
  void ConnectionError(ErrorCode code, std::string_view what);
  // `what` is the debug text.
  void AppendGoaway(StreamId last, ErrorCode code, std::string_view what);
  Stream* NewStream(StreamId id);
  // Takes the stream out of the table and of any queue. Its memory goes with Reap().
  void Close(Stream* s);
  void Reap();
  // The one place that calls OnCallEnd. Drops what is queued and held.
  void Finish(Stream* s, absl::Status&& status, Metadata&& trailing = {});
  // Client: the same for a closed stream that the peer has certainly not seen.
  void FinishUnprocessed(Stream* s, absl::Status&& status);
  // DATA of the streams in turns, until `limit` bytes or more are ready.
  void AppendQueued(size_t limit);
  // Bytes that Pull() or Gather() would hand out now.
  size_t ready() const { return out_.size() + lender_.lent_bytes; }
  size_t DropQueue(Stream* s) { return s->queue.Clear(lender_); }
  // True if the frame is longer than we have said that we take.
  bool TooLong(const FrameHeader& header);
  // Takes DATA as it comes, from its header on; false: this frame is held until it is whole.
  bool BeginData(const FrameHeader& header);
  void TakeData(std::string_view* bytes);

  // session_send.cc
  void SendSettings();
  void OpenWaiting();
  // Client: streams opened and not closed.
  size_t opened_streams() const { return streams_.size() - waiting_.size(); }
  size_t BeginBlock();
  void EndBlock(size_t begin, StreamId id, bool end_stream);
  void AppendRequest(StreamId id, const RequestHead& head);
  EncodedFields* FindRequestFields(std::string_view path);
  // `authority`: empty for the session's.
  void EncodeRequestFields(std::string_view path, std::string_view authority, EncodedFields* fields);
  void AppendRequestFields(const RequestHead& head);
  void AppendReplyHead();
  void AppendMetadata(const Metadata& metadata);
  // REQUIRES: StartCall() has checked it.
  void AppendRequestMetadata(const RequestHead& head);
  void AppendTraceParent(const TraceParent& parent);
  void AppendTrailers(Stream* s, const absl::Status& status, const Metadata& trailing);
  // grpc-message and grpc-status-details-bin.
  void AppendError(const absl::Status& status);
  // After the last frame of a reply: the call ends with the next Pull().
  void Leave(Stream* s);
  void MarkReady(Stream* s);
  void AppendQueuedData(Stream* s, size_t limit);
  // Resets a stream because of what the peer did there.
  void RefuseStream(StreamId id, ErrorCode code);
  void AppendReset(StreamId id, ErrorCode code);
  // The flow-control window of the peer on a stream.
  int64_t Window(const Stream* s) const { return peer_stream_window_ + s->send_credit; }

  // session_receive.cc
  void OnFrame(const FrameHeader& header, std::string_view payload);
  void OnData(const FrameHeader& header, std::string_view payload);
  // The next `bytes` of data_: they are `part`, or lie in the message already.
  void OnDataPart(std::string_view part, size_t bytes);
  // Content of a DATA frame, for which the windows were counted. `last`: the rest of it.
  inline void OnContent(Stream* s, const FrameHeader& header, std::string_view content, bool last);
  bool CountReceived(Stream* s, uint32_t bytes);
  // The bytes that the peer may send on a stream before it hears of more.
  uint32_t StreamWindow() const;
  // Gives the stream's window back, once half is used.
  void Credit(Stream* s);
  size_t MessageLimit(const Stream* s) const;
  void OnMessageBytes(Stream* s, std::string_view bytes);
  // message_ is whole, and compressed.
  void OnCompressedMessage(Stream* s);
  void OnRstStream(const FrameHeader& header, std::string_view payload);
  // Takes one of the allowance; false: it is used up, which ends the connection.
  bool Spend(Allowance* allowance, Limit limit);
  // The peer has reached a limit, which ends the connection.
  void LimitReached(Limit limit, std::string_view what);
  void OnSettings(const FrameHeader& header, std::string_view payload);
  struct NewSettings;
  bool OnSetting(internal::Setting setting, uint32_t value, NewSettings* changed);
  void SetPeerWindow(uint32_t bytes);
  void OnPing(const FrameHeader& header, std::string_view payload);
  void OnGoaway(const FrameHeader& header, std::string_view payload);
  void OnWindowUpdate(const FrameHeader& header, std::string_view payload);
  // END_STREAM has arrived.
  void OnRequestEnd(Stream* s);
  void OnReplyEnd(Stream* s, absl::Status&& status, Metadata&& trailing = {});
  // The peer broke gRPC's rules or a limit: ends the call here and tells the peer.
  void Fail(Stream* s, absl::Status status);
  // Counts a frame that the peer provoked.
  void React();
  // The peer broke HTTP/2's rules on one stream.
  void StreamError(Stream* s, ErrorCode code);
  // A frame for a stream that is closed.
  void RefuseClosed(StreamId id);
  // A header block for a stream that is closed, or was passed over.
  void RefuseClosedHeaders(StreamId id);
  // True if no frame but HEADERS may have this id: it was not used yet.
  bool Idle(StreamId id) const;
  // Counts DATA against content-length (RFC 9113, 8.1.1); false: they differ.
  static bool CountContent(Stream* s, size_t bytes, bool end);
  // DATA of a stream that is `unusual`. True: the messages in it are still to be looked at.
  bool TakeUnusual(Stream* s, size_t bytes, bool end);
  // Takes the padding off; false: it is longer than the frame.
  static bool Unpad(const FrameHeader& header, std::string_view* payload);

  // session_headers.cc
  void OnHeaders(const FrameHeader& header, std::string_view payload);
  void OnContinuation(const FrameHeader& header, std::string_view payload);
  void OnHeaderBlock(StreamId id, bool end_stream, std::string_view block);
  bool Decode(std::string_view block, bool wanted);
  void OnField(const internal::HeaderField& field);
  void OnPseudoField(const internal::HeaderField& field);
  void OnContentLength(std::string_view value);
  void SetContentLength(Stream* s) const;
  void OnEncoding(std::string_view name);
  void OnMetadata(const internal::HeaderField& field);
  void OnRequestHeaders(StreamId id, bool end_stream);
  void OnRequestTrailers(Stream* s, bool end_stream);
  void OnReplyHeaders(Stream* s, bool end_stream);
  bool RequestIsWellFormed() const;
  // Server: a reply that consists of an HTTP status, for requests that are not gRPC.
  // The answer comes when the request has come whole: until then it may turn out to be malformed.
  void RefuseHttp(StreamId id, bool end_stream, int16_t http_status);
  void AnswerHttp(Stream* s);
  // Server: ends a request that the owner has not heard of. `encoding`: because of its compression.
  void Refuse(StreamId id, bool end_stream, absl::Status status, bool encoding = false);

  // Immutable after construction.
  const Role role_;
  const SessionOptions options_;
  Events* const events_;

  internal::StreamTable streams_;
  internal::StreamPool pool_;
  Stream* closed_ = nullptr;       // closed, memory not yet given back
  internal::StreamQueue waiting_;  // client: not yet opened, oldest first
  internal::StreamQueue
      sendable_;  // have DATA to send, which their own window allows if it was not made smaller
  internal::StreamQueue blocked_;  // have DATA to send that their own window does not allow
  internal::StreamQueue leaving_;  // server: replies whose last frame is in out_
  size_t open_streams_ = 0;

  // Ids. A client's own: the next one to use, and the last one opened. A server's: the last one the client opened.
  StreamId next_id_ = 1;
  StreamId last_opened_ = 0;
  bool skipped_ids_ = false;  // server: the client has passed over some
  // Set by SendGoaway(). Streams above it are ignored even before the GOAWAY has left: it promises that they were not
  // looked at.
  std::optional<StreamId> last_accepted_;
  bool pulled_ = false;  // the owner has had output, which may have reached the peer
  bool got_goaway_ = false;

  // Output: frames that are ready, in order. ready_bytes_ of them are messages.
  std::string out_;
  size_t ready_bytes_ = 0;
  size_t queued_bytes_ = 0;  // of messages that wait in streams
  internal::Lender lender_;  // of those that Gather() has handed out
  bool sent_reset_ = false;  // ever
  uint32_t reactions_ = 0;   // frames in out_ that the peer provoked
  internal::HpackEncoder encoder_;
  std::array<EncodedFields, 4> requests_;  // by path
  size_t next_request_ = 0;
  EncodedFields reply_head_;
  bool sent_timeout_ = false;
  bool sent_parent_ = false;
  EncodedFields parent_name_;  // of the traceparent: all but its value

  // Flow control.
  int64_t send_window_ = internal::kDefaultWindow;         // what the peer takes on the connection
  int64_t peer_stream_window_ = internal::kDefaultWindow;  // what it takes on a new stream
  int64_t most_credit_ = 0;                                // of any stream, perhaps of one that has ended
  uint32_t uncredited_ = 0;  // received on the connection without a WINDOW_UPDATE
  bool settings_acked_ = false;
  uint32_t peer_max_streams_;
  uint32_t peer_data_bytes_ = internal::kMaxFrameBytes;  // of DATA in one frame
  uint32_t peer_header_bytes_ = UINT32_MAX;              // of fields in one block

  // Input.
  std::string partial_;     // a frame of which a part has arrived
  FrameHeader data_;        // ... or DATA, whose parts are not held,
  uint32_t data_left_ = 0;  // and the bytes of it that are still to come
  bool took_long_ = false;  // for TookLong()
  bool got_settings_ = false;
  size_t preface_have_ = 0;
  internal::HpackDecoder decoder_;
  internal::BinaryFields binary_fields_;
  // A header block that arrives in several frames; no other frame may come in between.
  std::optional<FrameHeader> open_block_;
  std::string block_;
  uint32_t continuations_ = 0;
  // Of the block being decoded; their memory is used again.
  ReceivedFields fields_;
  RequestHead head_;
  std::string grpc_status_;
  std::string grpc_message_;
  std::string details_;
  std::string message_;
  std::string inflated_;
  std::string compressed_;  // our own, on its way out
  uint64_t inputs_ = 0;     // header blocks and other frames that came whole
  size_t head_bytes_ = 0;   // of header fields of open streams
  size_t held_limit_;
  size_t held_alone_limit_;
  size_t held_bytes_ = 0;  // of unfinished messages, all streams together
  // Resets by the peer, and those that it provokes. Far above what an honest client sends whose deadlines run out under
  // overload.
  Allowance resets_{20'000, 10'000};
  // Blocks and frames that break the rules on one stream; an honest peer sends none.
  Allowance malformed_{200, 20};
  Allowance settings_frames_{100, 10};
  // Far above the window updates of a download at 1 GB/s.
  Allowance empty_frames_{100'000, 100'000};

  // The answer to a peer that speaks HTTP/1, instead of HTTP/2 frames.
  std::string plain_answer_;
  bool silent_ = false;
  // Why the connection is beyond use; OK while it is not.
  absl::Status broken_;
};

}  // namespace curtail::wire
