// SPDX-License-Identifier: Apache-2.0
//
// session.h - one HTTP/2 connection that speaks gRPC, as a pure state machine: bytes in, events
// out, bytes out.
//
// Use it below a socket loop: feed received bytes to Receive(), call the send methods, then write
// the output of Pull(). It does no I/O, has no threads and reads no clock; a fuzzer can drive it.
// HTTP in general has http_codec.h.
//
// Thread safety: none; one thread at a time owns a Session.
// Reentrancy: an event handler may call any send method, but neither Receive() nor Pull().
// Memory: a warm session whose calls are alike allocates nothing for them.
//
// Messages are events on a stream, so streaming calls need nothing more than unary ones. Framing,
// HPACK and flow control follow RFC 9113 and RFC 7541. The mapping of gRPC onto them follows the
// gRPC over HTTP/2 protocol specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/wire/encoding.h"
#include "curtail/wire/metadata.h"
#include "curtail/wire/stream_events.h"
#include "curtail/wire/trace_parent.h"

namespace curtail::wire {

// How a call begins, on either side.
struct RequestHead {
  std::string path;              // "/package.Service/Method"
  std::optional<Nanos> timeout;  // grpc-timeout, relative
  Metadata metadata;             // custom fields only
  TraceParent trace_parent;      // client: left out where it does not fit the server's limit
  // Client: of the messages it sends. The server answers in the same.
  Encoding encoding = Encoding::kIdentity;
  // Client: the :authority of this call; empty: the session's.
  std::string authority = {};
  // Client: the longest reply message that this call accepts; at most the session's limit holds.
  size_t max_message_bytes = SIZE_MAX;
};

// An Events receives the peer's actions. `tag` is the owner's own pointer for the stream: for a
// client the argument of StartCall(), for a server the result of OnRequest(). Every stream ends
// with exactly one OnCallEnd or OnReply.
class Events : public StreamEvents {
 public:
  // Server: a call begins. The returned tag comes with the stream's later events. It may be null.
  // It is null in an OnCallEnd that this very event causes by Cancel() or Abort(). The head is the
  // session's scratch: swap its strings instead of moving them, so that the session reuses their
  // memory.
  virtual void* OnRequest(StreamId, RequestHead&&) { return nullptr; }
  // Client: initial metadata of the reply has arrived (not called for trailers-only replies).
  virtual void OnResponseHead(StreamId, void* /*tag*/, Metadata&&) {}
  // One whole message, without its 5-byte prefix. The session reuses its memory if the owner swaps
  // or copies it.
  virtual void OnMessage(StreamId, void* tag, std::string&& message) = 0;
  // Server: the client will send no more messages on this stream.
  virtual void OnRequestEnd(StreamId, void* /*tag*/) {}
  // Client: a unary call (StartUnaryCall) has ended well. Its reply came in one piece, without
  // metadata. The stream is over, so Cancel() does nothing. Unless the owner overrides it, calls
  // the events of the parts, with a copy of the message.
  virtual void OnReply(StreamId id, void* tag, std::string_view message) {
    OnResponseHead(id, tag, {});
    OnMessage(id, tag, std::string(message));
    OnCallEnd(id, tag, absl::OkStatus(), {});
  }
};

struct SessionOptions {
  // Longest message accepted, inflated; a longer one ends its stream with RESOURCE_EXHAUSTED. Raise
  // for big blobs.
  size_t max_message_bytes = 32u << 20;
  // Bytes of unfinished messages held for all streams together, if there are several. The stream
  // that exceeds it ends with RESOURCE_EXHAUSTED.
  size_t max_partial_bytes = 128u << 20;
  // Sum of header field sizes of one call (RFC 9113 6.5.2). A larger header ends the stream
  // (server: RESOURCE_EXHAUSTED).
  uint32_t max_header_bytes = 16u << 10;
  // Calls one peer may have open at once. A server announces it and refuses streams beyond it
  // (REFUSED_STREAM), which a client may try again.
  uint32_t max_concurrent_streams = 4096;
  // Flow-control windows announced to the peer, per stream and per connection, in bytes. Raise on
  // long fat links.
  uint32_t stream_window_bytes = 4u << 20;
  uint32_t connection_window_bytes = 16u << 20;
  // Server: bytes that may be inflated, or copied from HPACK's table, at a stretch, beside eight
  // for each one received; an eighth of it at first. Then the session is stalled().
  size_t inflate_bytes = SIZE_MAX;
  // Client: the :authority of every call.
  std::string authority = "localhost";
  // Client: the connection is encrypted, so calls say https. The session itself does not encrypt.
  bool secure = false;
};

enum class Role { kClient, kServer };

// Output to be written in order: `bytes`, each piece ahead of the byte at its offset.
struct Output {
  struct Piece {
    size_t at;  // in `bytes`; they do not decrease
    std::string_view bytes;
  };

