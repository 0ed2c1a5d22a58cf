// SPDX-License-Identifier: Apache-2.0
//
// server_metrics.h - the activity of a server as metrics. docs/observe.md lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "curtail/observe/http_admin.h"
#include "curtail/observe/metrics/metrics_calls.h"
#include "curtail/observe/metrics/metrics_text.h"
#include "curtail/observe/metrics_edges.h"
#include "curtail/observe/trace/tracer.h"
#include "curtail/rpc/call_observer.h"
#include "curtail/rpc/server_stats.h"

namespace curtail::internal {

class MethodTable;

// A CallMetrics counts the calls of a server's methods, and those that their handlers make. The methods outlive it.
// Thread-safe.
class CallMetrics final : public CallObserver {
 public:
  explicit CallMetrics(MethodTable& methods);

  // CallObserver.
  uint32_t Wants() const override { return kCallReplied | kChildAnswered; }
  void Replied(const CallRecord& record, uint64_t) override {
    calls_.Count(record.method, record.replied - record.arrived, static_cast<int>(record.code));
  }

  void ChildAnswered(const CallRecord&, const ChildCall& child, uint64_t) override {
    edges_.Count(child.target, child.path, child.answered - child.called, static_cast<int>(child.code),
                 child.retries, child.hedges);
  }

  // `tracer` shows which calls were traced; it may be null.
  void WriteTo(observe::MetricsText& text, const observe::Tracer* tracer) const;

 private:
  // One of the server's methods; the service is empty if its calls are not counted: streams last as their clients want.
  struct Method {
    std::string_view service, name;
  };

  void WriteEdgesTo(observe::MetricsText& text) const;

  // By the methods' indices.
  const std::vector<Method> methods_;
  observe::MetricsCalls calls_;
  observe::MetricsEdges edges_;
};

// All metrics: of the calls, of the server, of its traces unless `tracer` is null, of the process and of the port that
// shows them.
std::string ServerMetrics(const ServerStats& stats, const CallMetrics& calls, const observe::Tracer* tracer,
                          const observe::HttpAdminStats& port, observe::MetricsFormat format);

}  // namespace curtail::internal
