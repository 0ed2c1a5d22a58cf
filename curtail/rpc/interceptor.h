// SPDX-License-Identifier: Apache-2.0
//
// interceptor.h - code of the program's own around each call: authentication, request logs, tokens.
//
// An interceptor decides: it may refuse a call, change its metadata, and add to its reply's. It
// stands directly before the handler, or before the channel. A CallObserver (call_observer.h) only
// looks: it hears of arrival, queueing and child calls as well, and of calls that never reach a
// handler. Metrics and spans are observers; what a call must pass is an interceptor.
//
// Interceptors run in the order of their list before the call, and in the opposite order after it.
// They work under all threading models, for calls of one message and of many, over connections and
// within the process. A call costs a branch while there are none.
//
// Thread safety: Before() and After() are called by any thread, for many calls at once. They must
// not throw, nor block: a thread that serves other calls waits meanwhile. An interceptor outlives
// the servers, services and channels that name it.
//
// Code: call/incoming_interception.cc, client/connection/outgoing_interception.cc.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/context.h"
#include "curtail/wire/metadata.h"

namespace curtail {

// A call that is about to reach its handler.
struct IncomingCall {
  std::string_view path;  // "/package.Service/Method"
  // Its metadata, deadline, peer and certificate. Before() may change mutable_metadata(), add
  // properties() for the handler, and add metadata to the reply.
  Context& context;
  TimePoint began;  // when the first interceptor saw it
};

// A ServerInterceptor stands before the handlers of a server: ServerOptions::interceptors. Calls
// that never begin (a full queue, a deadline that has passed) do not reach it, nor do health checks
// that the library answers.
class ServerInterceptor {
 public:
  virtual ~ServerInterceptor() = default;
  // Once a call, on the thread that runs its handler next. An error is the answer: neither later
  // interceptors nor the handler see the call.
  virtual absl::Status Before(const IncomingCall& call) = 0;
  // Once for each call that Before() has let pass, with the status that the client gets, or
  // CANCELLED. `took` counts from IncomingCall::began. Changes of the context have no effect.
  virtual void After(const IncomingCall& /*call*/, const absl::Status& /*status*/, Nanos /*took*/) {}
};

// A call that is about to leave.
struct OutgoingCall {
  std::string_view path;    // "/package.Service/Method"
  std::string_view target;  // of the channel
  // Only the two ends can read the call: TLS with a verified certificate, a Unix socket, or a call
  // within the process.
  bool secure = false;
  TimePoint began;  // when the first interceptor saw it
};

// A ClientInterceptor stands before a channel: ChannelOptions::interceptors. A call that is
// cancelled or late before it begins does not reach it.
class ClientInterceptor {
 public:
  virtual ~ClientInterceptor() = default;
  // On the thread that calls. Adds to the metadata that the call carries. Comes again for each
  // further attempt at a call. An error is the call's status, and nothing is sent.
  virtual absl::Status Before(const OutgoingCall& call, Metadata& metadata) = 0;
  // Once for each call that Before() has let pass, with its final status. `took` counts from
  // OutgoingCall::began.
  virtual void After(const OutgoingCall& /*call*/, const absl::Status& /*status*/, Nanos /*took*/) {}
};

}  // namespace curtail
