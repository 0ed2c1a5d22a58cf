// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The tokens of RapidJSON become a tree, as the text is short. Each object is read by a table of its fields, so that an
// unknown one is an error; a Field knows its place in the text, so that every error names it:
//
//   service config: methodConfig[0].retryPolicy.maxAttempts: expected a whole number of at least 2
#include "curtail/rpc/client/config/service_config.h"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

// A value of the text.
struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kObject, kArray };

  Json(Kind k) : kind(k) {}

  Kind kind;
  bool boolean = false;
  double number = 0;
  std::optional<uint64_t> whole;  // a number that is one
  std::string text;
  std::vector<std::string> names;  // of an object's members
  std::vector<Json> values;        // of an object's members, or a list
};

// Gets the tokens of a text, and makes a value of them.
class JsonBuilder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, JsonBuilder> {
 public:
  Json Take() { return std::move(root_); }

  // RapidJSON calls these.
  bool Null() { return Add(Json::Kind::kNull); }
  bool Bool(bool value) {
    Json json(Json::Kind::kBool);
    json.boolean = value;
    return Add(std::move(json));
  }
  bool Int(int value) { return Double(value); }
  bool Int64(int64_t value) { return Double(static_cast<double>(value)); }
  bool Uint(unsigned value) { return Uint64(value); }
  bool Uint64(uint64_t value) {
    Json json(Json::Kind::kNumber);
    json.number = static_cast<double>(value);
    json.whole = value;
    return Add(std::move(json));
  }
  bool Double(double value) {
    Json json(Json::Kind::kNumber);
    json.number = value;
    return Add(std::move(json));
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    Json json(Json::Kind::kString);
    json.text.assign(text, size);
    return Add(std::move(json));
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    open_.back().names.emplace_back(text, size);
    return true;
  }
  bool StartObject() { return Open(Json::Kind::kObject); }
  bool StartArray() { return Open(Json::Kind::kArray); }
  bool EndObject(rapidjson::SizeType) { return Close(); }
  bool EndArray(rapidjson::SizeType) { return Close(); }

 private:
  static constexpr size_t kMaxDepth = 32;

  bool Add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().values.push_back(std::move(value));
    }
    return true;
  }
  bool Open(Json::Kind kind) {
    if (open_.size() == kMaxDepth) return false;
    open_.emplace_back(kind);
    return true;
  }
  bool Close() {
    Json value = std::move(open_.back());
    open_.pop_back();
    return Add(std::move(value));
  }

  Json root_{Json::Kind::kNull};
  std::vector<Json> open_;  // the objects and lists that have not ended
};

constexpr unsigned kJsonFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
constexpr int kMostAttempts = 5;
constexpr size_t kMostNames = 4096;
constexpr size_t kMostRingPlaces = 1u << 16;

// A value and its place in the text.
class Field {
 public:
  // Reads one member of an object.
  struct Reader {
    std::string_view name;
    std::function<absl::Status(const Field&)> read;
  };

