// SPDX-License-Identifier: Apache-2.0
//
// http2.h - one end of an HTTP/2 connection (RFC 9113) as a pure state machine: frames, streams, flow control, and the
// bounds of what a peer may make it do. http2.cc explains how the parts work together.
//
// What the streams carry is the business of a layer, which derives from it: gRPC's is the inside of a Session
// (session_impl.h), HTTP's are the codecs (http2_server_codec.cc, http2_client_codec.cc).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/wire/internal/frame.h"
#include "curtail/wire/internal/hpack.h"
#include "curtail/wire/internal/http_fields.h"
#include "curtail/wire/internal/stream.h"
#include "curtail/wire/session.h"

namespace curtail::wire::internal {

// An act that a peer may do so often at once, and so often again once a second has passed since.
struct Allowance {
  uint32_t left;
  uint32_t per_second;
  TimePoint since = {};
};

// Thread-compatible. The public methods are those of Session.
class Http2 {
 public:
  Http2(const Http2&) = delete;
  Http2& operator=(const Http2&) = delete;

  // The stream of an id that the owner may still act on, or null.
  Stream* Find(StreamId id) const {
    Stream* s = streams_.Find(id);
    return s == nullptr || s->done || !s->known ? nullptr : s;
  }

  absl::Status Receive(std::string_view bytes);
  bool TookLong() { return std::exchange(took_long_, false); }
  // False: Pull() would give nothing and tell nothing, and Finished() is false.
  bool HasOutput() const {
    return !out_.empty() || !sendable_.empty() || !leaving_.empty() || !waiting_.empty() || ending_;
  }
  bool Pull(std::string* out, size_t limit);
  std::string_view Ready() const {
    const bool more = !sendable_.empty() || !waiting_.empty() || silent_;
    if (more || (!is_client() && preface_have_ < kPreface.size())) [[unlikely]]
      return {};
    return out_;
  }
  bool TookReady() {
    out_.clear();
    Pulled();
    return HasOutput();
  }
  bool Gather(Output* out, size_t limit);
  void Written() { lender_.Return(); }
  void Abort(const absl::Status& why);
  void SendPing(uint64_t payload);
  void SendGoaway();
  void SendShutdownNotice();
  bool Finished() const;
  size_t memory_bytes() const;
  // Of frames and header blocks that are not whole.
  size_t input_bytes() const { return partial_.size() + block_.size(); }
  bool begun() const { return got_settings_; }
  bool input_unfinished() const;
  uint64_t inputs() const { return inputs_; }
  void SetReading(Stream* s, bool reading);
  // Resets the stream and ends the call with `status`.
  void Reset(Stream* s, ErrorCode code, absl::Status status);

  bool is_client() const { return role_ == Role::kClient; }
  size_t queued_bytes() const { return queued_bytes_ + ready_bytes_; }
  size_t open_streams() const { return open_streams_; }

 protected:
  // Of `options` the limits on header fields and streams, and the windows.
  Http2(Role role, const SessionOptions& options, StreamEvents* events);
  ~Http2();

  // ----- the layer's ----------------------------------------------------------------------------------------

  // Decodes a header block that is of use, by decoder_.
  virtual bool DecodeFields(std::string_view block) = 0;
  // It was one of a stream or, with null, of a request on a new one.
  virtual void OnFields(Stream* s, StreamId id, bool end_stream) = 0;
  // Takes a whole request or reply, which begins with `header`, from the front of `bytes`. Returns how many bytes
  // it had; 0: its frames go the way of all.
  virtual size_t TakeWhole(const FrameHeader& /*header*/, std::string_view /*bytes*/) { return 0; }
  // DATA of an open stream, for which the windows were counted. `end`: it is the last.
  virtual void OnContent(Stream* s, std::string_view content, bool end) = 0;
  // Client: encodes the request of a stream that had to wait.
  virtual void SendRequest(Stream*) {}
  // Server: encodes the trailers of a stream whose queue is empty and that has a `result`.
  virtual void SendResult(Stream*) {}
  // Server: what a client gets that speaks HTTP/1.
  virtual std::string_view plain_answer() const { return {}; }

  // ----- for the layer --------------------------------------------------------------------------------------

