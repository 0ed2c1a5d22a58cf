// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/metrics/metrics_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::observe {
namespace {

// Values of labels may hold quotes in addition.
std::string Escaped(std::string_view text, bool quotes) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (c == '"' && quotes) {
      escaped += "\\\"";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// The shortest text that reads as the same number. Whole numbers have a point, as OpenMetrics wants of bounds.
std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

MetricsFormat MetricsFormatFor(std::string_view accept) {
  return accept.find("application/openmetrics-text") == std::string_view::npos ? MetricsFormat::kPrometheus
                                                                               : MetricsFormat::kOpenMetrics;
}

std::string_view MetricsContentType(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                               : "text/plain; version=0.0.4; charset=utf-8";
}

void MetricsText::Family(std::string_view name, std::string_view suffix, std::string_view type,
                         std::string_view help) {
  name_ = name;
  std::string_view family = name;
  if (format_ == MetricsFormat::kOpenMetrics) family.remove_suffix(suffix.size());
  text_ += Join("# HELP ", family, " ", Escaped(help, format_ == MetricsFormat::kOpenMetrics), "\n# TYPE ",
                family, " ", type, "\n");
}

void MetricsText::Info(std::string_view name, std::string_view help) {
  const bool open = format_ == MetricsFormat::kOpenMetrics;
  Family(name, open ? "_info" : "", open ? "info" : "gauge", help);
}

void MetricsText::Begin(std::string_view suffix, MetricLabels labels, std::string_view bound) {
  text_ += Join(name_, suffix);
  char separator = '{';
  for (const MetricLabel& label : labels) {
    text_ += separator;
    text_ += Join(label.name, "=\"", Escaped(label.value, /*quotes=*/true), "\"");
    separator = ',';
  }
  if (!bound.empty()) {
    text_ += separator;
    text_ += Join("le=\"", bound, "\"");
    separator = ',';
  }
  text_ += separator == '{' ? " " : "} ";
}

void MetricsText::Sample(MetricLabels labels, uint64_t value) {
  Begin("", labels);
  text_ += Join(value, "\n");
}

void MetricsText::Sample(MetricLabels labels, double value) {
  Begin("", labels);
  text_ += Join(Number(value), "\n");
}

void MetricsText::Show(const MetricExemplar& exemplar) {
  if (exemplar.trace.empty()) return;
  text_ += Join(" # {trace_id=\"", Escaped(exemplar.trace, /*quotes=*/true), "\"} ", Number(exemplar.value),
                " ", Number(exemplar.unix_s));
}

void MetricsText::HistogramSample(MetricLabels labels, std::span<const double> bounds,
                                  std::span<const uint64_t> counts, double sum,
                                  std::span<const MetricExemplar> exemplars) {
  uint64_t up_to = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    up_to += counts[i];
    Begin("_bucket", labels, i < bounds.size() ? Number(bounds[i]) : "+Inf");
    text_ += Join(up_to);
    if (i < exemplars.size() && has_exemplars()) Show(exemplars[i]);
    text_ += '\n';
  }
  Begin("_sum", labels);
  text_ += Join(Number(sum), "\n");
  Begin("_count", labels);
  text_ += Join(up_to, "\n");
}

std::string MetricsText::Finish() {
  if (format_ == MetricsFormat::kOpenMetrics) text_ += "# EOF\n";
  return std::exchange(text_, {});
}

}  // namespace curtail::observe
