// SPDX-License-Identifier: Apache-2.0
//
// Zipkin's JSON, version 2: https://zipkin.io/zipkin-api/ (POST /api/v2/spans). A call is a span of kind SERVER; each call
// that it made is one of kind CLIENT.
#include <algorithm>
#include <string>

#include "curtail/base/strings.h"
#include "curtail/observe/trace/trace_exporter.h"

namespace curtail::observe {
namespace {

class Zipkin final : public TraceExporter {
 public:
  std::string_view default_path() const override { return "/api/v2/spans"; }

  void Begin(std::string_view service, std::string* batch) override {
    service_ = service;
    batch->append("[");
  }

  void Add(const Span& span, const WallClock& clock, bool first, std::string* batch) override {
    if (span.kind == Span::Kind::kServer) AddServer(span, clock, first, batch);
    for (size_t i = 0; i < span.child_count; ++i) {
      AddChild(span, span.children[i], clock, first && i == 0 && span.kind != Span::Kind::kServer, batch);
    }
  }

  void End(std::string* batch) override { batch->append("]"); }

 private:
  void AddServer(const Span& span, const WallClock& clock, bool first, std::string* batch) const {
    if (!first) batch->append(",\n");
    Open(span.trace, span.id, span.parent, "SERVER", span.path.view(), batch);
    Times(span.arrived, span.over, clock, batch);
    Peer(span.peer.view(), batch);
    batch->append(",\"annotations\":[");
    Annotation("dequeued", span.dequeued, clock, batch);
    batch->append(",");
    Annotation("handler began", span.began, clock, batch);
    batch->append(",");
    Annotation("handler ended", span.replied, clock, batch);
    batch->append("]");
    Tags(span.code, batch);
    batch->append(",\"curtail.captured\":");
    AppendJsonText(SpanReasonName(span.reason), batch);
    if (span.children_left_out > 0)
      batch->append(Join(",\"curtail.calls_left_out\":\"", span.children_left_out, "\""));
    batch->append("}}");
  }

  void AddChild(const Span& span, const ChildSpan& child, const WallClock& clock, bool first,
                std::string* batch) const {
    if (!first) batch->append(",\n");
    Open(span.trace, child.id, child.parent, "CLIENT", child.path.view(), batch);
    Times(child.called, child.answered, clock, batch);
    batch->append(",\"remoteEndpoint\":{\"serviceName\":");
    AppendJsonText(child.target.view(), batch);
    batch->append("}");
    if (child.sent != TimePoint()) {
      batch->append(",\"annotations\":[");
      Annotation("sent", child.sent, clock, batch);
      batch->append("]");
    }
    Tags(child.code, batch);
    batch->append("}}");
  }

  void Open(const TraceId& trace, uint64_t id, uint64_t parent, std::string_view kind, std::string_view path,
            std::string* batch) const {
    batch->append("{\"traceId\":");
    AppendJsonId(trace, batch);
    batch->append(",\"id\":");
    AppendJsonId(id, batch);
    if (parent != 0) {
      batch->append(",\"parentId\":");
      AppendJsonId(parent, batch);
    }
    batch->append(Join(",\"kind\":\"", kind, "\",\"name\":"));
    AppendJsonText(path, batch);
    batch->append(",\"localEndpoint\":{\"serviceName\":");
    AppendJsonText(service_, batch);
    batch->append("}");
  }

  static int64_t Micros(TimePoint when, const WallClock& clock) {
    return clock.SinceEpoch(when) / std::chrono::microseconds(1);
  }

  // A duration of 0 would mean that it is not known.
  static void Times(TimePoint from, TimePoint to, const WallClock& clock, std::string* batch) {
    const int64_t begin = Micros(from, clock);
    batch->append(
        Join(",\"timestamp\":", begin, ",\"duration\":", std::max<int64_t>(Micros(to, clock) - begin, 1)));
  }

  static void Annotation(std::string_view name, TimePoint when, const WallClock& clock, std::string* batch) {
    batch->append(Join("{\"timestamp\":", Micros(when, clock), ",\"value\":\"", name, "\"}"));
  }

  // "127.0.0.1:51234"; other addresses are left out.
  static void Peer(std::string_view peer, std::string* batch) {
    const size_t colon = peer.rfind(':');
    if (colon == std::string_view::npos) return;
    const std::string_view host = peer.substr(0, colon), port = peer.substr(colon + 1);
    if (host.find_first_not_of("0123456789.") != std::string_view::npos) return;
    if (port.empty() || port.find_first_not_of("0123456789") != std::string_view::npos) return;
    batch->append(Join(",\"remoteEndpoint\":{\"ipv4\":\"", host, "\",\"port\":", port, "}"));
  }

  // Opens the tags.
  static void Tags(int code, std::string* batch) {
    batch->append(Join(",\"tags\":{\"rpc.grpc.status_code\":\"", code, "\""));
    if (code != 0) batch->append(Join(",\"error\":\"", TraceCodeName(code), "\""));
  }

  std::string service_;
};

}  // namespace

std::unique_ptr<TraceExporter> MakeZipkinExporter() { return std::make_unique<Zipkin>(); }

}  // namespace curtail::observe
