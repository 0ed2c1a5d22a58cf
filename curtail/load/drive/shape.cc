// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: each kind of shape is a function from its argument to a curve, found by name in a table. Traces are read
// as they are and scaled as curves, so that an error names the line as it is in the file.
#include "curtail/load/drive/shape.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numbers>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/load/drive/internal/shapes.h"

namespace curtail {
namespace {

constexpr size_t kMaxFileBytes = 64 << 20;
constexpr size_t kMaxSteps = 1000;
constexpr Nanos kSpike = std::chrono::seconds(1);
constexpr int kDiurnalPieces = 96;
constexpr Nanos kLowDwell = std::chrono::seconds(1);
constexpr Nanos kHighDwell = std::chrono::milliseconds(100);
constexpr Nanos kMinDwell = std::chrono::microseconds(100);
// Sets the draws of the bursts apart from those of the arrivals, which have the same seed.
constexpr uint64_t kBurstSalt = 0x6275727374733a31;

using Curve = absl::StatusOr<RateCurve>;

std::string Quoted(std::string_view text) {
  const std::string_view start = text.substr(0, 40);
  return Join("\"", absl::CEscape({start.data(), start.size()}), start.size() < text.size() ? "...\"" : "\"");
}

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

absl::StatusOr<double> ParseRate(std::string_view text) {
  const std::optional<double> rate = ParseNumber(Trim(text));
  if (!rate || *rate < 0 || *rate > RateCurve::kMaxPerS) {
    return Invalid(
        Join(Quoted(text), " is not a rate; it must be a number of requests a second from 0 to 10000000"));
  }
  return *rate;
}

struct Range {
  double low = 0, high = 0;
};

absl::StatusOr<Range> ParseRange(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == text.npos) return Invalid(Join(Quoted(text), " is not a range of rates, such as 100..5000"));
  const absl::StatusOr<double> low = ParseRate(text.substr(0, dots));
  if (!low.ok()) return low.status();
  const absl::StatusOr<double> high = ParseRate(text.substr(dots + 2));
  if (!high.ok()) return high.status();
  return Range{*low, *high};
}

absl::StatusOr<Range> ParseRisingRange(std::string_view text) {
  absl::StatusOr<Range> range = ParseRange(text);
  if (range.ok() && range->low > range->high) {
    return Invalid(Join(Quoted(text), " goes down; the lower rate comes first"));
  }
  return range;
}

absl::StatusOr<Nanos> ParseDwell(std::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration(std::string(text), &duration) || duration < absl::FromChrono(kMinDwell) ||
      duration > absl::FromChrono(RateCurve::kMaxLength)) {
    return Invalid(Join(Quoted(text), " is not a mean time of at least 100us, such as 1s or 50ms"));
  }
  return absl::ToChronoNanoseconds(duration);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// --- Formulas: the argument, the length and the seed make a curve ---------------------------------------------

Curve Constant(std::string_view argument, Nanos length, uint64_t) {
  const absl::StatusOr<double> rate = ParseRate(argument);
  if (!rate.ok()) return rate.status();
  return RateCurve::Constant(*rate, length);
}

Curve Steps(std::string_view argument, Nanos length, uint64_t) {
  const std::vector<std::string_view> parts = Split(argument, ',');
  if (parts.size() > kMaxSteps)
    return Invalid(Join(parts.size(), " steps are too many; at most ", kMaxSteps));
  std::vector<RatePoint> points;
  for (size_t i = 0; i < parts.size(); ++i) {
    const absl::StatusOr<double> rate = ParseRate(parts[i]);
    if (!rate.ok()) return rate.status();
    const double share = static_cast<double>(i) / static_cast<double>(parts.size());
    const Nanos start(static_cast<int64_t>(static_cast<double>(length.count()) * share));
    if (i > 0) points.push_back({start, points.back().per_s});
    points.push_back({start, *rate});
  }
  return RateCurve::Make(std::move(points), length);
}

Curve Ramp(std::string_view argument, Nanos length, uint64_t) {
  const absl::StatusOr<Range> range = ParseRange(argument);
  if (!range.ok()) return range.status();
  return RateCurve::Make({{Nanos(0), range->low}, {length, range->high}}, length);
}

Curve FlashCrowd(std::string_view argument, Nanos length, uint64_t) {
  const absl::StatusOr<Range> range = ParseRisingRange(argument);
  if (!range.ok()) return range.status();
  const Nanos spike = std::min(kSpike, length / 3);
  const Nanos start = (length - spike) / 2;
  const double low = range->low, high = range->high;
  return RateCurve::Make({{start, low}, {start, high}, {start + spike, high}, {start + spike, low}}, length);
}

Curve Diurnal(std::string_view argument, Nanos length, uint64_t) {
  const absl::StatusOr<Range> range = ParseRisingRange(argument);
  if (!range.ok()) return range.status();
  std::vector<RatePoint> points;
  for (int i = 0; i <= kDiurnalPieces; ++i) {
    const double share = static_cast<double>(i) / kDiurnalPieces;
    const double height = (1 - std::cos(2 * std::numbers::pi * share)) / 2;
    points.push_back({Nanos(static_cast<int64_t>(static_cast<double>(length.count()) * share)),
                      range->low + (range->high - range->low) * height});
  }
  return RateCurve::Make(std::move(points), length);
}

Curve DrawBursts(Range rates, double low_dwell_ns, double high_dwell_ns, Nanos length, uint64_t seed) {
  Rng rng(seed ^ kBurstSalt);
  bool high = rng.Uniform01() < high_dwell_ns / (low_dwell_ns + high_dwell_ns);
  const double end = static_cast<double>(length.count());
  std::vector<RatePoint> points;
  for (double at = 0; at < end; high = !high) {
    if (points.size() + 2 > RateCurve::kMaxPoints) {
      return Invalid(
          "so short bursts are too many for so long a run; take longer mean times or a shorter run");
    }
    const double rate = high ? rates.high : rates.low;
    const double next = std::min(end, at + rng.Exponential(high ? high_dwell_ns : low_dwell_ns));
    const Nanos from(static_cast<int64_t>(at)), to(static_cast<int64_t>(next));
    if (from < to) points.insert(points.end(), {{from, rate}, {to, rate}});
    at = next;
  }
  return RateCurve::Make(std::move(points), length);
}

Curve Bursts(std::string_view argument, Nanos length, uint64_t seed) {
  const std::vector<std::string_view> parts = Split(argument, ',');
  const absl::StatusOr<Range> range = ParseRisingRange(parts[0]);
  if (!range.ok()) return range.status();
  if (parts.size() != 1 && parts.size() != 3) {
    return Invalid("after the rates come both mean times or none: 200..2000,1s,100ms");
  }
  const absl::StatusOr<Nanos> low = parts.size() == 3 ? ParseDwell(parts[1]) : kLowDwell;
  if (!low.ok()) return low.status();
  const absl::StatusOr<Nanos> high = parts.size() == 3 ? ParseDwell(parts[2]) : kHighDwell;
  if (!high.ok()) return high.status();
  return DrawBursts(*range, static_cast<double>(low->count()), static_cast<double>(high->count()), length,
                    seed);
}

struct Formula {
  std::string_view name;
  std::string_view example;
  Curve (*make)(std::string_view argument, Nanos length, uint64_t seed);
};

constexpr Formula kFormulas[] = {
    {"constant", "constant:500", Constant},    {"steps", "steps:100,500,2000", Steps},
    {"ramp", "ramp:100..5000", Ramp},          {"flash-crowd", "flash-crowd:100..8000", FlashCrowd},
    {"diurnal", "diurnal:100..2000", Diurnal}, {"bursts", "bursts:200..2000,1s,100ms", Bursts},
};

Curve ParseFormula(const Formula& formula, std::string_view argument, const ShapeOptions& options) {
  if (!options.length) return Invalid("it has no length of its own; say how long it shall last");
  if (options.time_scale != 1) return Invalid("it lasts as long as the run; a time scale is for traces");
  // Checked here, as a formula computes with it.
  if (*options.length <= Nanos::zero() || *options.length > RateCurve::kMaxLength) {
    return RateCurve::Constant(1, *options.length).status();
  }
  absl::StatusOr<RateCurve> curve = formula.make(argument, *options.length, options.seed);
  if (!curve.ok()) return Invalid(Join(Message(curve.status()), "; an example is ", formula.example));
  return curve->Scaled(options.rate_scale, 1);
}

// --- Traces ------------------------------------------------------------------------------------------------------

// Adds a point so long after the first. Returns what is wrong with it, if anything.
std::string AddPoint(double offset_s, double rate, std::vector<RatePoint>* points) {
  if (rate < 0 || rate > RateCurve::kMaxPerS) {
    return absl::StrFormat("a rate of %g; it must be from 0 to %g requests a second", rate,
                           RateCurve::kMaxPerS);
  }
  if (std::abs(offset_s) > std::chrono::duration<double>(RateCurve::kMaxLength).count()) {
    return "the time is more than 100 days from the first; times are in seconds";
  }
  const Nanos at(std::llround(offset_s * 1e9));
  if (!points->empty() && at < points->back().at)
    return "the time is before the one above; sort the lines by time";
  if (points->size() > 1 && at == (*points)[points->size() - 2].at) {
    return "the third rate at the same time; two make a step";
  }
  if (points->size() >= RateCurve::kMaxPoints) return Join("more than ", RateCurve::kMaxPoints, " lines");
  points->push_back({at, rate});
  return {};
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::vector<char> block(64 << 10);
  while (file && text.size() <= kMaxFileBytes) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<size_t>(file.gcount()));
  }
  if (text.size() > kMaxFileBytes)
    return Invalid(Join(path, " has over 64 MiB; a trace of rates is smaller"));
  if (!file.eof()) {  // a folder, too, opens but cannot be read
    return absl::NotFoundError(Join("cannot read ", path, ": ", std::strerror(errno != 0 ? errno : EISDIR)));
  }
  return text;
}