  bool takes_streams() const { return !ending_ && next_id_ > 0; }
  // True if a stream that is opened now need not wait.
  bool OpensAtOnce() const { return waiting_.empty() && opened_streams() < peer_max_streams_; }
  // Client: a stream that the owner knows. The layer sends its request, unless it is `waiting`.
  // REQUIRES: takes_streams()
  Stream* OpenStream(void* tag) {
    if (OpensAtOnce()) return OpenAtOnce(tag);
    Stream* const s = NextStream(tag);
    s->waiting = true;
    waiting_.Push(s);
    return s;
  }
  // ... REQUIRES: OpensAtOnce().
  Stream* OpenAtOnce(void* tag) {
    Stream* const s = NextStream(tag);
    last_opened_ = s->id;
    return s;
  }
  Stream* NewStream(StreamId id) {
    Stream* s = pool_.New();
    s->id = id;
    streams_.Insert(s);
    return s;
  }
  // Server: a stream for a request, which the owner hears of.
  Stream* AcceptStream(StreamId id) {
    Stream* s = NewStream(id);
    s->known = true;
    ++open_streams_;
    return s;
  }
  // Server: true if there may be one more.
  bool HasRoom() const { return streams_.size() + leaving_.size() < options_.max_concurrent_streams; }
  // Server: resets a stream on which a request has come that it does not take: it is malformed, or one too many.
  void RefuseRequest(StreamId id, bool malformed);
  // Resets a stream because of what the peer did there.
  void RefuseStream(StreamId id, ErrorCode code);
  // The peer broke HTTP/2's rules on one stream.
  void StreamError(Stream* s, ErrorCode code);
  // Takes the stream out of the table and of any queue. Its memory goes with Reap().
  void Close(Stream* s) {
    s->closed = true;
    if (s->in_queue != nullptr) [[unlikely]]
      s->in_queue->Remove(s);
    streams_.Erase(s);
    s->bucket_next = closed_;
    closed_ = s;
  }
  void Reap() {
    while (closed_ != nullptr) {
      Stream* s = closed_;
      closed_ = s->bucket_next;
      pool_.Free(s);
    }
  }
  // The one place that calls OnCallEnd. Drops what is queued and held.
  void Finish(Stream* s, absl::Status&& status, Metadata&& trailing = {});
  // Finish() but for OnCallEnd. REQUIRES: not done.
  [[gnu::always_inline]] void EndQuietly(Stream* s) {
    s->done = true;
    held_bytes_ -= s->reader.held_bytes();
    head_bytes_ -= s->head_bytes;
    s->reader.Reset();
    queued_bytes_ -= DropQueue(s);
    if (s->known) --open_streams_;
  }
  // After the last frame of a reply: the call ends with the next Pull().
  void Leave(Stream* s);

  // Begins a header block: leaves room for the frame's header. The fields follow.
  size_t BeginBlock();
  void EndBlock(size_t begin, StreamId id, bool end_stream);
  // The stream's queue has something to send.
  void MarkReady(Stream* s);
  // Ends what the stream sends by an empty frame.
  void SendEnd(Stream* s) {
    AppendFrameHeader({0, FrameType::kData, kEndStream, s->id}, &out_);
    s->sent_end = true;
  }
  size_t DropQueue(Stream* s) { return s->queue.Clear(lender_); }
  void AppendReset(StreamId id, ErrorCode code);
  // Server: true if HEADERS of this id open a stream, for which there is room.
  bool MayOpen(StreamId id) const { return id > last_opened_ && id % 2 != 0 && !last_accepted_ && HasRoom(); }
  // ... REQUIRES: that.
  void NoteOpened(StreamId id) {
    skipped_ids_ |= id > last_opened_ + 2;
    last_opened_ = id;
  }
  // Counts `bytes` of DATA with which a stream ends that has got `before`. False: that is not all there is to do,
  // and they are not counted.
  bool CountLast(uint32_t before, uint32_t bytes) {
    const uint32_t window = std::clamp(options_.connection_window_bytes, kDefaultWindow, kMaxWindow);
    if (uncredited_ + bytes >= window / 2 || before + bytes >= options_.stream_window_bytes / 2) return false;
    uncredited_ += bytes;
    return true;
  }
  // Frames that came whole, beside those that go the way of all.
  void CountFrames(uint64_t frames) { inputs_ += frames; }
  // The flow-control window of the peer on a stream, and on a new one.
  int64_t Window(const Stream* s) const { return peer_stream_window_ + s->send_credit; }
  int64_t NewWindow() const { return peer_stream_window_; }

