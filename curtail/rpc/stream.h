// SPDX-License-Identifier: Apache-2.0
//
// stream.h - calls of many messages: the client's, the server's, or both ways.
//
// A server's handler reads and writes in straight lines, under all threading models:
//
//   absl::Status Chat(curtail::Context& ctx, curtail::ServerStream<Note, Note>& stream) override {
//     for (Note note; stream.Read(&note);) stream.Write(note);
//     return stream.status();
//   }
//
// Read() waits for the peer's next message and Write() while the peer does not read; both wait as
// the threading model waits, until the deadline of the call or its cancellation. Under fiber models
// a stream takes a fiber. Under the others it takes a thread without a role, of which
// ServerOptions::max_threads leaves some: without one the call ends with RESOURCE_EXHAUSTED. A
// stream has the deadline that its caller gave it, and none of the server's own. Coroutine handlers
// have the same streams in async_stream.h.
//
// Memory: a stream holds some 256 KiB and its window of what came and was not read, and some 128
// KiB of what was written and not taken.
//
// Thread safety: one thread may read while another writes. The rest belongs to one of them.
//
// Code: stream/stream_end.cc; server/stream_call.cc and client/client_stream.cc have the ends.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "curtail/rpc/context.h"

namespace google::protobuf {
class MessageLite;
}

namespace curtail {

class Channel;

namespace internal {

struct StreamStep;  // async_stream.h

// One end of a stream, over serialized messages.
class MessageStream {
 public:
  // The peer's next message. False: there will be none, see status().
  virtual bool Read(std::string* message) = 0;
  // False: the stream is over, and the message will not be read.
  virtual bool Write(std::string&& message) = 0;
  // Server: sends the metadata that is ahead of the messages at once, instead of with the first.
  virtual void SendInitialMetadata() {}
  // Server: as Context::ChargeParsed(), of its request's context.
  virtual absl::Status ChargeParsed(std::string_view /*bytes*/,
                                    const google::protobuf::MessageLite& /*type*/) {
    return absl::OkStatus();
  }
  // Ends reading and writing: `status` is why.
  virtual void Fail(absl::Status status) = 0;
  // Once Read() or Write() has returned false: OK if the peer has ended its messages, else why the
  // stream was cut short.
  virtual absl::Status status() = 0;
  // Carries out `step`, of a coroutine. True: it has to wait for that. A thread of the response
  // pool resumes it, perhaps before this returns.
  virtual bool Await(StreamStep& step) = 0;

 protected:
  ~MessageStream() = default;
};

// Parsed messages on top of it.
class ParsedStream {
 public:
  explicit ParsedStream(MessageStream& stream) : stream_(&stream) {}
  bool Read(google::protobuf::MessageLite* message) { return stream_->Read(&in_) && Parse(message); }
  bool Write(const google::protobuf::MessageLite& message) {
    return Serialize(message) && stream_->Write(std::move(out_));
  }
  void SendInitialMetadata() { stream_->SendInitialMetadata(); }
  absl::Status status() const { return stream_->status(); }

  // The parts of Read() and Write(). Parse() and Serialize() end the stream if they fail.
  bool Parse(google::protobuf::MessageLite* message);
  bool Serialize(const google::protobuf::MessageLite& message);
  MessageStream& bytes() { return *stream_; }
  std::string* in() { return &in_; }
  std::string* out() { return &out_; }

 private:
  MessageStream* stream_;
  std::string in_;   // the reader's
  std::string out_;  // the writer's
};

// A client's end.
class ClientStreamCall : public MessageStream {
 public:
  virtual ~ClientStreamCall() = default;
  virtual void EndWrites() = 0;
  // Ends writing, skips what was not read, and waits for the end of the call.
  absl::Status Finish();
  virtual void Cancel() = 0;
  // Waits for the server's initial metadata; empty if the call ends, or is cut short, without.
  const Metadata& InitialMetadata();
  virtual const ReplyMetadata& metadata() const = 0;

  // The parts of these between the waits.
  virtual void BeginFinish() = 0;
  virtual void CutShort() = 0;
  virtual absl::Status EndFinish() = 0;
  virtual const Metadata& Head() = 0;
};

// Begins a call. `ctx` and `channel` outlive it. Never fails: what went wrong is the call's status.
std::unique_ptr<ClientStreamCall> OpenStream(Context& ctx, Channel& channel, std::string_view path);
// The same for a call with one request, which is sent.
std::unique_ptr<ClientStreamCall> OpenStream(Context& ctx, Channel& channel, std::string_view path,
                                             const google::protobuf::MessageLite& request);
// Finishes a call that has one reply, and parses it.
absl::Status FinishWithReply(ClientStreamCall& call, google::protobuf::MessageLite* reply);
// `status` of a call, and whether it had `one` reply.
absl::Status CheckOneReply(absl::Status status, bool one);

}  // namespace internal

// Has a stub open its streams for a coroutine: async_stream.h.
struct Async {};
inline constexpr Async kAsync;

// The messages of a client, as its server reads them.
template <class In>
class StreamReader {
 public:
  explicit StreamReader(internal::ParsedStream& stream) : stream_(stream) {}
  // Waits for the next message. False: there is none, see status().
  bool Read(In* message) { return stream_.Read(message); }
  // As StreamWriter::SendInitialMetadata().
  void SendInitialMetadata() { stream_.SendInitialMetadata(); }
  // After Read() returned false: OK if the client has sent all, else why it could not be read:
  // CANCELLED, DEADLINE_EXCEEDED, or INTERNAL for bytes that are not such a message.
  absl::Status status() const { return stream_.status(); }

