// SPDX-License-Identifier: Apache-2.0
//
// async_stream.h - calls of many messages in coroutine handlers.
//
//   curtail::Coroutine Chat(curtail::Context& ctx,
//                           curtail::AsyncServerStream<Note, Note>& stream) override {
//     auto leaf = leaf_.Chat(ctx, curtail::kAsync);
//     for (Note note; co_await stream.Read(&note);) {
//       if (!co_await leaf.Write(note) || !co_await leaf.Read(&note)) break;
//       co_await stream.Write(note);
//     }
//     co_return co_await leaf.Finish();
//   }
//
// The operations are stream.h's, to be awaited: each gives what the straight-line one
// returns, with the same errors, limits and order of messages. Under the synchronous and fiber
// models co_await waits as the straight-line operation does. Under the asynchronous models a
// coroutine that waits for a message, or for a peer that does not read, holds no thread. A thread
// of the response pool resumes it. The deadline and the cancellation of the context end each wait.
//
// The message of an operation lives until that has been awaited. An operation begins when it is
// awaited; one that is not awaited does nothing.
//
// Thread safety: a stream belongs to the coroutines of its request, of which one runs at a time.
//
// Code: stream/async_stream.cc, stream/parsed_stream.cc.
#pragma once

#include <coroutine>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "curtail/rpc/co.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/service.h"
#include "curtail/rpc/stream.h"

namespace curtail {
namespace internal {

// The wish of a stream's user. A coroutine's lies in its awaiter.
struct StreamStep {
  enum class Kind : uint8_t {
    kRead,
    kWrite,
    kHead,  // client: until the initial metadata has come, or never will
    kEnd,   // client: until the call has ended, or was cut short
    kGone,  // client: until nothing refers to the call
  };
  Kind kind;
  std::string* message = nullptr;  // of kRead and kWrite, which moves it away
  bool ok = false;                 // the result of those
  uint8_t owed = 0;                // the stream's own
  std::coroutine_handle<> coroutine = {};
};

class StepAwaiter {
 public:
  StepAwaiter(MessageStream& stream, StreamStep::Kind kind, std::string* message = nullptr)
      : stream_(stream), step_{.kind = kind, .message = message} {}
  bool await_ready() const { return false; }
  bool await_suspend(std::coroutine_handle<> self) {
    step_.coroutine = self;
    return stream_.Await(step_);
  }
  bool await_resume() const { return step_.ok; }

 private:
  MessageStream& stream_;
  StreamStep step_;
};

class ReadAwaiter : public StepAwaiter {
 public:
  ReadAwaiter(ParsedStream& stream, google::protobuf::MessageLite* message);
  bool await_resume() const;

 private:
  ParsedStream& parsed_;
  google::protobuf::MessageLite* const message_;
};

class WriteAwaiter : public StepAwaiter {
 public:
  WriteAwaiter(ParsedStream& stream, const google::protobuf::MessageLite& message);
  bool await_ready();

 private:
  ParsedStream& parsed_;
  const google::protobuf::MessageLite& message_;
};

class HeadAwaiter : public StepAwaiter {
 public:
  explicit HeadAwaiter(ClientStreamCall& call) : StepAwaiter(call, StreamStep::Kind::kHead), call_(call) {}
  const Metadata& await_resume() const { return call_.Head(); }

 private:
  ClientStreamCall& call_;
};

// As ClientStreamCall::Finish() and FinishWithReply().
Coroutine AsyncFinish(ClientStreamCall& call);
Coroutine AsyncFinishWithReply(ClientStreamCall& call, google::protobuf::MessageLite* reply);

// As OpenStream(), for a coroutine.
std::unique_ptr<ClientStreamCall> OpenAsyncStream(Context& ctx, Channel& channel, std::string_view path);
std::unique_ptr<ClientStreamCall> OpenAsyncStream(Context& ctx, Channel& channel, std::string_view path,
                                                  const google::protobuf::MessageLite& request);

// Returns a handler that runs `body` under all models. With `types` the client sends one message,
// and the handler reads it before `body` starts.
MethodHandler AsyncStreamMethod(std::string name, CoroutineHandler body, const MessageTypes* types = nullptr);
// Reads the one message of a call. Errors as ReadOneRequest().
Coroutine AsyncReadOneRequest(MessageStream& stream, google::protobuf::MessageLite* request);

}  // namespace internal

// As StreamReader.
template <class In>
class AsyncStreamReader {
 public:
  explicit AsyncStreamReader(internal::ParsedStream& stream) : stream_(stream) {}
  internal::ReadAwaiter Read(In* message) { return {stream_, message}; }
  void SendInitialMetadata() { stream_.SendInitialMetadata(); }
  absl::Status status() const { return stream_.status(); }