  // Counts a frame that the peer provoked.
  void React();
  // Takes one of the allowance; false: it is used up, which ends the connection.
  bool Spend(Allowance* allowance, Limit limit);
  // From now on CountContent() compares DATA with content-length (RFC 9113, 8.1.1).
  static void SetContentLength(Stream* s, const HttpFields& fields) {
    s->content_left = fields.has_length ? fields.content_length : -1;
    s->unusual = true;
  }
  // False: they differ.
  static bool CountContent(Stream* s, size_t bytes, bool end);
  // From now on input waits, also the rest of what is being received.
  void Stall() { stalled_ = true; }
  bool stalled() const { return stalled_; }
  // The end of that. The layer goes on with what it has; then what has waited is received.
  void Resume() { stalled_ = false; }
  absl::Status ReceiveWaiting() { return Receive(std::exchange(waiting_input_, {})); }
  // The next `bytes` of data_: they are `part`, or lie where the layer has put them.
  void OnDataPart(std::string_view part, size_t bytes);

 private:
  // http2.cc
  // The owner has all that was in out_.
  void Pulled();
  // Server: takes the connection preface from the front of `bytes`, and answers other protocols.
  absl::Status TakePreface(std::string_view* bytes);
  // Records why the connection is beyond use, unless that is known already.
  const absl::Status& Broken(absl::Status why);
  // The peer broke HTTP/2: says so in a GOAWAY.
  void ConnectionError(ErrorCode code, std::string_view what);
  // The peer has reached a limit, which ends the connection.
  void LimitReached(Limit limit, std::string_view what);
  // Client: Finish() of a closed stream that the peer has certainly not seen.
  void FinishUnprocessed(Stream* s, absl::Status&& status);
  // DATA of the streams in turns, until `limit` bytes or more are ready.
  void AppendQueued(size_t limit);
  // Bytes that Pull() or Gather() would hand out now.
  size_t ready() const { return out_.size() + lender_.lent_bytes; }
  // Takes the rest of a frame of which partial_ is a part.
  void TakeRest(std::string_view* bytes);
  // True if the frame is longer than we have said that we take.
  bool TooLong(const FrameHeader& header);
  // Takes DATA as it comes, from its header on; false: this frame is held until it is whole.
  bool BeginData(const FrameHeader& header);
  void TakeData(std::string_view* bytes);

  // http2_frames_out.cc
  // Client: a stream of the next id.
  Stream* NextStream(void* tag) {
    Stream* const s = NewStream(next_id_);
    next_id_ = next_id_ > static_cast<StreamId>(kMaxWindow) - 2 ? -1 : next_id_ + 2;
    s->tag = tag;
    s->known = true;
    ++open_streams_;
    return s;
  }
  void SendSettings();
  void OpenWaiting();
  // Client: streams opened and not closed.
  size_t opened_streams() const { return streams_.size() - waiting_.size(); }
  void AppendQueuedData(Stream* s, size_t limit);
  // `what` is the debug text.
  void AppendGoaway(StreamId last, ErrorCode code, std::string_view what);

  // http2_frames_in.cc
  void OnFrame(const FrameHeader& header, std::string_view payload);
  inline void OnHeaders(const FrameHeader& header, std::string_view payload);
  void OnContinuation(const FrameHeader& header, std::string_view payload);
  void OnHeaderBlock(StreamId id, bool end_stream, std::string_view block);
  inline void OnData(const FrameHeader& header, std::string_view payload);
  // Content of a DATA frame. `last`: the rest of it.
  inline void OnCounted(Stream* s, const FrameHeader& header, std::string_view content, bool last);
  inline bool CountReceived(Stream* s, uint32_t bytes);
  // The bytes that the peer may send on a stream before it hears of more.
  uint32_t StreamWindow() const;
  // Gives the stream's window back, once half is used.
  inline void Credit(Stream* s);
  void OnRstStream(const FrameHeader& header, std::string_view payload);
  void OnSettings(const FrameHeader& header, std::string_view payload);
  struct NewSettings;
  bool OnSetting(Setting setting, uint32_t value, NewSettings* changed);
  void SetPeerWindow(uint32_t bytes);
  void OnPing(const FrameHeader& header, std::string_view payload);
  void OnGoaway(const FrameHeader& header, std::string_view payload);
  // Client: the streams that a GOAWAY refuses whose last one is `last`, in order.
  std::vector<StreamId> TakeRefused(StreamId last, bool first);
  void OnWindowUpdate(const FrameHeader& header, std::string_view payload);
  // A frame for a stream that is closed.
  void RefuseClosed(StreamId id);
  // A header block for a stream that is closed, or was passed over.
  void RefuseClosedHeaders(StreamId id);
  // True if no frame but HEADERS may have this id: it was not used yet.
  bool Idle(StreamId id) const { return id % 2 == 0 || id > last_opened_; }
  // Takes the padding off; false: it is longer than the frame.
  static bool Unpad(const FrameHeader& header, std::string_view* payload);

