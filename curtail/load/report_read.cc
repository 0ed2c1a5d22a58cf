// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report_read.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxFile = size_t{128} << 20;
constexpr int kMaxDepth = 16;
constexpr size_t kMaxRuns = 1000;
constexpr double kMaxNanos = 9e18;
constexpr double kMaxRate = 1e12;

struct TooDeep : std::runtime_error {
  TooDeep() : std::runtime_error("nested more deeply than any report") {}
};

// A Node is a value and where it stands. The first problem of a document is kept, and every read returns some default
// from then on, so that callers need not check each step. Thread-compatible.
class Node {
 public:
  Node(const Json* value, std::string* problem) : value_(value), problem_(problem) {}

  // A member. REQUIRES: `key` outlives the node, as literals do.
  Node operator[](const char* key) const {
    Node child(this, key);
    if (Has(Json::value_t::object, "an object")) {
      const auto found = value_->find(key);
      if (found == value_->end()) {
        child.Complain("is missing");
      } else {
        child.value_ = &*found;
      }
    }
    return child;
  }
  // Calls `each` with every item.
  template <class F>
  void ForItems(size_t at_most, F each) const {
    if (!Has(Json::value_t::array, "an array")) return;
    if (value_->size() > at_most) return Complain(absl::StrCat("has more than ", at_most, " items"));
    for (size_t i = 0; i < value_->size() && problem_->empty(); ++i) {
      Node child(this, nullptr);
      child.index_ = i;
      child.value_ = &(*value_)[i];
      each(child);
    }
  }
  // Calls `each` with every key and value.
  template <class F>
  void ForMembers(F each) const {
    if (!Has(Json::value_t::object, "an object")) return;
    for (const auto& [key, member] : value_->items()) {
      Node child(this, key.c_str());
      child.value_ = &member;
      each(key, child);
    }
  }

  bool IsNull() const { return value_ != nullptr && value_->is_null(); }
  bool Contains(const char* key) const { return value_ != nullptr && value_->contains(key); }
  size_t size() const { return value_ == nullptr ? 0 : value_->size(); }

  std::string Text() const {
    return Has(Json::value_t::string, "a string") ? value_->get<std::string>() : "";
  }
  bool Flag() const { return Has(Json::value_t::boolean, "true or false") && value_->get<bool>(); }
  double Number(double low, double high) const {
    if (value_ == nullptr) return 0;
    const double number =
        value_->is_number() ? value_->get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (number >= low && number <= high) return number;
    Complain(absl::StrCat("must be a number from ", low, " to ", high));
    return 0;
  }
  std::optional<double> NumberOrNull(double low, double high) const {
    if (IsNull()) return std::nullopt;
    return Number(low, high);
  }
  uint64_t Count(uint64_t high = std::numeric_limits<uint64_t>::max()) const {
    if (value_ == nullptr) return 0;
    if (value_->is_number_unsigned() && value_->get<uint64_t>() <= high) return value_->get<uint64_t>();
    Complain(absl::StrCat("must be a whole number from 0 to ", high));
    return 0;
  }
  Nanos Us() const { return Nanos(std::llround(Number(0, kMaxNanos / 1e3) * 1e3)); }
  Nanos Sec() const { return Nanos(std::llround(Number(0, kMaxNanos / 1e9) * 1e9)); }

  void Complain(std::string_view what) const {
    if (problem_->empty()) *problem_ = absl::StrCat(Path(), " ", absl::string_view(what.data(), what.size()));
  }

 private:
  Node(const Node* parent, const char* key) : parent_(parent), key_(key), problem_(parent->problem_) {}

  bool Has(Json::value_t type, const char* name) const {
    if (value_ == nullptr) return false;
    if (value_->type() != type) Complain(absl::StrCat("must be ", name));
    return value_->type() == type;
  }

  // "runs[0].plan.seed".
  std::string Path() const {
    const std::string above = parent_ == nullptr ? "" : parent_->Path();
    if (parent_ == nullptr) return "";
    if (key_ == nullptr) return absl::StrCat(above, "[", index_, "]");
    return above.empty() ? key_ : absl::StrCat(above, ".", key_);
  }

  const Node* parent_ = nullptr;
  const char* key_ = nullptr;  // null: an item of an array
  size_t index_ = 0;
  const Json* value_ = nullptr;  // null: missing
  std::string* problem_;
};