Curve ParseTrace(const std::string& path, const ShapeOptions& options) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<std::vector<RatePoint>> points = ParseRateCsv(*text, path);
  if (!points.ok()) return points.status();
  const Nanos own = points->back().at;
  if (own == Nanos::zero()) {  // one rate, or a step at once: as long as is asked for
    if (!options.length) return Invalid(Join(path, " has only one time; say how long the load shall last"));
    const Curve level = RateCurve::Make(*std::move(points), *options.length);
    return level.ok() ? level->Scaled(options.rate_scale, 1) : level;
  }
  Curve curve = RateCurve::Make(*std::move(points), own);
  if (curve.ok()) curve = curve->Scaled(options.rate_scale, options.time_scale);
  if (curve.ok() && options.length && *options.length < curve->length())
    curve = curve->WithLength(*options.length);
  if (!curve.ok()) return Invalid(Join(path, ": ", Message(curve.status())));
  return curve;
}

Curve ParseShipped(const internal::ShippedShape& shape, std::string_view argument,
                   const ShapeOptions& options) {
  const absl::StatusOr<double> peak = ParseRate(argument);
  if (!peak.ok() || *peak == 0) {
    return Invalid(Join("it needs its peak in requests a second, such as ", shape.name, ":2000"));
  }
  if (options.length && options.time_scale != 1) {
    return Invalid("it is stretched to the length of the run; give that or a time scale, not both");
  }
  absl::StatusOr<std::vector<RatePoint>> points = ParseRateCsv(shape.csv, shape.name);
  if (!points.ok()) return points.status();
  const Nanos own = points->back().at;
  const Curve relative = RateCurve::Make(*std::move(points), own);
  if (!relative.ok()) return relative.status();
  const double peak_factor = *peak * options.rate_scale / relative->peak_per_s();
  if (!options.length) return relative->Scaled(peak_factor, options.time_scale);
  const Curve stretched = relative->Scaled(
      peak_factor, static_cast<double>(options.length->count()) / static_cast<double>(own.count()));
  return stretched.ok() ? stretched->WithLength(*options.length) : stretched;  // to the ns
}

