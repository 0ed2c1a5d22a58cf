// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The waits of coroutines on streams are steps, whose protocol is at the top of stream_end.cc. A message is
// serialized before its step begins and parsed after it has ended, both by the coroutine.
#include "curtail/rpc/async_stream.h"

#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/coroutine.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {

using google::protobuf::MessageLite;

ReadAwaiter::ReadAwaiter(ParsedStream& stream, MessageLite* message)
    : StepAwaiter(stream.bytes(), StreamStep::Kind::kRead, stream.in()), parsed_(stream), message_(message) {}

bool ReadAwaiter::await_resume() const { return StepAwaiter::await_resume() && parsed_.Parse(message_); }

WriteAwaiter::WriteAwaiter(ParsedStream& stream, const MessageLite& message)
    : StepAwaiter(stream.bytes(), StreamStep::Kind::kWrite, stream.out()),
      parsed_(stream),
      message_(message) {}

// A message that cannot be serialized ends the stream: there is no step, whose result is false then.
bool WriteAwaiter::await_ready() { return !parsed_.Serialize(message_); }

Coroutine AsyncFinish(ClientStreamCall& call) {
  call.BeginFinish();
  co_await StepAwaiter(call, StreamStep::Kind::kEnd);
  call.CutShort();
  co_await StepAwaiter(call, StreamStep::Kind::kGone);
  co_return call.EndFinish();
}

Coroutine AsyncFinishWithReply(ClientStreamCall& call, MessageLite* reply) {
  call.EndWrites();
  ParsedStream stream(call);
  std::string second;
  const bool one = co_await ReadAwaiter(stream, reply);
  const bool more = one && co_await StepAwaiter(call, StreamStep::Kind::kRead, &second);
  absl::Status status = co_await AsyncFinish(call);
  co_return CheckOneReply(std::move(status), one && !more);
}

Coroutine AsyncReadOneRequest(MessageStream& stream, MessageLite* request) {
  std::string bytes, more;
  const bool one = co_await StepAwaiter(stream, StreamStep::Kind::kRead, &bytes);
  const bool second = one && co_await StepAwaiter(stream, StreamStep::Kind::kRead, &more);
  co_return CheckOneRequest(stream, one && !second, bytes, request);
}

namespace {

// A coroutine handler under an asynchronous model.
struct StartedBody {
  StartedBody(std::string_view h, Coroutine c, void (*d)(void*, absl::Status), void* a)
      : handler(h), coroutine(std::move(c)), done(d), arg(a) {}

  static void Ended(void* self) {
    std::unique_ptr<StartedBody> body(static_cast<StartedBody*>(self));
    const auto tell = body->done;
    void* const to = body->arg;
    absl::Status status = Guarded(body->handler, [&] { return body->coroutine.Take(); });
    body.reset();
    tell(to, std::move(status));
  }

  const std::string_view handler;
  Coroutine coroutine;
  void (*const done)(void*, absl::Status);
  void* const arg;
};

// Reads the request, then runs `body`.
Coroutine RunWithRequest(const CoroutineHandler& body, const MessageTypes& types, Context& ctx,
                         MessageStream& stream) {
  const MessageTypes::Lease messages = types.Borrow();
  absl::Status status = co_await AsyncReadOneRequest(stream, messages->request);
  messages->Saw(messages->request->ByteSizeLong());
  if (!status.ok()) co_return status;
  co_return co_await body(ctx, {.request = messages->request, .stream = &stream});
}

}  // namespace

MethodHandler AsyncStreamMethod(std::string name, CoroutineHandler body, const MessageTypes* types) {
  const auto begin = [body, types](Context& ctx, MessageStream& stream) {
    return types != nullptr ? RunWithRequest(body, *types, ctx, stream) : body(ctx, {.stream = &stream});
  };
  MethodHandler handler = StreamMethod(
      name, [begin](Context& ctx, MessageStream& stream) { return RunToEnd(begin(ctx, stream)); });
  handler.start_stream = [begin, name = std::move(name)](Context& ctx, MessageStream& stream,
                                                         void (*done)(void*, absl::Status), void* arg) {
    auto* const started = new StartedBody(name, begin(ctx, stream), done, arg);
    started->coroutine.Start(&StartedBody::Ended, started);
  };
  handler.one_request = types != nullptr;
  handler.coroutine = std::move(body);
  handler.types = types;
  return handler;
}

}  // namespace curtail::internal