LoadPlan ReadPlan(const Node& node) {
  LoadPlan p;
  p.target = node["target"].Text();
  p.tls = node["tls"].Flag();
  p.method = node["method"].Text();
  p.workload = node["workload"].Text();
  p.arrivals = node["arrivals"].Text();
  p.schedule = node["schedule"].Text();
  p.rate_per_s = node["rate_per_s"].Number(0, kMaxRate);
  p.peak_per_s = node["peak_per_s"].Number(0, kMaxRate);
  p.outstanding = static_cast<int>(node["outstanding"].Count(std::numeric_limits<int>::max()));
  p.seed = node["seed"].Count();
  p.connections = static_cast<int>(node["connections"].Count(std::numeric_limits<int>::max()));
  p.warmup = node["warmup_s"].Sec();
  p.duration = node["duration_s"].Sec();
  p.timeout = node["timeout_s"].Sec();
  p.spin = node["spin_us"].Us();
  p.realtime = node["realtime"].Flag();
  return p;
}

Histogram ReadLatency(const Node& node) {
  std::vector<Histogram::Bucket> buckets;
  node["buckets"].ForItems(1u << 16, [&](const Node& bucket) {
    std::vector<Node> parts;
    bucket.ForItems(3, [&](const Node& part) { parts.push_back(part); });
    if (parts.size() != 3) return bucket.Complain("must be [low, high, count]");
    buckets.push_back({parts[0].Us(), parts[1].Us(), parts[2].Count()});
  });
  const Histogram::Totals totals{node["min"].Us(), node["max"].Us(), node["mean"].Us(),
                                 node["clamped"].Count()};
  std::optional<Histogram> h = Histogram::FromBuckets(buckets, totals);
  if (!h) node.Complain("has buckets that do not fit the layout, or its min, mean, max or clamped");
  return h ? *std::move(h) : Histogram();
}

LoadInterval ReadInterval(const Node& node) {
  LoadInterval s;
  s.end = node["end_s"].Sec();
  s.length = node["length_s"].Sec();
  s.due = node["due"].Count();
  s.sent = node["sent"].Count();
  s.ok = node["ok"].Count();
  s.failed = node["failed"].Count();
  s.p50 = node["p50_us"].Us();
  s.p99 = node["p99_us"].Us();
  s.in_flight = node["in_flight"].Count();
  s.config = node["config"].Text();
  return s;
}

ScoreSummary ReadScore(const Node& node) {
  ScoreSummary s;
  if (node.IsNull()) return s;
  s.name = node["name"].Text();
  s.count = node["count"].Count();
  s.sum = node["sum"].Number(-1e300, 1e300);
  s.min = node["min"].Number(-1e300, 1e300);
  return s;
}

std::vector<std::string> ReadTexts(const Node& node) {
  std::vector<std::string> texts;
  node.ForItems(1000, [&](const Node& text) { texts.push_back(text.Text()); });
  return texts;
}

std::map<std::string, uint64_t> ReadCounts(const Node& node) {
  std::map<std::string, uint64_t> counts;
  node.ForMembers([&](const std::string& key, const Node& count) { counts[key] = count.Count(); });
  return counts;
}

void ReadCounters(const Node& node, LoadResult& r) {
  const Node requests = node["requests"];
  r.scheduled = requests["scheduled"].Count();
  r.sent = requests["sent"].Count();
  r.ok = requests["ok"].Count();
  r.failed = requests["failed"].Count();
  r.dropped = requests["dropped"].Count();
  r.unfinished = requests["unfinished"].Count();
  const Node rates = node["rates_per_s"];
  r.scheduled_per_s = rates["scheduled"].Number(0, kMaxRate);
  r.sent_per_s = rates["sent"].Number(0, kMaxRate);
  r.good_per_s = rates["good"].Number(0, kMaxRate);
}

LoadResult ReadRun(const Node& node, const LoadPlan& plan) {
  LoadResult r;
  r.plan = plan;
  r.plan.seed = node["seed"].Count();
  r.plan.realtime = node["realtime"].Flag();
  r.measured = node["measured_s"].Sec();
  r.interrupted = node["interrupted"].Flag();
  ReadCounters(node, r);
  r.codes = ReadCounts(node["codes"]);
  r.errors = ReadCounts(node["errors"]);
  const Node latency = node["latency_us"];
  r.all = ReadLatency(latency["all"]);
  r.success = ReadLatency(latency["success"]);
  r.failure = ReadLatency(latency["failure"]);
  r.send_lag = ReadLatency(node["send_lag_us"]);
  r.cpu = node["generator"]["cpu_us"].Us();
  r.spin = node["generator"]["spin_us"].Us();
  r.score = ReadScore(node["score"]);
  const Node checks = node["checks"];
  r.checks.gaps_a2 = checks["gaps_a2"].NumberOrNull(-1e300, 1e300);
  r.checks.neighbours = checks["neighbours_rank_correlation"].NumberOrNull(-1, 1);
  r.checks.trend = checks["trend_rank_correlation"].NumberOrNull(-1, 1);
  node["series"].ForItems(LoadResult::kMaxIntervals,
                          [&](const Node& s) { r.series.push_back(ReadInterval(s)); });
  r.invalid = ReadTexts(node["invalid_reasons"]);
  r.warnings = ReadTexts(node["warnings"]);
  return r;
}