 private:
  internal::ParsedStream& stream_;
};

// As StreamWriter.
template <class Out>
class AsyncStreamWriter {
 public:
  explicit AsyncStreamWriter(internal::ParsedStream& stream) : stream_(stream) {}
  internal::WriteAwaiter Write(const Out& message) { return {stream_, message}; }
  void SendInitialMetadata() { stream_.SendInitialMetadata(); }
  absl::Status status() const { return stream_.status(); }

 private:
  internal::ParsedStream& stream_;
};

// As ServerStream.
template <class In, class Out>
class AsyncServerStream {
 public:
  explicit AsyncServerStream(internal::ParsedStream& stream) : stream_(stream) {}
  internal::ReadAwaiter Read(In* message) { return {stream_, message}; }
  internal::WriteAwaiter Write(const Out& message) { return {stream_, message}; }
  void SendInitialMetadata() { stream_.SendInitialMetadata(); }
  absl::Status status() const { return stream_.status(); }

 private:
  internal::ParsedStream& stream_;
};

// As ClientStream: `co_await stream.Finish()` gives the status of the call.
template <class Request, class Reply>
class AsyncClientStream {
 public:
  explicit AsyncClientStream(std::unique_ptr<internal::ClientStreamCall> call)
      : call_(std::move(call)), stream_(*call_) {}
  internal::WriteAwaiter Write(const Request& request) { return {stream_, request}; }
  void WritesDone() { call_->EndWrites(); }
  internal::ReadAwaiter Read(Reply* reply) { return {stream_, reply}; }
  Coroutine Finish() { return internal::AsyncFinish(*call_); }
  void Cancel() { call_->Cancel(); }
  internal::HeadAwaiter InitialMetadata() { return internal::HeadAwaiter(*call_); }
  const ReplyMetadata& metadata() const { return call_->metadata(); }

 private:
  std::unique_ptr<internal::ClientStreamCall> call_;
  internal::ParsedStream stream_;
};

// As ClientWriter.
template <class Request, class Reply>
class AsyncClientWriter {
 public:
  explicit AsyncClientWriter(std::unique_ptr<internal::ClientStreamCall> call)
      : call_(std::move(call)), stream_(*call_) {}
  internal::WriteAwaiter Write(const Request& request) { return {stream_, request}; }
  Coroutine Finish(Reply* reply) { return internal::AsyncFinishWithReply(*call_, reply); }
  void Cancel() { call_->Cancel(); }
  internal::HeadAwaiter InitialMetadata() { return internal::HeadAwaiter(*call_); }
  const ReplyMetadata& metadata() const { return call_->metadata(); }

 private:
  std::unique_ptr<internal::ClientStreamCall> call_;
  internal::ParsedStream stream_;
};

// As ClientReader.
template <class Reply>
class AsyncClientReader {
 public:
  explicit AsyncClientReader(std::unique_ptr<internal::ClientStreamCall> call)
      : call_(std::move(call)), stream_(*call_) {}
  internal::ReadAwaiter Read(Reply* reply) { return {stream_, reply}; }
  Coroutine Finish() { return internal::AsyncFinish(*call_); }
  void Cancel() { call_->Cancel(); }
  internal::HeadAwaiter InitialMetadata() { return internal::HeadAwaiter(*call_); }
  const ReplyMetadata& metadata() const { return call_->metadata(); }

 private:
  std::unique_ptr<internal::ClientStreamCall> call_;
  internal::ParsedStream stream_;
};

namespace internal {

// For generated code: coroutine handlers of methods in which the server, the client, or both
// stream.
template <class Request, class Reply, class F>
MethodHandler AsyncServerStreamingMethod(std::string name, F method) {
  return AsyncStreamMethod(
      std::move(name),
      [method](Context& ctx, Exchange messages) -> Coroutine {
        ParsedStream parsed(*messages.stream);
        AsyncStreamWriter<Reply> writer(parsed);
        co_return co_await method(ctx, static_cast<const Request&>(*messages.request), writer);
      },
      &kMessageTypes<Request, Reply>);
}

template <class Request, class Reply, class F>
MethodHandler AsyncClientStreamingMethod(std::string name, F method) {
  return AsyncStreamMethod(std::move(name), [method](Context& ctx, Exchange messages) -> Coroutine {
    ParsedStream parsed(*messages.stream);
    AsyncStreamReader<Request> reader(parsed);
    Reply reply;
    absl::Status status = co_await method(ctx, reader, &reply);
    if (status.ok()) co_await WriteAwaiter(parsed, reply);
    co_return status;
  });
}

template <class Request, class Reply, class F>
MethodHandler AsyncBidirectionalMethod(std::string name, F method) {
  return AsyncStreamMethod(std::move(name), [method](Context& ctx, Exchange messages) -> Coroutine {
    ParsedStream parsed(*messages.stream);
    AsyncServerStream<Request, Reply> both(parsed);
    co_return co_await method(ctx, both);
  });
}

}  // namespace internal
}  // namespace curtail