  std::string bytes;
  std::vector<Piece> pieces;
  size_t size = 0;  // of all together

  void Clear() {
    bytes.clear();
    pieces.clear();
    size = 0;
  }
};

// A Session is one end of one HTTP/2 connection.
class Session {
 public:
  // `events` outlives the session. A client's preface and SETTINGS are pending output from the
  // start, a server's SETTINGS as soon as the client's preface has arrived.
  Session(Role role, const SessionOptions& options, Events* events);
  // Ends every open stream silently (no events).
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Takes bytes read from the peer and calls the events they complete. After an error the
  // connection is beyond use. The owner writes the remaining output of Pull(), then closes. That
  // output is a GOAWAY, or an HTTP/1.1 400 for a peer that spoke HTTP/1. Streams open then may have
  // had no OnCallEnd: call Abort().
  [[nodiscard]] absl::Status Receive(std::string_view bytes);
  // A place for the peer's next bytes, if `least` or more of them belong to one message: if the
  // owner reads them there, they are not copied. Empty if there is none. Good until the next call
  // of any method.
  std::span<char> Room(size_t least = 16u << 10);
  // As Receive() of the first `bytes` of Room(), which hold them.
  [[nodiscard]] absl::Status ReceivedInRoom(size_t bytes);
  // True if a long frame has begun since the last call. An owner that then reads little at first
  // finds Room() for the rest of the next.
  bool TookLong();

  // True if the session has inflated or copied inflate_bytes: input waits until the owner calls
  // GoOn(), after other work. Meanwhile Receive() keeps what comes.
  bool stalled() const;
  // Inflates the next inflate_bytes, and if that was the rest receives what has waited. Events and
  // errors as Receive().
  [[nodiscard]] absl::Status GoOn();

  // Appends pending output to `out` until there is none or `out` holds `limit` bytes or more (by
  // less than 16 KiB). The limit does not hold back short messages and frames that are
  // not DATA. Returns true if output is left. May call OnCallEnd, of replies that are now sent
  // whole.
  bool Pull(std::string* out, size_t limit = 256u << 10);
  // False: Pull() would append nothing and call no event, and Finished() is false. Cheaper than
  // asking either.
  bool HasOutput() const;
  // All that Pull() would append, where it is, if nothing has to be made for that; else empty. Good
  // until the next call of any method. An owner that has taken all of it calls TookReady(), which
  // calls the events that Pull() would and returns HasOutput(). Pull() and Gather() append output
  // that was not taken.
  std::string_view Ready() const;
  bool TookReady();
  // The same for an `out` that is empty. Long messages are not copied: they are pieces, which the
  // session keeps until the owner calls Written(), and which end with the session. The next call of
  // Pull() or Gather() comes after Written().
  bool Gather(Output* out, size_t limit = 256u << 10);
  // All that Gather() handed out is written.
  void Written();

