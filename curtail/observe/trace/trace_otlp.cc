// SPDX-License-Identifier: Apache-2.0
//
// OTLP over HTTP in its JSON form: https://opentelemetry.io/docs/specs/otlp/#otlphttp (POST /v1/traces). Attributes follow
// OpenTelemetry's conventions for gRPC. docs/adr/0013-trace-exporters.md says why JSON.
#include <string>

#include "curtail/base/strings.h"
#include "curtail/observe/trace/trace_exporter.h"

namespace curtail::observe {
namespace {

class Otlp final : public TraceExporter {
 public:
  std::string_view default_path() const override { return "/v1/traces"; }

  void Begin(std::string_view service, std::string* batch) override {
    batch->append("{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    Text("service.name", service, batch);
    batch->append("]},\"scopeSpans\":[{\"scope\":{\"name\":\"curtail\"},\"spans\":[");
  }

  void Add(const Span& span, const WallClock& clock, bool first, std::string* batch) override {
    if (span.kind == Span::Kind::kServer) AddServer(span, clock, first, batch);
    for (size_t i = 0; i < span.child_count; ++i) {
      AddChild(span, span.children[i], clock, first && i == 0 && span.kind != Span::Kind::kServer, batch);
    }
  }

  void End(std::string* batch) override { batch->append("]}]}]}"); }

 private:
  // SpanKind.
  static constexpr int kServer = 2, kClient = 3;

  static void AddServer(const Span& span, const WallClock& clock, bool first, std::string* batch) {
    if (!first) batch->append(",\n");
    Open(span.trace, span.id, span.parent, kServer, span.path.view(), batch);
    Times(span.arrived, span.over, clock, batch);
    batch->append(",\"events\":[");
    Event("dequeued", span.dequeued, clock, batch);
    batch->append(",");
    Event("handler began", span.began, clock, batch);
    batch->append(",");
    Event("handler ended", span.replied, clock, batch);
    batch->append("]");
    Attributes(span.path.view(), span.code, batch);
    batch->append(",");
    Text("network.peer.address", span.peer.view(), batch);
    batch->append(",");
    Text("curtail.captured", SpanReasonName(span.reason), batch);
    if (span.children_left_out > 0) {
      batch->append(",");
      Number("curtail.calls_left_out", static_cast<int>(span.children_left_out), batch);
    }
    Close(span.code, batch);
  }

  static void AddChild(const Span& span, const ChildSpan& child, const WallClock& clock, bool first,
                       std::string* batch) {
    if (!first) batch->append(",\n");
    Open(span.trace, child.id, child.parent, kClient, child.path.view(), batch);
    Times(child.called, child.answered, clock, batch);
    if (child.sent != TimePoint()) {
      batch->append(",\"events\":[");
      Event("sent", child.sent, clock, batch);
      batch->append("]");
    }
    Attributes(child.path.view(), child.code, batch);
    batch->append(",");
    Text("server.address", child.target.view(), batch);
    Close(child.code, batch);
  }

  static void Open(const TraceId& trace, uint64_t id, uint64_t parent, int kind, std::string_view path,
                   std::string* batch) {
    batch->append("{\"traceId\":");
    AppendJsonId(trace, batch);
    batch->append(",\"spanId\":");
    AppendJsonId(id, batch);
    if (parent != 0) {
      batch->append(",\"parentSpanId\":");
      AppendJsonId(parent, batch);
    }
    batch->append(",\"name\":");
    AppendJsonText(path.substr(path.starts_with('/') ? 1 : 0), batch);
    batch->append(Join(",\"kind\":", kind));
  }

  static void Times(TimePoint from, TimePoint to, const WallClock& clock, std::string* batch) {
    batch->append(Join(",\"startTimeUnixNano\":\"", clock.SinceEpoch(from).count(),
                       "\",\"endTimeUnixNano\":\"", clock.SinceEpoch(to).count(), "\""));
  }

  static void Event(std::string_view name, TimePoint when, const WallClock& clock, std::string* batch) {
    batch->append(
        Join("{\"timeUnixNano\":\"", clock.SinceEpoch(when).count(), "\",\"name\":\"", name, "\"}"));
  }

  // Opens the attributes.
  static void Attributes(std::string_view path, int code, std::string* batch) {
    const size_t slash = path.rfind('/');
    batch->append(",\"attributes\":[");
    Text("rpc.system", "grpc", batch);
    if (path.starts_with('/') && slash > 0) {
      batch->append(",");
      Text("rpc.service", path.substr(1, slash - 1), batch);
      batch->append(",");
      Text("rpc.method", path.substr(slash + 1), batch);
    }
    batch->append(",");
    Number("rpc.grpc.status_code", code, batch);
  }

  // Closes them. A status that is not set means that nothing is known to be wrong.
  static void Close(int code, std::string* batch) {
    batch->append("]");
    if (code != 0) batch->append(Join(",\"status\":{\"code\":2,\"message\":\"", TraceCodeName(code), "\"}"));
    batch->append("}");
  }

  static void Text(std::string_view key, std::string_view value, std::string* batch) {
    batch->append(Join("{\"key\":\"", key, "\",\"value\":{\"stringValue\":"));
    AppendJsonText(value, batch);
    batch->append("}}");
  }
  static void Number(std::string_view key, int value, std::string* batch) {
    batch->append(Join("{\"key\":\"", key, "\",\"value\":{\"intValue\":\"", value, "\"}}"));
  }
};

}  // namespace

std::unique_ptr<TraceExporter> MakeOtlpExporter() { return std::make_unique<Otlp>(); }

}  // namespace curtail::observe
