// SPDX-License-Identifier: Apache-2.0
//
// service.h - the content of a server: sets of named handlers over serialized messages.
//
// protoc-gen-curtail writes a subclass with one typed virtual function a method. Write one by hand
// only for protocols that are not protobuf.
//
// Code: call/service.cc.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/rpc/co.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/responder.h"
#include "curtail/rpc/stream.h"

namespace google::protobuf {
class MessageLite;
}

namespace curtail {

// Runs one request: `request` is the serialized message, `reply` receives the serialized answer.
// CANCELLED from a handler whose deadline has passed, but whose caller has not cancelled, reaches
// the caller as DEADLINE_EXCEEDED. That holds for handlers of every form.
using Handler = std::function<absl::Status(Context& ctx, std::string_view request, std::string* reply)>;

// Begins one request and returns; the answer goes to `responder`, from any thread (muTune, section
// 3: ProcessRequest). `ctx` and `request` live until the answer.
using ContinuationHandler = std::function<void(Context& ctx, std::string_view request, Responder responder)>;

// The messages of one call of a coroutine handler.
struct Exchange {
  const google::protobuf::MessageLite* request = nullptr;  // null: the client streams
  google::protobuf::MessageLite* reply = nullptr;          // null: client or server streams
  internal::MessageStream* stream = nullptr;               // null: a unary call
};
// Runs one call of a coroutine handler. `ctx` and the messages outlive the coroutine.
using CoroutineHandler = std::function<Coroutine(Context& ctx, Exchange messages)>;

namespace internal {

struct MessageTypes;

// A handler over messages as they are, for callers in the same process. `request` and `reply` are
// of the types that `accepts` has seen.
struct TypedHandler {
  using Message = google::protobuf::MessageLite;
  // True for the messages of the method: a program may have others of the same shape for
  // its path.
  bool (*accepts)(const Message& request, const Message& reply) = nullptr;
  // Runs the request. Empty: not under synchronous and fiber models.
  std::function<absl::Status(Context& ctx, const Message& request, Message* reply)> run;
  // Begins the request; done(arg, status) is called once, perhaps before it returns. `ctx`,
  // `request` and `reply` live until then. Empty: asynchronous models use `run`.
  std::function<void(Context& ctx, const Message& request, Message* reply, void (*done)(void*, absl::Status),
                     void* arg)>
      start;
};

template <class Request, class Reply>
bool AcceptsTypes(const google::protobuf::MessageLite& request, const google::protobuf::MessageLite& reply) {
  return dynamic_cast<const Request*>(&request) != nullptr && dynamic_cast<const Reply*>(&reply) != nullptr;
}

}  // namespace internal

// Runs a call of many messages, in straight lines, under any model. What it returns ends the call,
// behind the messages that it has written.
using StreamHandler = std::function<absl::Status(Context& ctx, internal::MessageStream& stream)>;
// Begins such a call and returns; done(arg, status) is called once, perhaps before that. Both
// `ctx` and `stream` live until then.
using StreamStarter = std::function<void(Context& ctx, internal::MessageStream& stream,
                                         void (*done)(void*, absl::Status), void* arg)>;

struct MethodHandler {
  // The number of messages of a call: one each way, or any.
  enum class Kind { kUnary, kStream };

  std::string name;  // "Query"
  Kind kind = Kind::kUnary;
  // Runs under the synchronous and fiber models. Empty: the method is not for them.
  Handler handler;
  // Runs under the asynchronous models; unary methods only. Empty: the method is not for them,
  // unless ...
  ContinuationHandler continuation = nullptr;
  // ... `handler` never waits for other services.
  bool never_waits = false;
  // Of a kStream.
  StreamHandler stream = nullptr;
  // ... and under the asynchronous models, if it holds no thread there. Empty: they run `stream`.
  StreamStarter start_stream = nullptr;
  // ... which begins when the request, of one message, has come whole.
  bool one_request = false;
  // The same for callers in this process; without it they serialize.
  internal::TypedHandler typed = {};
  // The coroutine that all forms above run, for Surround() (coroutine.h). Empty: a handler of
  // another kind.
  CoroutineHandler coroutine = nullptr;
  // The types of its messages if the client sends exactly one. Static.
  const internal::MessageTypes* types = nullptr;
};

// A PathCall is one thing that a method may wait for: a service by a stub of it or by its full
// name, "package.Service"; a store by any name.
struct PathCall {
  template <class Stub>
    requires requires { Stub::kServiceName; }
  PathCall(const Stub&) : name(Stub::kServiceName) {}
  template <class Name>
    requires std::convertible_to<const Name&, std::string_view>
  PathCall(const Name& n) : name(std::string_view(n)) {}

  std::string name;
};

// A DeclaredPath has all that a method may call. A method that calls nothing is served first.
struct DeclaredPath {
  std::string method;  // "Query"
  std::vector<PathCall> calls;
};

// A Service is a named set of handlers. Handlers run on many threads at once; the service guards
// its own state.
class Service {
 public:
  virtual ~Service() = default;
  // Full name, "package.Service".
  virtual std::string_view FullName() const = 0;
  // The server calls it once, when it starts. Handlers may refer to this service, which lives as
  // long as the server.
  virtual std::vector<MethodHandler> Handlers() = 0;
  // For ServerOptions::fence: the calls of its methods. The server learns the calls of methods that
  // are not named.
  virtual std::vector<DeclaredPath> Paths() const { return {}; }
};

namespace internal {

// INTERNAL if `bytes` are not a message of that type, as gRPC's status code page prescribes;
// RESOURCE_EXHAUSTED if it takes more memory than the server has left.
absl::Status ParseRequest(Context& ctx, std::string_view bytes, google::protobuf::MessageLite* request);
absl::Status SerializeReply(const google::protobuf::MessageLite& reply, std::string* bytes);

// The messages of a request while its handler runs; reused with their memory. The wrappers below
// know no types: else a service of many methods takes seconds to compile.
struct AnyMessages {
  // Notes the size of the messages.
  void Saw(size_t serialized) { bytes = std::max(bytes, serialized); }