ReportOrigin ReadOrigin(const Node& root) {
  ReportOrigin origin;
  if (root.Contains("curtail_version")) origin.curtail_version = root["curtail_version"].Text();
  const Node node = root["machine"];
  if (node.IsNull()) return origin;
  Machine m;
  m.cpus = static_cast<int>(node["cpus"].Count(1 << 20));
  m.cpu_model = node["cpu_model"].Text();
  m.kernel = node["kernel"].Text();
  m.load_average_before = node["load_average_before"].Number(0, 1e9);
  origin.machine = std::move(m);
  return origin;
}

// Where byte `at` of `text`, counted from 1, stands.
std::string Place(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, std::min(at == 0 ? 0 : at - 1, text.size()));
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t newline = before.rfind('\n');
  const size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return absl::StrCat("line ", line, ", column ", column);
}

absl::StatusOr<Json> ParseJson(std::string_view text) {
  const auto bounded = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) throw TooDeep();
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), bounded);
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat("is not JSON: ", Place(text, error.byte),
                                                   error.byte > text.size() ? ": it ends too early" : ""));
  } catch (const Json::exception&) {  // such as a number beyond all doubles
    return absl::InvalidArgumentError("is not JSON: a value that no report has");
  } catch (const TooDeep& error) {
    return absl::InvalidArgumentError(absl::StrCat("is no load report: ", error.what()));
  }
}

absl::Status CheckVersion(const Json& json) {
  const auto version = json.is_object() ? json.find("schema_version") : json.end();
  if (!json.is_object() || version == json.end() || !version->is_number_integer()) {
    return absl::InvalidArgumentError("is no load report: it has no schema_version");
  }
  if (*version != kLoadSchemaVersion) {
    return absl::InvalidArgumentError(absl::StrCat("has schema_version ", version->dump(), ", and only ",
                                                   kLoadSchemaVersion, " is understood"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "re"), fclose);
  if (file == nullptr) {
    const int error = errno;
    return absl::NotFoundError(absl::StrCat("cannot be opened: ", std::generic_category().message(error)));
  }
  std::string text;
  std::vector<char> chunk(1 << 16);
  while (const size_t n = fread(chunk.data(), 1, chunk.size(), file.get())) {
    text.append(chunk.data(), n);
    if (text.size() > kMaxFile)
      return absl::ResourceExhaustedError("has more than 128 MiB: no load report has");
  }
  if (ferror(file.get()) != 0) {
    const int error = errno;
    return absl::NotFoundError(absl::StrCat("cannot be read: ", std::generic_category().message(error)));
  }
  return text;
}

}  // namespace

absl::StatusOr<LoadReport> ParseReport(std::string_view text, ReportOrigin* origin) {
  const absl::StatusOr<Json> json = ParseJson(text);
  if (!json.ok()) return json.status();
  if (absl::Status status = CheckVersion(*json); !status.ok()) return status;
  std::string problem;
  const Node root(&*json, &problem);
  const LoadPlan plan = ReadPlan(root["plan"]);
  LoadReport report;
  root["runs"].ForItems(kMaxRuns, [&](const Node& run) { report.runs.push_back(ReadRun(run, plan)); });
  if (report.runs.empty()) root["runs"].Complain("must not be empty");
  ReportOrigin read = ReadOrigin(root);
  if (!problem.empty()) return absl::InvalidArgumentError(absl::StrCat("is no load report: ", problem));
  if (origin != nullptr) *origin = std::move(read);
  return report;
}

absl::StatusOr<LoadReport> ReadReport(const std::string& path, ReportOrigin* origin) {
  const absl::StatusOr<std::string> text = ReadText(path);
  absl::StatusOr<LoadReport> report = text.ok() ? ParseReport(*text, origin) : text.status();
  if (report.ok()) return report;
  return absl::Status(report.status().code(), absl::StrCat(path, " ", report.status().message()));
}

}  // namespace curtail