absl::Status Unknown() {
  std::string known;
  for (const Formula& formula : kFormulas) known += Join(formula.example, ", ");
  for (const internal::ShippedShape& shape : internal::ShippedShapes()) known += Join(shape.name, ":PEAK, ");
  return Invalid(Join("there is no such shape; known are ", known, "and a trace in PATH.csv"));
}

Curve ParseNamed(std::string_view spec, const ShapeOptions& options) {
  const size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string_view argument = colon == spec.npos ? std::string_view() : spec.substr(colon + 1);
  for (const Formula& formula : kFormulas) {
    if (name == formula.name) return ParseFormula(formula, argument, options);
  }
  for (const internal::ShippedShape& shape : internal::ShippedShapes()) {
    if (name == shape.name) return ParseShipped(shape, argument, options);
  }
  return Unknown();
}

}  // namespace

absl::StatusOr<std::vector<RatePoint>> ParseRateCsv(std::string_view text, std::string_view name) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // what spreadsheets put there
  std::vector<RatePoint> points;
  double first_s = 0;
  bool may_be_header = true;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    const size_t comma = line.find(',');
    const std::optional<double> time_s = ParseNumber(Trim(line.substr(0, comma)));
    const std::optional<double> rate =
        comma == line.npos ? std::nullopt : ParseNumber(Trim(line.substr(comma + 1)));
    const bool header = std::exchange(may_be_header, false) && !time_s && !rate && comma != line.npos;
    if (header) continue;
    if (!time_s || !rate) {
      return Invalid(
          Join(name, ":", number, ": ", Quoted(line), " is not a time in seconds, a comma and a rate"));
    }
    if (points.empty()) first_s = *time_s;
    if (const std::string wrong = AddPoint(*time_s - first_s, *rate, &points); !wrong.empty()) {
      return Invalid(Join(name, ":", number, ": ", wrong));
    }
  }
  if (points.empty()) return Invalid(Join(name, " has no lines of a time in seconds, a comma and a rate"));
  return points;
}

bool ShapeIsDrawn(std::string_view spec) { return spec.starts_with("bursts:"); }

absl::StatusOr<RateCurve> ParseShape(std::string_view spec, const ShapeOptions& options) {
  if (spec.ends_with(".csv") || spec.find('/') != spec.npos) return ParseTrace(std::string(spec), options);
  Curve curve = ParseNamed(spec, options);
  if (!curve.ok()) return Invalid(Join(Quoted(spec), ": ", Message(curve.status())));
  return curve;
}

}  // namespace curtail
