// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/trace_records.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

namespace curtail::observe {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 8;
// `curtail up` and balancers check whether a service lives. No user waits for the answer.
constexpr std::string_view kHealthChecks = "/grpc.health.v1.Health/";

const Json* Member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string_view TextOf(const Json& object, const char* key) {
  const Json* const text = Member(object, key);
  return text != nullptr && text->is_string() ? std::string_view(text->get_ref<const std::string&>())
                                              : std::string_view();
}

// A number of 16 hexadecimal digits that is not 0.
std::optional<uint64_t> IdOf(std::string_view text) {
  uint64_t id = 0;
  if (text.size() != 16) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id, 16);
  if (error != std::errc() || end != text.data() + text.size() || id == 0) return std::nullopt;
  return id;
}

// True if the member is an integer from 0 to `most`.
bool Take(const Json& object, const char* key, int64_t most, int64_t* into) {
  const Json* const number = Member(object, key);
  if (number == nullptr || !number->is_number_unsigned()) return false;
  const auto value = number->get<uint64_t>();
  if (value > static_cast<uint64_t>(most)) return false;
  *into = static_cast<int64_t>(value);
  return true;
}

// True if nothing is nested deeper than kDeepest. The parser's own callback could tell, in quadratic time.
bool IsShallow(std::string_view json) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size() && depth <= kDeepest; ++i) {
    const char c = json[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
  }
  return depth <= kDeepest;
}

bool TakeTrace(std::string_view text, TraceId* into) {
  if (text.size() != 32) return false;
  // A half may be 0.
  const auto half = [](std::string_view digits, uint64_t* to) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *to, 16);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  return half(text.substr(0, 16), &into->high) && half(text.substr(16), &into->low);
}

}  // namespace

// Reads one document.
class TraceRecords::Reader {
 public:
  Reader(TraceRecords* records, std::string_view service, std::string_view instance)
      : records_(records), service_(records->Name(service)), instance_(records->Name(instance)) {}

  void Read(const Json& spans) {
    for (const Json& json : spans) {
      RecordedSpan span{.service = service_, .instance = instance_};
      calls_.clear();
      if (json.is_object() && TextOf(json, "method").starts_with(kHealthChecks)) continue;
      if (!json.is_object() || !ReadSpan(json, &span)) {
        ++records_->refused_;
        continue;
      }
      Keep(span);
    }
  }

 private:
  bool ReadSpan(const Json& json, RecordedSpan* span) {
    const std::optional<uint64_t> id = IdOf(TextOf(json, "id"));
    if (!id || !TakeTrace(TextOf(json, "trace"), &span->trace)) return false;
    span->id = *id;
    span->parent = IdOf(TextOf(json, "parent")).value_or(0);
    span->method = records_->Name(TextOf(json, "method"));
    span->failed = TextOf(json, "status") != "OK";
    int64_t left_out = 0;
    if (!Take(json, "start_unix_us", INT64_MAX, &span->start_unix_us) ||
        !Take(json, "total_ns", kLongest, &span->total) || !Take(json, "queue_ns", kLongest, &span->queue) ||
        !Take(json, "entry_ns", kLongest, &span->entry) ||
        !Take(json, "handler_ns", kLongest, &span->handler) ||
        !Take(json, "reply_ns", kLongest, &span->reply) ||
        !Take(json, "calls_left_out", UINT32_MAX, &left_out)) {
      return false;
    }
    span->calls_left_out = static_cast<uint32_t>(left_out);
    if (span->queue + span->entry + span->handler + span->reply != span->total) return false;
    const Json* const calls = Member(json, "calls");
    if (calls == nullptr || !calls->is_array() || calls->size() > kMostCallsOfSpan) return false;
    return std::all_of(calls->begin(), calls->end(),
                       [this](const Json& call) { return call.is_object() && ReadCall(call); });
  }

  bool ReadCall(const Json& json) {
    RecordedCall call;
    const std::optional<uint64_t> id = IdOf(TextOf(json, "id")), parent = IdOf(TextOf(json, "parent"));
    if (!id || !parent) return false;
    call.id = *id, call.parent = *parent;
    const std::string_view method = TextOf(json, "method");
    call.method = records_->Name(method);
    call.service = records_->Name(ServiceOfPath(method));
    call.in_process = TextOf(json, "target") == ServiceOfPath(method);
    call.failed = TextOf(json, "status") != "OK";
    if (!Take(json, "start_ns", kLongest, &call.start) || !Take(json, "total_ns", kLongest, &call.total)) {
      return false;
    }
    const Json* const send = Member(json, "send_ns");
    if (send != nullptr && !send->is_null() && !Take(json, "send_ns", call.total, &call.send)) return false;
    calls_.push_back(call);
    return true;
  }

  void Keep(RecordedSpan span) {
    const TraceBounds& bounds = records_->bounds_;
    if (records_->spans_.size() >= bounds.spans || records_->calls_.size() + calls_.size() > bounds.calls) {
      ++records_->left_out_;
      return;
    }
    if (!records_->known_.insert({span.trace.high, span.trace.low, span.id}).second) return;
    span.first_call = static_cast<uint32_t>(records_->calls_.size());
    span.calls = static_cast<uint32_t>(calls_.size());
    records_->calls_.insert(records_->calls_.end(), calls_.begin(), calls_.end());
    records_->spans_.push_back(span);
  }

  TraceRecords* const records_;
  const TraceName service_, instance_;
  std::vector<RecordedCall> calls_;
};

TraceRecords::TraceRecords(TraceBounds bounds) : bounds_(bounds), names_{"other"}, name_of_{{"other", 0}} {}

TraceName TraceRecords::Name(std::string_view text) {
  text = text.substr(0, kMostNameBytes);
  if (const auto found = name_of_.find(text); found != name_of_.end()) return found->second;
  if (names_.size() >= bounds_.names) return 0;
  const auto name = static_cast<TraceName>(names_.size());
  names_.emplace_back(text);
  name_of_.emplace(text, name);
  return name;
}

absl::Status TraceRecords::Add(std::string_view text, std::string_view service, std::string_view instance) {
  if (text.size() > kMostDocument) return absl::InvalidArgumentError("the document of spans is too long");
  const Json json =
      IsShallow(text) ? Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false) : Json();
  const auto is_document = [](const Json& one) {
    const Json* const spans = one.is_object() ? Member(one, "spans") : nullptr;
    return spans != nullptr && spans->is_array();
  };
  const auto add = [&](const Json& one) {
    const std::string_view own = TextOf(one, "service");
    const std::string_view name = service.empty() ? own : service;
    Reader(this, name, instance.empty() ? name : instance).Read(*Member(one, "spans"));
  };
  if (is_document(json)) {
    add(json);
    return absl::OkStatus();
  }
  if (!json.is_array() || !std::all_of(json.begin(), json.end(), is_document)) {
    return absl::InvalidArgumentError("it has no spans; save what /traces of a service returns");
  }
  for (const Json& one : json) add(one);
  return absl::OkStatus();
}

std::string_view ServiceOfPath(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return path;
  return path.substr(path.starts_with('/') ? 1 : 0, slash - (path.starts_with('/') ? 1 : 0));
}

}  // namespace curtail::observe