  google::protobuf::MessageLite* const request;
  google::protobuf::MessageLite* const reply;
  size_t bytes = 0;
};

template <class Request, class Reply>
struct Messages final : AnyMessages {
  Messages() : AnyMessages{&own_request, &own_reply} {}
  bool Recycle() {
    if (bytes > kKeptBytes) return false;
    own_reply.Clear();  // ParseRequest() clears the other
    return true;
  }

  Request own_request;
  Reply own_reply;
};

// How messages of two types are checked, taken and given back.
struct MessageTypes {
  struct Return {
    const MessageTypes* types;
    void operator()(AnyMessages* messages) const { types->give(messages); }
  };
  // Gives the messages back at the end.
  using Lease = std::unique_ptr<AnyMessages, Return>;
  Lease Borrow() const { return Lease(take(), Return{this}); }

  bool (*accepts)(const google::protobuf::MessageLite& request, const google::protobuf::MessageLite& reply);
  AnyMessages* (*take)();
  void (*give)(AnyMessages*);
};

template <class Request, class Reply>
inline constexpr MessageTypes kMessageTypes = {
    .accepts = &AcceptsTypes<Request, Reply>,
    .take = []() -> AnyMessages* { return Recycler<Messages<Request, Reply>>::Take(); },
    .give =
        [](AnyMessages* messages) {
          Recycler<Messages<Request, Reply>>::Give(static_cast<Messages<Request, Reply>*>(messages));
        }};

// A straight-line handler over messages of the types that it expects.
using AnyHandler = std::function<absl::Status(Context& ctx, const google::protobuf::MessageLite& request,
                                              google::protobuf::MessageLite* reply)>;
template <class Request, class Reply, class F>
AnyHandler AnyHandlerOf(F method) {
  return [method = std::move(method)](Context& ctx, const google::protobuf::MessageLite& request,
                                      google::protobuf::MessageLite* reply) -> absl::Status {
    return method(ctx, static_cast<const Request&>(request), static_cast<Reply*>(reply));
  };
}

// `types` is static.
Handler UnaryHandlerOf(const MessageTypes& types, AnyHandler method);
MethodHandler StraightLineMethodOf(std::string_view name, bool never_waits, const MessageTypes& types,
                                   AnyHandler method);

// The handler of a method, called as method(ctx, const Request&, Reply*) -> absl::Status.
template <class Request, class Reply, class F>
Handler UnaryHandler(F method) {
  return UnaryHandlerOf(kMessageTypes<Request, Reply>, AnyHandlerOf<Request, Reply>(std::move(method)));
}

// The same for generated code.
template <class Request, class Reply, class F>
MethodHandler StraightLineMethod(std::string_view name, bool never_waits, F method) {
  return StraightLineMethodOf(name, never_waits, kMessageTypes<Request, Reply>,
                              AnyHandlerOf<Request, Reply>(std::move(method)));
}

// For generated code: UNIMPLEMENTED. `method` is its full name.
absl::Status NotImplemented(std::string_view method);

// For generated code: the handlers of methods in which the server, the client, or both stream.
MethodHandler StreamMethod(std::string name, StreamHandler run);
// Reads the one message of a call. Errors: UNIMPLEMENTED when it carries none, or more.
absl::Status ReadOneRequest(MessageStream& stream, google::protobuf::MessageLite* request);
absl::Status CheckOneRequest(MessageStream& stream, bool one, std::string_view bytes,
                             google::protobuf::MessageLite* request);

template <class Request, class Reply, class F>
MethodHandler ServerStreamingMethod(std::string name, F method) {
  MethodHandler handler =
      StreamMethod(std::move(name), [method](Context& ctx, MessageStream& stream) -> absl::Status {
        Request request;
        if (absl::Status status = ReadOneRequest(stream, &request); !status.ok()) return status;
        ParsedStream parsed(stream);
        StreamWriter<Reply> writer(parsed);
        return method(ctx, std::as_const(request), writer);
      });
  handler.one_request = true;
  return handler;
}

template <class Request, class Reply, class F>
MethodHandler ClientStreamingMethod(std::string name, F method) {
  return StreamMethod(std::move(name), [method](Context& ctx, MessageStream& stream) -> absl::Status {
    ParsedStream parsed(stream);
    StreamReader<Request> reader(parsed);
    Reply reply;
    absl::Status status = method(ctx, reader, &reply);
    if (status.ok()) parsed.Write(reply);
    return status;
  });
}

template <class Request, class Reply, class F>
MethodHandler BidirectionalMethod(std::string name, F method) {
  return StreamMethod(std::move(name), [method](Context& ctx, MessageStream& stream) -> absl::Status {
    ParsedStream parsed(stream);
    ServerStream<Request, Reply> both(parsed);
    return method(ctx, both);
  });
}

}  // namespace internal
}  // namespace curtail
