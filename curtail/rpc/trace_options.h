// SPDX-License-Identifier: Apache-2.0
//
// trace_options.h - which calls of a server become spans, and where the spans go.
//
// Code: server/observe/call_tracer.cc.
#pragma once

#include <string>

#include "curtail/base/clock.h"

namespace curtail {

struct TraceOptions {
  // "zipkin=http://HOST:PORT" and "otlp=http://HOST:PORT" send them to a collector, "memory" keeps
  // the latest for the page /traces of the HTTP admin port. Empty: no traces.
  std::string to;
  // The share of requests that are chosen when they arrive. A request of a trace that its caller
  // has chosen, or has not, follows the caller.
  double sample = 0.001;
  // Other calls that take longer, or that fail, become spans, too. Zero: calls that take longer
  // than the p99.9 of their method's last 10,000 calls.
  Nanos slow{0};
  // The name of this service in spans; empty: the first service of the server.
  std::string service;
};

}  // namespace curtail
