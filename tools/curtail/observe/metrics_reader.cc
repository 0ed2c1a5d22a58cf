// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/metrics_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"

namespace curtail::tool {
namespace {

// A number as Prometheus writes it.
std::optional<double> ReadNumber(std::string_view text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  double value = 0;
  if (!absl::SimpleAtod(std::string(text), &value) || std::isnan(value)) return std::nullopt;
  return value;
}

// Takes `NAME="VALUE"` off the front.
std::optional<std::pair<std::string, std::string>> TakeLabel(std::string_view* text) {
  const size_t equals = text->find("=\"");
  if (equals == std::string_view::npos) return std::nullopt;
  std::pair<std::string, std::string> label(text->substr(0, equals), "");
  for (size_t i = equals + 2; i < text->size(); ++i) {
    char c = (*text)[i];
    if (c == '"') {
      text->remove_prefix(i + 1);
      return label;
    }
    if (c == '\\') {
      if (++i == text->size()) break;
      c = (*text)[i] == 'n' ? '\n' : (*text)[i];
    }
    label.second.push_back(c);
  }
  return std::nullopt;
}

std::optional<MetricSample> ReadSample(std::string_view line) {
  MetricSample sample;
  const size_t name_end = line.find_first_of("{ ");
  if (line.starts_with('#') || name_end == std::string_view::npos || name_end == 0) return std::nullopt;
  sample.name = line.substr(0, name_end);
  line.remove_prefix(name_end);
  if (line.starts_with('{')) {
    do {
      line.remove_prefix(1);  // the brace, or a comma
      if (line.starts_with('}')) break;
      auto label = TakeLabel(&line);
      if (!label) return std::nullopt;
      sample.labels.push_back(*std::move(label));
    } while (line.starts_with(','));
    if (!line.starts_with('}')) return std::nullopt;
    line.remove_prefix(1);
  }
  if (!line.starts_with(' ')) return std::nullopt;
  line.remove_prefix(1);
  const std::optional<double> value = ReadNumber(line.substr(0, line.find(' ')));  // a time may follow
  if (!value) return std::nullopt;
  sample.value = *value;
  return sample;
}

}  // namespace

std::string_view MetricSample::Label(std::string_view wanted) const {
  for (const auto& [label, text] : labels) {
    if (label == wanted) return text;
  }
  return {};
}

std::vector<MetricSample> ReadMetrics(std::string_view text) {
  std::vector<MetricSample> samples;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (auto sample = ReadSample(text.substr(0, end))) samples.push_back(*std::move(sample));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return samples;
}

std::optional<double> BoundOf(const MetricSample& bucket) { return ReadNumber(bucket.Label("le")); }

CumulatedBuckets Since(const CumulatedBuckets& before, const CumulatedBuckets& now) {
  CumulatedBuckets since;
  for (const auto& [bound, count] : now) {
    const auto earlier = before.find(bound);
    since[bound] = earlier == before.end() || earlier->second > count ? count : count - earlier->second;
  }
  return since;
}

std::optional<double> Quantile(const CumulatedBuckets& buckets, double q) {
  if (buckets.empty() || buckets.rbegin()->second <= 0) return std::nullopt;
  const double wanted = q * buckets.rbegin()->second;
  double low = 0, below = 0;
  for (const auto& [bound, count] : buckets) {
    if (std::isinf(bound)) break;
    if (count >= wanted && count > below) return low + (bound - low) * (wanted - below) / (count - below);
    low = bound, below = std::max(below, count);
  }
  return low;
}

}  // namespace curtail::tool
