// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: everything is read when Prometheus asks. Labels have names of methods, classes and limits that this process was
// built or started with, and no byte of a peer: the number of series is bounded.
#include "curtail/rpc/admin/server_metrics.h"

#include <array>

#include "absl/status/status.h"
#include "curtail/base/boundary.h"
#include "curtail/base/internal/connection_counts.h"
#include "curtail/observe/metrics/metrics_process.h"
#include "curtail/rpc/server/parts/method_table.h"

namespace curtail::internal {
namespace {

using observe::MetricsCalls;
using observe::MetricsEdges;
using observe::MetricsText;

constexpr std::array<std::string_view, MetricsCalls::kCodes> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

double Seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

// In seconds.
const std::array<double, MetricsCalls::kBoundsNs.size()>& CallBounds() {
  static const auto bounds = [] {
    std::array<double, MetricsCalls::kBoundsNs.size()> seconds;
    for (size_t i = 0; i < seconds.size(); ++i)
      seconds[i] = static_cast<double>(MetricsCalls::kBoundsNs[i]) / 1e9;
    return seconds;
  }();
  return bounds;
}

// Of the buckets of a method.
std::vector<observe::MetricExemplar> ExemplarsOf(const observe::BucketExemplars& buckets) {
  std::vector<observe::MetricExemplar> shown(buckets.size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (!buckets[i].valid()) continue;
    shown[i].trace.resize(32);
    observe::WriteHex(buckets[i].trace.high, shown[i].trace.data());
    observe::WriteHex(buckets[i].trace.low, shown[i].trace.data() + 16);
    shown[i].value = Seconds(buckets[i].duration);
    shown[i].unix_s = Seconds(buckets[i].since_epoch);
  }
  return shown;
}

void WriteGauge(MetricsText& text, std::string_view name, std::string_view help, double value) {
  text.Gauge(name, help);
  text.Sample({}, value);
}
void WriteGauge(MetricsText& text, std::string_view name, std::string_view help, uint64_t value) {
  text.Gauge(name, help);
  text.Sample({}, value);
}
void WriteCounter(MetricsText& text, std::string_view name, std::string_view help, uint64_t value) {
  text.Counter(name, help);
  text.Sample({}, value);
}

void WriteConfig(MetricsText& text, const ServerStats& stats) {
  text.Info("curtail_config_info", "The threading config in force, and the policy that chooses it");
  text.Sample(
      {{"config", stats.pools.config.ToString()}, {"policy", stats.policy ? stats.policy->policy : ""}},
      uint64_t{1});
  if (!stats.policy || !stats.policy->switches_by_itself) return;
  const PolicyStats& policy = *stats.policy;
  WriteCounter(text, "curtail_policy_switches_total", "Switches of config by the policy", policy.switches);
  WriteCounter(text, "curtail_policy_failures_total", "Switches that could not be carried out",
               policy.failures);
  WriteCounter(text, "curtail_policy_evaluations_total", "Times that the policy looked at the load",
               policy.evaluations);
  WriteCounter(text, "curtail_policy_arrivals_total", "Requests that the policy has seen", policy.arrivals);
  WriteGauge(text, "curtail_policy_rate_requests_per_second",
             "The estimate of the load by which the policy decides", policy.rate_per_s);
}

void WritePools(MetricsText& text, const ExecutorStats& pools) {
  text.Gauge("curtail_pool_threads", "Threads of each pool, by what they do");
  for (const ExecutorStats::Pool& pool : pools.pools) {
    const auto sample = [&](std::string_view state, int threads) {
      text.Sample({{"pool", pool.name}, {"state", state}}, static_cast<uint64_t>(threads < 0 ? 0 : threads));
    };
    sample("active", pool.active);
    sample("waiting", pool.waiting);
    sample("parked", pool.parked);
  }
  WriteGauge(text, "curtail_threads_spinning", "Threads that wait without sleeping",
             static_cast<uint64_t>(pools.spinning));
  WriteGauge(text, "curtail_threads_without_role", "Threads that the config in force does not use",
             static_cast<uint64_t>(pools.asleep));
  WriteGauge(text, "curtail_fibers", "Fibers that exist", uint64_t{pools.fibers});
  WriteGauge(text, "curtail_queue_requests", "Requests ready to run", uint64_t{pools.queued});
  WriteCounter(text, "curtail_queue_begun_total", "Requests taken from the queue", pools.begun);
  text.Counter("curtail_queue_wait_seconds_total", "Time that these had waited in the queue");
  text.Sample({}, Seconds(pools.queue_wait));
}

void WriteConnections(MetricsText& text, const ServerStats& stats) {
  WriteGauge(text, "curtail_server_connections", "Connections of clients", uint64_t{stats.connections});
  WriteGauge(text, "curtail_server_open_calls", "Calls begun by clients and not ended",
             uint64_t{stats.open_calls});
  WriteGauge(text, "curtail_server_held_bytes",
             "Memory held for clients: requests, unfinished messages, replies", uint64_t{stats.held_bytes});
  text.Counter("curtail_server_limits_reached_total", "Times that clients reached a limit of the server");
  for (const LimitCount& limit : stats.limits) text.Sample({{"limit", limit.name}}, limit.times);
  text.Counter("curtail_server_refusals_total",
               "Requests that overload control refused, and calls that it did not make");
  for (const RefusalCount& refusal : stats.refusals) text.Sample({{"reason", refusal.reason}}, refusal.times);
  if (stats.credits) {
    WriteGauge(text, "curtail_server_credits", "Requests that clients may have open together",
               uint64_t{stats.credits->total});
    WriteGauge(text, "curtail_server_credits_issued", "Credits of the connections together",
               static_cast<uint64_t>(stats.credits->issued));
  }
  text.Counter("curtail_server_held_up_total", "Times that a handler held a thread up that others needed");
  for (const HeldUpMethod& method : stats.held_up) text.Sample({{"path", method.path}}, method.times);
}

void WriteClientConnections(MetricsText& text) {
  const std::vector<ConnectionCounts::Row> rows = ConnectionCounts::OfProcess().Read();
  const auto each = [&](uint64_t ConnectionCounts::Row::* count) {
    for (const ConnectionCounts::Row& row : rows) text.Sample({{"server_address", row.target}}, row.*count);
  };
  text.Gauge("curtail_client_connections", "Connections of this process to other services");
  each(&ConnectionCounts::Row::open);
  text.Counter("curtail_client_connection_attempts_total", "Times that it began to connect");
  each(&ConnectionCounts::Row::attempts);
  text.Counter("curtail_client_connection_failures_total", "Attempts that failed, or were given up");
  each(&ConnectionCounts::Row::failures);
}

void WriteStores(MetricsText& text) {
  const std::vector<ConnectionCounts::Row> rows = ConnectionCounts::ToStores().Read();
  const auto each = [&](auto value) {
    for (const ConnectionCounts::Row& row : rows) {
      const size_t space = row.target.find(' ');
      const std::string_view kind = std::string_view(row.target).substr(0, space);
      const std::string_view address =
          space == row.target.npos ? kind : std::string_view(row.target).substr(space + 1);
      text.Sample({{"store", kind}, {"server_address", address}}, uint64_t{value(row)});
    }
  };
  if (rows.empty()) return;
  text.Gauge("curtail_store_up", "1 if the store answered the last request to it, 0 if it did not");
  each([](const auto& row) { return row.silent ? 0u : 1u; });
  text.Gauge("curtail_store_connections", "Connections of this process to the store");
  each([](const auto& row) { return row.open; });
  text.Counter("curtail_store_connection_attempts_total", "Times that it began to connect");
  each([](const auto& row) { return row.attempts; });
  text.Counter("curtail_store_connection_failures_total", "Attempts that failed, or were given up");
  each([](const auto& row) { return row.failures; });
  text.Counter("curtail_store_connections_lost_total",
               "Connections that ended while a request was under way");
  each([](const auto& row) { return row.lost; });
}

template <class Field>
void WriteClasses(const FenceStats& fences, MetricsText& text, Field FenceClassStats::* field) {
  for (const FenceClassStats& of : fences.classes) text.Sample({{"class", of.name}}, uint64_t{of.*field});
}

void WriteFences(MetricsText& text, const FenceStats& fences) {
  text.Info("curtail_fence_info", "The mode of the fences, and the limiter that their limits follow");
  text.Sample({{"mode", FenceModeName(fences.mode)}, {"limiter", fences.limiter}}, uint64_t{1});
  text.Gauge("curtail_fence_permits", "Permits of a path class; 0: it needs none");
  WriteClasses(fences, text, &FenceClassStats::limit);
  text.Gauge("curtail_fence_permits_in_use", "Permits held by requests");
  WriteClasses(fences, text, &FenceClassStats::in_use);
  text.Gauge("curtail_fence_waiting_requests", "Requests that wait for a permit");
  WriteClasses(fences, text, &FenceClassStats::waiting);
  text.Counter("curtail_fence_begun_total", "Requests that got a permit, or needed none");
  WriteClasses(fences, text, &FenceClassStats::begun);
  text.Counter("curtail_fence_queued_total", "Requests that had to wait for a permit");
  WriteClasses(fences, text, &FenceClassStats::queued);
  text.Counter("curtail_fence_refused_total", "Requests that found the queue of their class full");
  WriteClasses(fences, text, &FenceClassStats::refused);
  text.Counter("curtail_fence_borrowed_total", "Requests that began with a permit of another class");
  WriteClasses(fences, text, &FenceClassStats::borrowed);
  text.Counter("curtail_fence_shed_total", "Requests that waited too long in the queue of their class");
  WriteClasses(fences, text, &FenceClassStats::shed);
  text.Counter("curtail_fence_late_total", "Requests whose deadline passed before they could begin");
  WriteClasses(fences, text, &FenceClassStats::late);
  text.Counter("curtail_fence_no_credit_total", "Requests for which their client had no credit");
  WriteClasses(fences, text, &FenceClassStats::no_credit);
  text.Counter("curtail_fence_undeclared_calls_total",
               "Calls of a method to services that it had not declared");
  for (const UndeclaredCalls& calls : fences.undeclared) text.Sample({{"path", calls.method}}, calls.times);
}

void WriteTraces(MetricsText& text, const observe::TracerStats& stats) {
  WriteCounter(text, "curtail_trace_spans_total", "Calls that became spans", stats.spans);
  WriteCounter(text, "curtail_trace_delivered_total", "... that the collector took", stats.delivered);
  text.Counter("curtail_trace_dropped_total", "Spans that the collector did not get");
  text.Sample({{"reason", "full"}}, stats.full);
  text.Sample({{"reason", "backlog"}}, stats.backlog);
  text.Sample({{"reason", "refused"}}, stats.refused);
  text.Counter("curtail_trace_malformed_total", "Trace contexts of callers that were ignored");
  text.Sample({{"part", "context"}}, stats.bad_context);
  text.Sample({{"part", "state"}}, stats.bad_state);
}

void WriteProcess(MetricsText& text) {
  const observe::ProcessUsage usage = observe::ReadProcessUsage();
  text.Counter("process_cpu_seconds_total", "CPU time of the process, user and system");
  text.Sample({}, Seconds(usage.user_cpu + usage.system_cpu));
  WriteGauge(text, "process_resident_memory_bytes", "Memory of the process that is in the machine's",
             usage.resident_bytes);
  WriteGauge(text, "process_virtual_memory_bytes", "Addresses that the process has", usage.virtual_bytes);
  WriteGauge(text, "process_start_time_seconds", "When the process started, since 1970", usage.start_time_s);
  WriteGauge(text, "process_threads", "Threads of the process", static_cast<uint64_t>(usage.threads));
  WriteCounter(text, "curtail_exceptions_total", "Exceptions of libraries, each of which ended a connection",
               ContainedExceptions());
  text.Counter("process_context_switches_total", "Switches of threads: asleep, or sent off their CPU");
  text.Sample({{"kind", "voluntary"}}, usage.voluntary_switches);
  text.Sample({{"kind", "involuntary"}}, usage.involuntary_switches);
}

void WritePort(MetricsText& text, const observe::HttpAdminStats& port) {
  WriteGauge(text, "curtail_http_admin_connections", "Connections to this port", port.connections);
  WriteCounter(text, "curtail_http_admin_requests_total", "Requests answered by this port", port.requests);
  WriteCounter(text, "curtail_http_admin_refused_total", "... of these refused for their sender",
               port.refused);
  WriteCounter(text, "curtail_http_admin_malformed_total",
               "Requests that could not be read, for their form or their length", port.malformed);
  WriteCounter(text, "curtail_http_admin_paced_total", "Requests that had to wait for the rate of this port",
               port.paced);
  WriteCounter(text, "curtail_http_admin_held_back_total",
               "Times that requests had to wait until other answers had been taken", port.held_back);
  WriteCounter(text, "curtail_http_admin_evicted_total",
               "Connections closed for a newcomer, or for the answers of others", port.evicted);
  WriteGauge(text, "curtail_http_admin_held_bytes", "Memory held for clients: requests and answers",
             port.held);
  WriteCounter(text, "curtail_http_admin_timed_out_total",
               "Connections closed as their clients were slow or idle", port.timed_out);
}

}  // namespace

CallMetrics::CallMetrics(MethodTable& methods)
    : methods_([&methods] {
        std::vector<Method> counted;
        for (const ServedMethod* method : methods.InOrder()) {
          Method& entry = counted.emplace_back();
          if (method->handler.kind == MethodHandler::Kind::kStream) continue;
          const size_t slash = method->path.rfind('/');
          entry.service = method->path.substr(1, slash - 1);
          entry.name = method->path.substr(slash + 1);
        }
        return counted;
      }()),
      calls_(methods_.size()) {}

void CallMetrics::WriteTo(MetricsText& text, const observe::Tracer* tracer) const {
  // Ahead of the counts, so that they count these calls.
  std::vector<observe::BucketExemplars> traced;
  if (tracer != nullptr && text.has_exemplars()) traced = tracer->exemplars();
  std::vector<MetricsCalls::Counts> counts;
  for (size_t i = 0; i < methods_.size(); ++i) counts.push_back(calls_.Read(i));
  text.Counter("rpc_server_calls_total", "Calls answered, by the status of the answer");
  for (size_t i = 0; i < methods_.size(); ++i) {
    const Method& method = methods_[i];
    if (method.service.empty()) continue;
    for (size_t code = 0; code < MetricsCalls::kCodes; ++code) {
      if (code > 0 && counts[i].codes[code] == 0) continue;
      text.Sample({{"rpc_service", method.service},
                   {"rpc_method", method.name},
                   {"rpc_response_status_code", kCodeNames[code]}},
                  counts[i].codes[code]);
    }
  }
  text.Histogram("rpc_server_duration_seconds", "Time from a whole request to its reply");
  for (size_t i = 0; i < methods_.size(); ++i) {
    const Method& method = methods_[i];
    if (method.service.empty()) continue;
    std::vector<observe::MetricExemplar> exemplars;
    if (i < traced.size()) exemplars = ExemplarsOf(traced[i]);
    text.HistogramSample({{"rpc_service", method.service}, {"rpc_method", method.name}}, CallBounds(),
                         counts[i].buckets, Seconds(counts[i].sum), exemplars);
  }
  WriteEdgesTo(text);
}

void CallMetrics::WriteEdgesTo(MetricsText& text) const {
  struct Edge {
    std::string_view service = "other", method = "other", target = "other";
    MetricsEdges::Edge edge;
  };
  std::vector<Edge> edges;
  // That of all others comes once there are some.
  for (size_t i = edges_.size() == MetricsEdges::kMost ? 0 : 1; i < edges_.size(); ++i) {
    Edge& named = edges.emplace_back();
    named.edge = edges_.Read(i);
    if (i == MetricsEdges::kOther) continue;
    const std::string_view path = named.edge.path;
    const size_t slash = path.rfind('/');  // a path has two
    named.service = slash == 0 || slash == path.npos ? path : path.substr(1, slash - 1);
    named.method = path.substr(slash == path.npos ? path.size() : slash + 1);
    named.target = named.edge.target;
  }
  text.Counter("rpc_client_calls_total", "Calls that handlers made, by the status that came back");
  for (const Edge& of : edges) {
    for (size_t code = 0; code < MetricsCalls::kCodes; ++code) {
      if (code > 0 && of.edge.counts.codes[code] == 0) continue;
      text.Sample({{"rpc_service", of.service},
                   {"rpc_method", of.method},
                   {"server_address", of.target},
                   {"rpc_response_status_code", kCodeNames[code]}},
                  of.edge.counts.codes[code]);
    }
  }
  const auto each = [&](uint64_t MetricsEdges::Edge::* count) {
    for (const Edge& of : edges) {
      text.Sample({{"rpc_service", of.service}, {"rpc_method", of.method}, {"server_address", of.target}},
                  of.edge.*count);
    }
  };
  text.Counter("curtail_client_retries_total", "Times that these were made again");
  each(&MetricsEdges::Edge::retries);
  text.Counter("curtail_client_hedges_total", "Attempts that hedging made beside the first");
  each(&MetricsEdges::Edge::hedges);
  text.Histogram("rpc_client_duration_seconds", "Time from a call to its answer");
  for (const Edge& of : edges) {
    text.HistogramSample(
        {{"rpc_service", of.service}, {"rpc_method", of.method}, {"server_address", of.target}}, CallBounds(),
        of.edge.counts.buckets, Seconds(of.edge.counts.sum));
  }
}

std::string ServerMetrics(const ServerStats& stats, const CallMetrics& calls, const observe::Tracer* tracer,
                          const observe::HttpAdminStats& port, observe::MetricsFormat format) {
  MetricsText text(format);
  calls.WriteTo(text, tracer);
  WriteConfig(text, stats);
  WritePools(text, stats.pools);
  WriteConnections(text, stats);
  WriteClientConnections(text);
  WriteStores(text);
  if (stats.fences) WriteFences(text, *stats.fences);
  if (tracer != nullptr) WriteTraces(text, tracer->stats());
  WriteProcess(text);
  WritePort(text, port);
  return text.Finish();
}

}  // namespace curtail::internal