 protected:
  // Immutable after construction.
  const Role role_;
  const SessionOptions options_;

 private:
  StreamEvents* const events_;

 protected:
  StreamTable streams_;
  size_t open_streams_ = 0;
  // Ids. A client's own: the next one to use, and the last one opened. A server's: the last one the client opened.
  StreamId next_id_ = 1;
  StreamId last_opened_ = 0;

  // Output: frames that are ready, in order. ready_bytes_ of them are messages.
  std::string out_;
  size_t ready_bytes_ = 0;
  size_t queued_bytes_ = 0;  // that wait in streams
  HpackEncoder encoder_;
  int64_t send_window_ = kDefaultWindow;     // what the peer takes on the connection
  uint32_t peer_header_bytes_ = UINT32_MAX;  // what it takes of fields in one block

  // Input.
  HpackDecoder decoder_;
  FrameHeader data_;        // DATA, whose parts are not held,
  uint32_t data_left_ = 0;  // and the bytes of it that are still to come
  size_t head_bytes_ = 0;   // of header fields of open streams
  size_t held_bytes_ = 0;   // of unfinished messages, all streams together
  // Resets by the peer, and those that it provokes. Far above what an honest client sends whose deadlines run out under
  // overload.
  Allowance resets_{20'000, 10'000};
  // Blocks and frames that break the rules on one stream; an honest peer sends none.
  Allowance malformed_{200, 20};

  // Why the connection is beyond use; OK while it is not.
  absl::Status broken_;

 private:
  StreamPool pool_;
  Stream* closed_ = nullptr;  // closed, memory not yet given back
  StreamQueue waiting_;       // client: not yet opened, oldest first
  StreamQueue sendable_;      // have DATA to send, which their own window allows if it was not made smaller
  StreamQueue blocked_;       // have DATA to send that their own window does not allow
  StreamQueue leaving_;       // server: replies whose last frame is in out_

  bool skipped_ids_ = false;  // server: the client has passed over some
  // Set by SendGoaway(). Streams above it are ignored even before the GOAWAY has left: it promises that they were not
  // looked at.
  std::optional<StreamId> last_accepted_;
  bool pulled_ = false;  // the owner has had output, which may have reached the peer
  bool got_goaway_ = false;
  // Client: the streams that were open at the first GOAWAY and are not refused, in order; some may have ended.
  std::vector<StreamId> kept_;
  bool ending_ = false;  // broken_, or a GOAWAY was sent or has come: no stream is opened any more

  Lender lender_;            // of messages that Gather() has handed out
  bool sent_reset_ = false;  // ever
  uint32_t reactions_ = 0;   // frames in out_ that the peer provoked

  // Flow control.
  int64_t peer_stream_window_ = kDefaultWindow;  // what the peer takes on a new stream
  int64_t most_credit_ = 0;                      // of any stream, perhaps of one that has ended
  uint32_t uncredited_ = 0;                      // received on the connection without a WINDOW_UPDATE
  bool settings_acked_ = false;
  uint32_t peer_max_streams_;
  uint32_t peer_data_bytes_ = kMaxFrameBytes;  // of DATA in one frame

  std::string partial_;  // a frame of which a part has arrived
  bool stalled_ = false;
  std::string waiting_input_;
  bool took_long_ = false;  // for TookLong()
  bool got_settings_ = false;
  size_t preface_have_ = 0;
  // A header block that arrives in several frames; no other frame may come in between.
  std::optional<FrameHeader> open_block_;
  std::string block_;
  uint32_t continuations_ = 0;
  uint64_t inputs_ = 0;  // header blocks and other frames that came whole
  Allowance settings_frames_{100, 10};
  // Far above the window updates of a download at 1 GB/s.
  Allowance empty_frames_{100'000, 100'000};

  // The answer to a peer that speaks HTTP/1, instead of HTTP/2 frames.
  std::string_view plain_answer_;
  bool silent_ = false;
};

}  // namespace curtail::wire::internal
