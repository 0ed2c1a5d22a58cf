// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/coroutine.h"

#include <string>
#include <string_view>

#include "curtail/exec/internal/recycler.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/wait.h"
#include "curtail/rpc/async_stream.h"
#include "curtail/rpc/call/outcome.h"

namespace curtail {
namespace internal {
namespace {

// A request of an asynchronous model, until its answer.
struct Answering : InBlock {
  Answering(std::string_view h, MessageTypes::Lease m, Responder r)
      : handler(h), messages(std::move(m)), responder(std::move(r)) {}
  const std::string_view handler;
  MessageTypes::Lease messages;
  Responder responder;
  std::optional<Coroutine> coroutine;
  static void Done(void* arg) {
    const std::unique_ptr<Answering> self(static_cast<Answering*>(arg));
    std::string* const out = self->responder.reply();
    absl::Status status = Guarded(self->handler, [&] { return self->coroutine->Take(); });
    if (status.ok()) status = SerializeReply(*self->messages->reply, out);
    self->messages->Saw(out->size());
    self->coroutine.reset();
    self->responder.Finish(std::move(status));
  }
};

// A call of a caller in this process, until its end.
struct Calling : InBlock {
  Calling(std::string_view h, Coroutine c, void (*d)(void*, absl::Status), void* a)
      : handler(h), coroutine(std::move(c)), done(d), arg(a) {}
  const std::string_view handler;
  Coroutine coroutine;
  void (*const done)(void*, absl::Status);
  void* const arg;
  static void Ended(void* self) {
    std::unique_ptr<Calling> call(static_cast<Calling*>(self));
    const auto tell = call->done;
    void* const to = call->arg;
    absl::Status status = Guarded(call->handler, [&] { return call->coroutine.Take(); });
    call.reset();
    tell(to, std::move(status));
  }
};

}  // namespace

MethodHandler CoroutineMethodOf(std::string_view name, const MessageTypes& types, CoroutineHandler method) {
  using Message = google::protobuf::MessageLite;
  MethodHandler handler;
  handler.name = name;
  handler.coroutine = method;
  handler.types = &types;
  handler.typed.accepts = types.accepts;
  handler.typed.run = [method](Context& ctx, const Message& request, Message* reply) {
    return RunToEnd(method(ctx, {.request = &request, .reply = reply}));
  };
  handler.typed.start = [method, name = std::string(name)](Context& ctx, const Message& request,
                                                           Message* reply, void (*done)(void*, absl::Status),
                                                           void* arg) {
    auto* const call = new Calling(name, method(ctx, {.request = &request, .reply = reply}), done, arg);
    call->coroutine.Start(&Calling::Ended, call);
  };
  handler.handler = UnaryHandlerOf(types, handler.typed.run);
  handler.continuation = [&types, method = std::move(method), name = std::string(name)](
                             Context& ctx, std::string_view bytes, Responder responder) {
    auto answering = std::make_unique<Answering>(name, types.Borrow(), std::move(responder));
    AnyMessages& messages = *answering->messages;
    messages.Saw(bytes.size());
    if (absl::Status parsed = ParseRequest(ctx, bytes, messages.request); !parsed.ok()) {
      return answering->responder.Finish(std::move(parsed));
    }
    answering->coroutine.emplace(method(ctx, {.request = messages.request, .reply = messages.reply}));
    Answering* const raw = answering.release();
    raw->coroutine->Start(&Answering::Done, raw);
  };
  return handler;
}

Coroutine NotImplementedCoroutine(std::string_view method) { co_return NotImplemented(method); }

absl::Status RunToEnd(Coroutine co) {
  static constexpr uint32_t kEnded = Parker::Signal(0);
  Parker parker;
  co.Start([](void* arg) { static_cast<Parker*>(arg)->Notify(kEnded); }, &parker);
  // Ends at once, unless the handler awaits something of its own.
  uint32_t ticket = parker.Ticket();
  if ((ticket & kEnded) == 0) FlushBeforeWait();
  for (; (ticket & kEnded) == 0; ticket = parker.Ticket()) parker.Wait(ticket, Deadline::Infinite());
  return co.Take();
}

}  // namespace internal

MethodHandler Surround(const MethodHandler& method, Around around) {
  CoroutineHandler both = [around = std::move(around), handler = method.coroutine](
                              Context& ctx, Exchange messages) { return around(ctx, messages, handler); };
  if (method.kind == MethodHandler::Kind::kUnary)
    return internal::CoroutineMethodOf(method.name, *method.types, std::move(both));
  return internal::AsyncStreamMethod(method.name, std::move(both), method.types);
}

}  // namespace curtail
