// SPDX-License-Identifier: Apache-2.0
//
// log.h - a handler's lines of the process's log (base/log.h), with the trace of its request.
//
//   curtail::Log(ctx, curtail::Severity::kWarning, "the price is old", {{"sku", sku}});
//
//   cart: the price is old [4bf92f35]
//   {"time":"...","severity":"WARNING","service":"cart","instance":"...",
//    "message":"the price is old",
//    "trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7","sku":"a7"}
//
// The ids are there for requests whose caller sent a trace context, and for requests that this
// server chose to trace (trace_options.h). The span is the server's own, where it makes one. The
// text has the first 8 digits of the trace. Any thread that may use `ctx`.
//
// Code: call/log.cc.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "curtail/base/log.h"
#include "curtail/rpc/context.h"

namespace curtail {

// The names of fields are none of those above.
void Log(const Context& ctx, Severity severity, std::string_view message,
         std::initializer_list<LogField> fields = {});

// The ids, in hexadecimal, of the trace and of the span that `ctx` is in; empty where there are
// none.
struct TraceIds {
  std::string trace;
  std::string span;
};
TraceIds TraceIdsOf(const Context& ctx);

}  // namespace curtail