 private:
  internal::ParsedStream& stream_;
};

// The messages of a server, as its handler writes them.
template <class Out>
class StreamWriter {
 public:
  explicit StreamWriter(internal::ParsedStream& stream) : stream_(stream) {}
  // Sends `message`; waits while the client does not read. False: the client has gone, see
  // status().
  bool Write(const Out& message) { return stream_.Write(message); }
  // Sends the initial metadata that the context has so far, now instead of with the first message.
  // Later additions are left out. For the thread that writes.
  void SendInitialMetadata() { stream_.SendInitialMetadata(); }
  absl::Status status() const { return stream_.status(); }

 private:
  internal::ParsedStream& stream_;
};

// Both at once.
template <class In, class Out>
class ServerStream {
 public:
  explicit ServerStream(internal::ParsedStream& stream) : stream_(stream) {}
  bool Read(In* message) { return stream_.Read(message); }
  bool Write(const Out& message) { return stream_.Write(message); }
  // As StreamWriter::SendInitialMetadata().
  void SendInitialMetadata() { stream_.SendInitialMetadata(); }
  absl::Status status() const { return stream_.status(); }

 private:
  internal::ParsedStream& stream_;
};

// Answers each message of the client with one: f(message, &reply) -> absl::Status. An error ends
// the stream with that status.
template <class In, class Out, class F>
absl::Status EachMessage(ServerStream<In, Out>& stream, F f) {
  In message;
  Out reply;
  while (stream.Read(&message)) {
    reply.Clear();
    if (absl::Status status = f(message, &reply); !status.ok()) return status;
    if (!stream.Write(reply)) break;
  }
  return stream.status();
}

// A client's end of a stream of both directions. Destroyed before Finish(), it cancels the call.
template <class Request, class Reply>
class ClientStream {
 public:
  explicit ClientStream(std::unique_ptr<internal::ClientStreamCall> call)
      : call_(std::move(call)), stream_(*call_) {}

  // Sends `request`; waits while the server does not read. False: the call has ended; Finish() says
  // why.
  bool Write(const Request& request) { return stream_.Write(request); }
  // Tells the server that no more requests come.
  void WritesDone() { call_->EndWrites(); }
  // Waits for the server's next message. False: there is none; Finish() says why.
  bool Read(Reply* reply) { return stream_.Read(reply); }
  // Ends the requests, skips what was not read, waits for the end and returns its status: the
  // server's own, or DEADLINE_EXCEEDED, CANCELLED, UNAVAILABLE, INTERNAL (a message was not a
  // Reply).
  absl::Status Finish() { return call_->Finish(); }
  // Ends the call at once.
  void Cancel() { call_->Cancel(); }
  // Waits for the initial metadata, which comes with the first message unless the server sends it
  // earlier. Empty if the call ends without. For the thread that reads.
  const Metadata& InitialMetadata() { return call_->InitialMetadata(); }
  // The metadata of the reply. REQUIRES: after Finish()
  const ReplyMetadata& metadata() const { return call_->metadata(); }

 private:
  std::unique_ptr<internal::ClientStreamCall> call_;
  internal::ParsedStream stream_;
};

// ... of a call with many requests and one reply.
template <class Request, class Reply>
class ClientWriter {
 public:
  explicit ClientWriter(std::unique_ptr<internal::ClientStreamCall> call)
      : call_(std::move(call)), stream_(*call_) {}
  bool Write(const Request& request) { return stream_.Write(request); }
  // Ends the requests and waits for the reply. Errors as ClientStream::Finish().
  absl::Status Finish(Reply* reply) { return internal::FinishWithReply(*call_, reply); }
  void Cancel() { call_->Cancel(); }
  const Metadata& InitialMetadata() { return call_->InitialMetadata(); }
  const ReplyMetadata& metadata() const { return call_->metadata(); }

 private:
  std::unique_ptr<internal::ClientStreamCall> call_;
  internal::ParsedStream stream_;
};

// ... of a call with one request and many replies.
template <class Reply>
class ClientReader {
 public:
  explicit ClientReader(std::unique_ptr<internal::ClientStreamCall> call)
      : call_(std::move(call)), stream_(*call_) {}
  bool Read(Reply* reply) { return stream_.Read(reply); }
  absl::Status Finish() { return call_->Finish(); }
  void Cancel() { call_->Cancel(); }
  const Metadata& InitialMetadata() { return call_->InitialMetadata(); }
  const ReplyMetadata& metadata() const { return call_->metadata(); }

 private:
  std::unique_ptr<internal::ClientStreamCall> call_;
  internal::ParsedStream stream_;
};

}  // namespace curtail