  Field(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  absl::Status Wrong(std::string_view what) const {
    return absl::InvalidArgumentError(Join("service config: ", place_, place_.empty() ? "" : ": ", what));
  }
  const std::string& place() const { return place_; }

  // Reads each member by the reader of its name.
  absl::Status Object(const std::vector<Reader>& readers) const {
    if (json_.kind != Json::Kind::kObject) return Wrong("expected an object");
    std::vector<bool> seen(readers.size());
    for (size_t at = 0; at < json_.values.size(); ++at) {
      const std::string& name = json_.names[at];
      const Field field(json_.values[at], Join(place_, place_.empty() ? "" : ".", name));
      size_t i = 0;
      while (i < readers.size() && readers[i].name != name) ++i;
      if (i == readers.size()) return field.Wrong(Unknown(readers));
      if (seen[i]) return field.Wrong("this field is there twice");
      seen[i] = true;
      if (absl::Status status = readers[i].read(field); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  template <class Read>
  absl::Status Each(const Read& read) const {
    if (json_.kind != Json::Kind::kArray) return Wrong("expected a list");
    for (size_t i = 0; i < json_.values.size(); ++i) {
      if (absl::Status status = read(Field(json_.values[i], Join(place_, "[", i, "]"))); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }
  // The only member of an object: its name, and its value.
  absl::Status Single(std::string* name, const std::function<absl::Status(const Field&)>& read) const {
    if (json_.kind != Json::Kind::kObject || json_.values.size() != 1)
      return Wrong("expected an object with one member");
    *name = json_.names[0];
    return read(Field(json_.values[0], Join(place_, ".", *name)));
  }

  absl::Status Text(std::string* text) const {
    if (json_.kind != Json::Kind::kString) return Wrong("expected a string");
    *text = json_.text;
    return absl::OkStatus();
  }
  absl::Status Bool(std::optional<bool>* value) const {
    if (json_.kind != Json::Kind::kBool) return Wrong("expected true or false");
    *value = json_.boolean;
    return absl::OkStatus();
  }
  // A whole number from `least` to `most`; as gRPC has it, perhaps in quotes.
  absl::Status Whole(uint64_t least, uint64_t most, uint64_t* value) const {
    bool good = json_.whole.has_value();
    if (good) *value = *json_.whole;
    if (json_.kind == Json::Kind::kString) {
      const std::string_view text = json_.text;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
      good = error == std::errc() && end == text.data() + text.size();
    }
    if (good && *value >= least && *value <= most) return absl::OkStatus();
    return Wrong(Join("expected a whole number from ", least, " to ", most));
  }
  absl::Status Number(double above, double most, double* value) const {
    const bool number = json_.kind == Json::Kind::kNumber;
    if (number) *value = json_.number;
    if (number && *value > above && *value <= most) return absl::OkStatus();
    return Wrong(Join("expected a number above ", static_cast<int64_t>(above), ", at most ",
                      static_cast<int64_t>(most)));
  }
  // "1.5s": positive, with up to nine digits after the point.
  absl::Status Duration(Nanos* value) const {
    const auto wrong = [this] { return Wrong("expected a time above zero such as \"0.5s\""); };
    if (json_.kind != Json::Kind::kString) return wrong();
    std::string_view text = json_.text;
    if (!text.ends_with('s')) return wrong();
    text.remove_suffix(1);
    const std::string_view whole = text.substr(0, text.find('.'));
    const std::string_view part = whole.size() == text.size() ? "" : text.substr(whole.size() + 1);
    const auto digits = [](std::string_view s) { return s.find_first_not_of("0123456789") == s.npos; };
    if (whole.empty() || whole.size() > 9 || part.size() > 9 || !digits(whole) || !digits(part))
      return wrong();
    if (part.empty() && whole.size() != text.size()) return wrong();
    int64_t ns = 0;
    for (const char c : whole) ns = ns * 10 + (c - '0');
    for (size_t i = 0; i < 9; ++i) ns = ns * 10 + (i < part.size() ? part[i] - '0' : 0);
    if (ns == 0) return wrong();
    *value = Nanos(ns);
    return absl::OkStatus();
  }
  absl::Status Code(absl::StatusCode* code) const {
    if (json_.whole && *json_.whole >= 1 && *json_.whole <= 16) {
      *code = static_cast<absl::StatusCode>(*json_.whole);
      return absl::OkStatus();
    }
    for (int i = 1; i <= 16 && json_.kind == Json::Kind::kString; ++i) {
      *code = static_cast<absl::StatusCode>(i);
      if (absl::StatusCodeToString(*code) == json_.text) return absl::OkStatus();
    }
    return Wrong("expected the name of a status code such as \"UNAVAILABLE\", or its number");
  }

 private:
  static std::string Unknown(const std::vector<Reader>& readers) {
    std::string known;
    for (const Reader& reader : readers) known += Join(known.empty() ? "" : ", ", reader.name);
    return Join("there is no such field here", known.empty() ? "" : "; there are ", known);
  }

  const Json& json_;
  const std::string place_;
};

absl::Status ReadRetryPolicy(const Field& field, RetryPolicy* policy) {
  absl::Status status = field.Object(
      {{"maxAttempts",
        [&](const Field& f) {
          uint64_t attempts = 0;
          absl::Status read = f.Whole(2, 1'000'000, &attempts);
          policy->max_attempts = static_cast<int>(std::min<uint64_t>(attempts, kMostAttempts));
          return read;
        }},
       {"initialBackoff", [&](const Field& f) { return f.Duration(&policy->initial_backoff); }},
       {"maxBackoff", [&](const Field& f) { return f.Duration(&policy->max_backoff); }},
       {"backoffMultiplier", [&](const Field& f) { return f.Number(0, 1e6, &policy->multiplier); }},
       {"retryableStatusCodes", [&](const Field& f) {
          return f.Each([&](const Field& one) {
            absl::StatusCode code{};
            absl::Status read = one.Code(&code);
            policy->codes |= 1u << static_cast<unsigned>(code);
            return read;
          });
        }}});
  if (!status.ok()) return status;
  if (policy->max_attempts == 0) return field.Wrong("maxAttempts is missing");
  if (policy->initial_backoff == Nanos::zero()) return field.Wrong("initialBackoff is missing");
  if (policy->max_backoff == Nanos::zero()) return field.Wrong("maxBackoff is missing");
  if (policy->multiplier == 0) return field.Wrong("backoffMultiplier is missing");
  if (policy->codes == 0) return field.Wrong("retryableStatusCodes is missing or empty");
  return absl::OkStatus();
}

// The key of `field` in ServiceConfig::names.
absl::Status ReadName(const Field& field, std::string* key) {
  std::string service, method;
  absl::Status status = field.Object({{"service", [&](const Field& f) { return f.Text(&service); }},
                                      {"method", [&](const Field& f) { return f.Text(&method); }}});
  if (!status.ok()) return status;
  if (service.empty() && !method.empty()) return field.Wrong("a method without a service");
  if (service.find('/') != service.npos || method.find('/') != method.npos)
    return field.Wrong("a name has no '/'");
  *key = service.empty() ? std::string() : Join("/", service, "/", method);
  return absl::OkStatus();
}

absl::Status ReadMethodConfig(const Field& field, ServiceConfig* config) {
  MethodConfig method;
  bool named = false;
  const auto bytes = [](std::optional<size_t>* value) {
    return [value](const Field& f) {
      uint64_t number = 0;
      absl::Status read = f.Whole(0, UINT32_MAX, &number);
      *value = static_cast<size_t>(number);
      return read;
    };
  };
  const auto names = [&](const Field& f) {
    return f.Each([&](const Field& one) {
      std::string key;
      if (absl::Status read = ReadName(one, &key); !read.ok()) return read;
      named = true;
      if (config->names.size() == kMostNames) return one.Wrong("too many names");
      if (!config->names.emplace(key, config->methods.size()).second)
        return one.Wrong(key.empty() ? "there are two configs for all services"
                                     : Join("there are two configs for ", key));
      return absl::OkStatus();
    });
  };
  absl::Status status = field.Object(
      {{"name", names},
       {"timeout", [&](const Field& f) { return f.Duration(&method.timeout.emplace()); }},
       {"waitForReady", [&](const Field& f) { return f.Bool(&method.wait_for_ready); }},
       {"maxRequestMessageBytes", bytes(&method.max_request_bytes)},
       {"maxResponseMessageBytes", bytes(&method.max_response_bytes)},
       {"retryPolicy", [&](const Field& f) { return ReadRetryPolicy(f, &method.retry.emplace()); }},
       {"hedgingPolicy", [](const Field& f) { return f.Wrong("hedging is not supported"); }}});
  if (!status.ok()) return status;
  if (!named) return field.Wrong("name is missing or empty; [{}] means all methods");
  config->methods.push_back(method);
  return absl::OkStatus();
}

absl::Status ReadThrottle(const Field& field, ThrottleConfig* throttle) {
  double tokens = 0, ratio = 0;
  absl::Status status =
      field.Object({{"maxTokens", [&](const Field& f) { return f.Number(0, 1000, &tokens); }},
                    {"tokenRatio", [&](const Field& f) { return f.Number(0, 1000, &ratio); }}});
  if (!status.ok()) return status;
  throttle->max_milli_tokens = static_cast<int>(tokens * 1000);
  throttle->milli_ratio = static_cast<int>(ratio * 1000);
  if (throttle->max_milli_tokens == 0) return field.Wrong("maxTokens is missing, or below 0.001");
  if (throttle->milli_ratio == 0) return field.Wrong("tokenRatio is missing, or below 0.001");
  return absl::OkStatus();
}

absl::Status ReadBalancer(const Field& field, BalancerOptions* options) {
  const auto size = [](size_t* value, uint64_t least, uint64_t most) {
    return [=](const Field& f) {
      uint64_t number = 0;
      absl::Status read = f.Whole(least, most, &number);
      *value = static_cast<size_t>(number);
      return read;
    };
  };
  if (options->name.starts_with("ring_hash")) {
    absl::Status status =
        field.Object({{"minRingSize", size(&options->min_ring_size, 1, kMostRingPlaces)},
                      {"maxRingSize", size(&options->max_ring_size, 1, kMostRingPlaces)},
                      {"requestHashHeader", [&](const Field& f) { return f.Text(&options->hash_key); }}});
    if (status.ok() && options->min_ring_size > options->max_ring_size)
      return field.Wrong("minRingSize is above maxRingSize");
    return status;
  }
  if (options->name.starts_with("least_request"))
    return field.Object({{"choiceCount", size(&options->choices, 2, 10)}});
  if (options->name == "pick_first") {
    // Of gRPC; a list is used in its order here.
    std::optional<bool> shuffle;
    return field.Object({{"shuffleAddressList", [&](const Field& f) { return f.Bool(&shuffle); }}});
  }
  return field.Object({});
}

// The first balancer of the list that there is.
absl::Status ReadBalancers(const Field& field, std::optional<BalancerOptions>* balancer) {
  absl::Status status = field.Each([&](const Field& one) {
    BalancerOptions options;
    options.name.clear();
    return one.Single(&options.name, [&](const Field& value) {
      if (balancer->has_value() || !IsBalancer(options.name)) return absl::OkStatus();
      absl::Status read = ReadBalancer(value, &options);
      *balancer = options;
      return read;
    });
  });
  if (status.ok() && !balancer->has_value()) {
    return field.Wrong("none of these is known; there are pick_first, round_robin, least_request, ring_hash");
  }
  return status;
}

}  // namespace

const MethodConfig* ServiceConfig::Find(std::string_view path) const {
  auto found = names.find(path);
  if (found == names.end()) found = names.find(path.substr(0, path.rfind('/') + 1));
  if (found == names.end()) found = names.find("");
  return found == names.end() ? nullptr : &methods[found->second];
}

absl::StatusOr<ServiceConfig> ParseServiceConfig(std::string_view json) {
  if (json.size() > kMaxServiceConfigBytes) {
    return absl::InvalidArgumentError(
        Join("service config: has ", json.size(), " bytes; at most ", kMaxServiceConfigBytes));
  }
  if (json.find('\0') != json.npos) return absl::InvalidArgumentError("service config: holds a NUL");
  const std::string text(json);
  rapidjson::StringStream stream(text.c_str());
  rapidjson::Reader reader;
  JsonBuilder builder;
  if (reader.Parse<kJsonFlags>(stream, builder); reader.HasParseError()) {
    return absl::InvalidArgumentError(Join("service config: no valid JSON at byte ", reader.GetErrorOffset(),
                                           ": ", rapidjson::GetParseError_En(reader.GetParseErrorCode())));
  }
  const Json document = builder.Take();
  ServiceConfig config;
  absl::Status status =
      Field(document, "")
          .Object(
              {{"loadBalancingConfig", [&](const Field& f) { return ReadBalancers(f, &config.balancer); }},
               {"loadBalancingPolicy",
                [](const Field& f) {
                  return f.Wrong("this field is deprecated; write loadBalancingConfig");
                }},
               {"methodConfig",
                [&](const Field& f) {
                  return f.Each([&](const Field& one) { return ReadMethodConfig(one, &config); });
                }},
               {"retryThrottling",
                [&](const Field& f) { return ReadThrottle(f, &config.throttle.emplace()); }}});
  if (!status.ok()) return status;
  return config;
}

}  // namespace curtail::internal
