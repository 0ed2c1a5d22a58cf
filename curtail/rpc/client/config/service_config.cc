// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The tokens of RapidJSON become a tree, as the text is short. Each object is read by a table of its fields, and
// unknown ones are passed over; a Field knows its place in the text, so that every error names it:
//
//   service config: methodConfig[0].retryPolicy.maxAttempts: expected a whole number of at least 2
#include "curtail/rpc/client/config/service_config.h"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/client/config/balancer_config.h"
#include "curtail/rpc/client/config/json_field.h"

namespace curtail::internal {
namespace {

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
constexpr size_t kMostNames = 4096;

// Adds the codes of a list to a set of bits.
absl::Status ReadCodes(const Field& field, uint32_t* codes) {
  return field.Each([&](const Field& one) {
    absl::StatusCode code{};
    absl::Status read = one.Code(&code);
    *codes |= 1u << static_cast<unsigned>(code);
    return read;
  });
}

absl::Status ReadAttempts(const Field& field, int* attempts) {
  uint64_t number = 0;
  absl::Status read = field.Whole(2, 1'000'000, &number);
  *attempts = static_cast<int>(std::min<uint64_t>(number, kMostAttempts));
  return read;
}

absl::Status ReadHedgingPolicy(const Field& field, HedgingPolicy* policy) {
  absl::Status status = field.Object(
      {{"maxAttempts", [&](const Field& f) { return ReadAttempts(f, &policy->max_attempts); }},
       {"hedgingDelay", [&](const Field& f) { return f.Duration(&policy->delay, /*zero=*/true); }},
       {"nonFatalStatusCodes", [&](const Field& f) { return ReadCodes(f, &policy->codes); }}});
  if (status.ok() && policy->max_attempts == 0) return field.Wrong("maxAttempts is missing");
  return status;
}

absl::Status ReadRetryPolicy(const Field& field, RetryPolicy* policy) {
  absl::Status status = field.Object(
      {{"maxAttempts", [&](const Field& f) { return ReadAttempts(f, &policy->max_attempts); }},
       {"initialBackoff", [&](const Field& f) { return f.Duration(&policy->initial_backoff); }},
       {"maxBackoff", [&](const Field& f) { return f.Duration(&policy->max_backoff); }},
       {"backoffMultiplier", [&](const Field& f) { return f.Number(0, 1e6, &policy->multiplier); }},
       {"retryableStatusCodes", [&](const Field& f) { return ReadCodes(f, &policy->codes); }}});
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
       {"hedgingPolicy", [&](const Field& f) { return ReadHedgingPolicy(f, &method.hedging.emplace()); }}});
  if (!status.ok()) return status;
  if (method.retry && method.hedging)
    return field.Wrong("has a retryPolicy and a hedgingPolicy; a method has one of them");
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
  rapidjson::MemoryStream stream(json.data(), json.size());  // StringStream reads beyond half a character
  rapidjson::Reader reader;
  JsonBuilder builder;
  if (reader.Parse<kJsonFlags>(stream, builder); reader.HasParseError()) {
    return absl::InvalidArgumentError(Join("service config: no valid JSON at byte ", reader.GetErrorOffset(),
                                           ": ", rapidjson::GetParseError_En(reader.GetParseErrorCode())));
  }
  const Json document = builder.Take();
  ServiceConfig config;
  std::string policy;  // of the deprecated field
  absl::Status status =
      Field(document, "")
          .Object(
              {{"loadBalancingConfig", [&](const Field& f) { return ReadBalancers(f, &config.balancer); }},
               {"healthCheckConfig",
                [&](const Field& f) {
                  return f.Object({{"serviceName", [&](const Field& name) {
                                      return name.Text(&config.health_service.emplace());
                                    }}});
                }},
               {"loadBalancingPolicy", [&](const Field& f) { return f.Text(&policy); }},
               {"methodConfig",
                [&](const Field& f) {
                  return f.Each([&](const Field& one) { return ReadMethodConfig(one, &config); });
                }},
               {"retryThrottling",
                [&](const Field& f) { return ReadThrottle(f, &config.throttle.emplace()); }}});
  if (!status.ok()) return status;
  // loadBalancingConfig goes before it.
  absl::AsciiStrToLower(&policy);
  if (!config.balancer && IsBalancer(policy)) config.balancer.emplace().name = policy;
  return config;
}

}  // namespace curtail::internal