  // Client: begins a call. Errors: UNAVAILABLE when the connection takes no new streams (GOAWAY,
  // ids used up); INVALID_ARGUMENT for metadata that may not be sent, which it names;
  // RESOURCE_EXHAUSTED for more of it than the server takes.
  [[nodiscard]] absl::StatusOr<StreamId> StartCall(const RequestHead& head, void* tag);
  // Client: StartCall, SendMessage and EndRequest in one step: the frames of a unary call. After an
  // error `message` is untouched.
  [[nodiscard]] absl::StatusOr<StreamId> StartUnaryCall(const RequestHead& head, std::string&& message,
                                                        void* tag);
  // Client: no more messages on this stream.
  void EndRequest(StreamId id);

  // Server: sends initial metadata ahead of the first message. Optional: SendMessage() sends an
  // empty head by itself. Entries that may not be sent are left out.
  void SendHead(StreamId id, const Metadata& metadata);
  // Server: ends the call with its status; trailers-only when no message was sent before. The
  // status's payloads travel as its details, keyed by type URL. Messages longer than 2 KiB are cut.
  // Details longer than 12 KiB in base64, or half of what the client takes, are left out, which the
  // message then says; metadata entries that may not be sent are left out, too.
  void EndCall(StreamId id, const absl::Status& status, const Metadata& trailing = {});

  // Either role: sends one message. A short one is copied into the output at once, and `message`
  // keeps its memory for the caller's next. One that has to wait for the peer's windows is moved
  // from. Messages queue without bound here: the owner watches queued_bytes(), or stops at
  // kWritableBytes and goes on at OnWritable(). Ignored, like the other per-stream calls, when the
  // stream is already over.
  void SendMessage(StreamId id, std::string&& message);
  // Lets the peer go on to send on this stream, as it may at first, or not. False withholds further
  // credit: at most stream_window_bytes come before the peer has to wait. Of a message that is
  // longer than the window the rest comes after true only.
  void SetReading(StreamId id, bool reading);
  // Resets the stream (CANCEL) and drops its queue; OnCallEnd follows with CANCELLED before this
  // returns.
  void Cancel(StreamId id);
  // Server: ends the call now, whatever is queued or half received. The client hears `status`, or a
  // reset if it has half a reply. OnCallEnd follows with `status` before this returns.
  void FailCall(StreamId id, const absl::Status& status);
  struct OpenCall {
    StreamId id;
    void* tag;
    bool waits;  // for the client, which owes the rest of the request, or a window for the reply
  };
  // Server: the open calls that the owner knows.
  std::vector<OpenCall> OpenCalls() const;
  // From now on at most so many bytes of unfinished messages are held, and at most `alone` if they
  // are one message.
  void LimitHeld(size_t bytes, size_t alone);
  // Ends all open streams with `why` through OnCallEnd: the transport is gone.
  void Abort(const absl::Status& why);

  void SendPing(uint64_t payload);
  // Takes no new streams from now on. Open ones go on, and Finished() is true once they have ended.
  // Requests in flight meanwhile end with UNAVAILABLE at the client, which may safely try them
  // again.
  void SendGoaway();
  // Server: asks the client to start no more calls here, and refuses none. Call it a round trip
  // ahead of SendGoaway() for a shutdown that refuses no call.
  void SendShutdownNotice();

  // Bytes of messages accepted by SendMessage() and not yet handed out by Pull(), 5 more for each
  // message.
  size_t queued_bytes() const;
  // The same of one stream; 0 if it is over.
  size_t queued_bytes(StreamId id) const;
  size_t open_streams() const;
  // Bytes of memory held for the peer, roughly: streams, fields, parts of messages, output.
  size_t memory_bytes() const;
  // True once the peer's first SETTINGS have arrived.
  bool begun() const;
  // True while the peer owes the rest of a header block or of a frame, other than DATA of a call.
  bool input_unfinished() const;
  // Counts header blocks and frames that came whole, so that an owner can tell one from the next.
  uint64_t inputs() const;
  // True if both directions are done (after GOAWAY and the last stream, or an error): close after
  // the last Pull().
  bool Finished() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace curtail::wire
