// SPDX-License-Identifier: Apache-2.0
//
// metrics_text.h - metrics as the text that Prometheus scrapes, in its own format or in that of OpenMetrics.
//
// One family after the other, each with its samples:
//
//   MetricsText text(MetricsFormatFor(accept));
//   text.Counter("curtail_queue_begun_total", "Requests taken from the queue");
//   text.Sample({}, stats.begun);
//   return text.Finish();
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace curtail::observe {

enum class MetricsFormat : uint8_t {
  kPrometheus,   // the text format, version 0.0.4
  kOpenMetrics,  // version 1.0.0
};

// The format for a client that sends this Accept header: OpenMetrics if it is named there.
MetricsFormat MetricsFormatFor(std::string_view accept);
// The Content-Type of the text.
std::string_view MetricsContentType(MetricsFormat format);

// The value may be any bytes.
struct MetricLabel {
  std::string_view name;
  std::string_view value;
};
using MetricLabels = std::initializer_list<MetricLabel>;

// A call that shows what a bucket has.
struct MetricExemplar {
  std::string trace;  // its id; empty: there is none
  double value = 0;
  double unix_s = 0;  // when it was
};

// A MetricsText is written once, from first to last. Thread-compatible.
class MetricsText {
 public:
  explicit MetricsText(MetricsFormat format) : format_(format) {}

  // Each begins a family, of which the following samples are. REQUIRES: no other family has the name.
  // The name ends in "_total".
  void Counter(std::string_view name, std::string_view help) { Family(name, "_total", "counter", help); }
  void Gauge(std::string_view name, std::string_view help) { Family(name, "", "gauge", help); }
  // The name ends in "_info"; samples are 1, and their labels say it all.
  void Info(std::string_view name, std::string_view help);
  void Histogram(std::string_view name, std::string_view help) { Family(name, "", "histogram", help); }

  // A sample of a family that is no histogram.
  void Sample(MetricLabels labels, uint64_t value);
  void Sample(MetricLabels labels, double value);
  // A sample of a histogram: counts[i] values up to bounds[i], and above the bound before; the last count is of the rest.
  // OpenMetrics shows exemplars[i] beside counts[i], if there are any.
  // REQUIRES: counts.size() == bounds.size() + 1, bounds ascend; exemplars lie in their buckets.
  void HistogramSample(MetricLabels labels, std::span<const double> bounds, std::span<const uint64_t> counts,
                       double sum, std::span<const MetricExemplar> exemplars = {});

  bool has_exemplars() const { return format_ == MetricsFormat::kOpenMetrics; }
  // The whole text; the object is empty then.
  std::string Finish();

 private:
  void Family(std::string_view name, std::string_view suffix, std::string_view type, std::string_view help);
  // "name{labels,le="bound"}" and a space.
  void Begin(std::string_view suffix, MetricLabels labels, std::string_view bound = {});
  void Show(const MetricExemplar& exemplar);

  const MetricsFormat format_;
  std::string name_;  // of the family
  std::string text_;
};

}  // namespace curtail::observe
