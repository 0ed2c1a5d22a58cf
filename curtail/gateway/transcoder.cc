// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/transcoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"

#include "curtail/base/internal/closest.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/strings.h"
#include "curtail/gateway/internal/field_setter.h"
#include "curtail/wire/metadata.h"
#include "google/api/http.pb.h"
#include "google/api/httpbody.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/unknown_field_set.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "google/rpc/error_details.pb.h"

namespace curtail::gateway {
namespace {

namespace pb = google::protobuf;
using curtail::internal::Compact;
using curtail::internal::Json;
using google::api::HttpRule;

constexpr int kHttpOption = 72295728;  // of google/api/annotations.proto
constexpr char kTypeUrl[] = "type.googleapis.com";
constexpr size_t kMaxRules = 100;           // of a method
constexpr std::string_view kAnyVerb = "*";  // of a custom rule
constexpr size_t kMaxQueryFields = 1000;

// The rules of a method. Its options may have them as an extension that this program does not know.
absl::StatusOr<std::vector<HttpRule>> RulesOf(const pb::MethodDescriptor& method) {
  pb::UnknownFieldSet fields;
  if (!fields.ParseFromString(method.options().SerializeAsString())) {
    return absl::InvalidArgumentError("its options are malformed");
  }
  std::vector<HttpRule> rules;
  for (int i = 0; i < fields.field_count(); ++i) {
    const pb::UnknownField& field = fields.field(i);
    if (field.number() != kHttpOption || field.type() != pb::UnknownField::TYPE_LENGTH_DELIMITED) continue;
    HttpRule rule;
    if (!rule.ParseFromString(field.length_delimited())) {
      return absl::InvalidArgumentError("its google.api.http option is malformed");
    }
    rules.insert(rules.end(), rule.additional_bindings().begin(), rule.additional_bindings().end());
    rules.push_back(std::move(rule));
  }
  if (rules.size() > kMaxRules) return absl::InvalidArgumentError(Join("more than ", kMaxRules, " rules"));
  return rules;
}

// "GET" and the path of a rule; nothing where it has no path.
std::pair<std::string, std::string> PatternOf(const HttpRule& rule) {
  switch (rule.pattern_case()) {
    case HttpRule::kGet:
      return {"GET", rule.get()};
    case HttpRule::kPut:
      return {"PUT", rule.put()};
    case HttpRule::kPost:
      return {"POST", rule.post()};
    case HttpRule::kDelete:
      return {"DELETE", rule.delete_()};
    case HttpRule::kPatch:
      return {"PATCH", rule.patch()};
    case HttpRule::kCustom:
      return {rule.custom().kind(), rule.custom().path()};
    case HttpRule::PATTERN_NOT_SET:
      break;
  }
  return {};
}

// `type` has a field that the dotted `path` names.
bool HasField(const pb::Descriptor* type, std::string_view path) {
  while (type != nullptr) {
    const size_t dot = path.find('.');
    const pb::FieldDescriptor* const field = type->FindFieldByName(std::string(path.substr(0, dot)));
    if (field == nullptr || dot == std::string_view::npos) return field != nullptr;
    path.remove_prefix(dot + 1);
    type = field->is_repeated() ? nullptr : field->message_type();
  }
  return false;
}

bool IsHttpBody(const pb::Descriptor* type) {
  return type != nullptr && std::string_view(type->full_name()) == "google.api.HttpBody";
}

// The rule's body is bytes of any type.
bool HasRawBody(const pb::Descriptor& request, const std::string& body) {
  if (body == "*") return IsHttpBody(&request);
  const pb::FieldDescriptor* const field = request.FindFieldByName(body);
  return field != nullptr && !field->is_repeated() && IsHttpBody(field->message_type());
}

// The request whose body is these bytes.
std::string WithRawBody(const Route& route, std::string_view body, std::string_view type) {
  google::api::HttpBody raw;
  raw.set_content_type(std::string(type));
  raw.set_data(std::string(body));
  if (route.body == "*") return raw.SerializeAsString();
  pb::UnknownFieldSet request;
  request.AddLengthDelimited(route.method.descriptor->input_type()->FindFieldByName(route.body)->number(),
                             raw.SerializeAsString());
  std::string bytes;
  request.SerializeToString(&bytes);
  return bytes;
}

absl::Status CheckRoute(const Route& route) {
  const pb::Descriptor* const request = route.method.descriptor->input_type();
  for (const std::string_view field : route.path.fields()) {
    if (!HasField(request, field)) {
      return absl::InvalidArgumentError(Join("its path names a field that is not there: ", field));
    }
  }
  if (!route.body.empty() && route.body != "*" && request->FindFieldByName(route.body) == nullptr) {
    return absl::InvalidArgumentError(Join("its body names a field that is not there: ", route.body));
  }
  if (!route.response_body.empty() &&
      route.method.descriptor->output_type()->FindFieldByName(route.response_body) == nullptr) {
    return absl::InvalidArgumentError(
        Join("its response_body names a field that is not there: ", route.response_body));
  }
  return absl::OkStatus();
}

std::string UrlOf(const pb::Descriptor& type) { return Join(kTypeUrl, "/", std::string(type.full_name())); }

// Of a query: '+' is a space.
std::string DecodeQuery(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return DecodePath(spaced, false);
}

// Takes what stands before the first `end` from the text, and `end`; all if there is none.
std::string_view CutAt(char end, std::string_view* text) {
  const size_t at = text->find(end);
  const std::string_view part = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + 1);
  return part;
}

absl::Status SetFromQuery(pb::Message& message, const Route& route, std::string_view query) {
  for (size_t fields = 0; !query.empty(); ++fields) {
    if (fields == kMaxQueryFields) {
      return absl::InvalidArgumentError(Join("a query of more than ", kMaxQueryFields, " fields"));
    }
    std::string_view text = CutAt('&', &query);
    if (text.empty()) continue;
    const std::string name = DecodeQuery(CutAt('=', &text));
    const bool of_body = name == route.body || name.starts_with(Join(route.body, "."));
    if (!route.body.empty() && of_body) {
      return absl::InvalidArgumentError(Join("field ", name, " is the body's"));
    }
    if (absl::Status status = internal::SetField(message, name, DecodeQuery(text)); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

}  // namespace

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

struct Transcoder::Impl {
  explicit Impl(const pb::DescriptorPool* pool)
      : resolver(pb::util::NewTypeResolverForDescriptorPool(kTypeUrl, pool)),
        usual(google::rpc::ErrorInfo::descriptor()->file()->pool()),
        usual_resolver(pb::util::NewTypeResolverForDescriptorPool(kTypeUrl, usual)),
        described(pool),
        factory(pool) {}

  // A message of the type that `url` names as JSON; nothing if no file describes the type, or it is malformed.
  std::optional<Json> Print(std::string_view url, const std::string& bytes) const {
    const std::string name(url.substr(url.rfind('/') + 1));
    const pb::Descriptor* type = described == nullptr ? nullptr : described->FindMessageTypeByName(name);
    const bool theirs = type != nullptr;
    if (!theirs) type = usual->FindMessageTypeByName(name);
    if (type == nullptr) return std::nullopt;
    pb::MessageFactory* const generated = pb::MessageFactory::generated_factory();
    const pb::Message* const prototype = theirs ? factory.GetPrototype(type) : generated->GetPrototype(type);
    // BinaryToJsonString() takes a broken end for the end.
    if (!std::unique_ptr<pb::Message>(prototype->New())->ParsePartialFromString(bytes)) return std::nullopt;
    std::string text;
    const auto printed =
        pb::util::BinaryToJsonString((theirs ? resolver : usual_resolver).get(), UrlOf(*type), bytes, &text);
    if (!printed.ok()) return std::nullopt;
    Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return std::nullopt;
    return json;
  }

  const std::unique_ptr<pb::util::TypeResolver> resolver;
  // google/rpc/error_details.proto, for servers that do not describe it.
  const pb::DescriptorPool* const usual;
  const std::unique_ptr<pb::util::TypeResolver> usual_resolver;
  const pb::DescriptorPool* const described;  // the server's
  // Thread-safe by itself.
  mutable pb::DynamicMessageFactory factory;
};

Transcoder::Transcoder(Catalog catalog) : catalog_(std::move(catalog)) {}
Transcoder::~Transcoder() = default;

absl::StatusOr<std::unique_ptr<Transcoder>> Transcoder::Make(Catalog catalog,
                                                             const std::vector<std::string>& services) {
  std::unique_ptr<Transcoder> self(new Transcoder(std::move(catalog)));
  const pb::DescriptorPool* pool = pb::DescriptorPool::generated_pool();
  std::vector<std::string> missing = services;
  std::vector<std::string> known;
  for (const CatalogMethod& method : self->catalog_.ListMethods()) {
    const std::string& service = method.descriptor->service()->full_name();
    if (known.empty() || known.back() != service) known.push_back(service);
    const bool built_in = service.starts_with("grpc.health.") || service.starts_with("grpc.reflection.");
    if (services.empty() ? built_in : std::ranges::find(services, service) == services.end()) continue;
    std::erase(missing, service);
    pool = method.descriptor->file()->pool();
    self->AddRoutes(method);
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(Join("the target has no service ", missing.front(),
                                           curtail::internal::NamesHint(missing.front(), known)));
  }
  // Find() takes the first that matches; of two alike the one that was declared first.
  const auto before = [](const Route& a, const Route& b) {
    if (a.path.IsMoreSpecificThan(b.path)) return true;
    return !b.path.IsMoreSpecificThan(a.path) && a.verb != kAnyVerb && b.verb == kAnyVerb;
  };
  std::vector<Route> sorted;
  for (Route& route : self->routes_)
    sorted.insert(std::ranges::upper_bound(sorted, route, before), std::move(route));
  self->routes_ = std::move(sorted);
  self->impl_ = std::make_unique<Impl>(pool);
  return self;
}

void Transcoder::AddRoutes(const CatalogMethod& method) {
  const auto warn = [&](const absl::Status& status) {
    warnings_.push_back(Join("method ", method.path, ": ", Message(status), "; this HTTP rule is left out"));
  };
  absl::StatusOr<std::vector<HttpRule>> rules = RulesOf(*method.descriptor);
  if (!rules.ok()) {
    warn(rules.status());
    rules.emplace();
  }
  HttpRule always;
  always.set_post(method.path);
  always.set_body("*");
  rules->push_back(std::move(always));
  for (const HttpRule& rule : *rules) {
    if (absl::Status status = AddRoute(method, rule); !status.ok()) warn(status);
  }
}

absl::Status Transcoder::AddRoute(const CatalogMethod& method, const HttpRule& rule) {
  auto [verb, text] = PatternOf(rule);
  absl::StatusOr<PathTemplate> path = PathTemplate::Parse(text);
  if (!path.ok()) return path.status();
  Route route{method, std::move(verb), *std::move(path), rule.body(), rule.response_body()};
  if (absl::Status status = CheckRoute(route); !status.ok()) return status;
  if (!method.client_streaming && route.path.text() != method.path) {
    route.raw_body = HasRawBody(*method.descriptor->input_type(), route.body);
    route.raw_reply = route.response_body.empty() && IsHttpBody(method.descriptor->output_type());
  }
  routes_.push_back(std::move(route));
  return absl::OkStatus();
}

absl::StatusOr<Transcoder::Match> Transcoder::Find(std::string_view verb, std::string_view path) const {
  std::string others;
  for (const Route& route : routes_) {
    Match match{&route, {}};
    if (!route.path.Match(path, &match.bindings)) continue;
    if (route.verb == verb || route.verb == kAnyVerb) return match;
    others += Join(others.empty() ? "" : ", ", route.verb);
  }
  if (!others.empty()) return absl::UnimplementedError(others);
  return absl::NotFoundError(
      Join("there is no method at ", path.substr(0, 200), "; methods are at /package.Service/Method"));
}

bool IsMediaType(std::string_view content_type, std::string_view type) {
  if (!absl::StartsWithIgnoreCase({content_type.data(), content_type.size()}, {type.data(), type.size()}))
    return false;
  content_type.remove_prefix(type.size());
  return content_type.empty() || content_type[0] == ';' || content_type[0] == ' ' || content_type[0] == '\t';
}

absl::StatusOr<std::string> Transcoder::Request(const Match& match, std::string_view query,
                                                std::string_view body, std::string_view type_of_body) const {
  const Route& route = *match.route;
  const pb::Descriptor& type = *route.method.descriptor->input_type();
  std::string json = "{}";
  if (route.body.empty() && !body.empty()) {
    return absl::InvalidArgumentError("this request takes no body");
  }
  const bool form = !route.raw_body && !body.empty() && IsMediaType(type_of_body, kForm);
  if (form && route.body != "*") {
    return absl::InvalidArgumentError("a form is a whole request, and this body is a part");
  }
  const bool in_json = !route.raw_body && !form && !body.empty();
  if (route.body == "*" && in_json) json = body;
  if (!route.body.empty() && route.body != "*" && in_json) {
    // The body is one value: it cannot add fields beside its own.
    if (!Json::accept(body)) return absl::InvalidArgumentError("the body is not JSON");
    json = Join("{\"", std::string_view(type.FindFieldByName(route.body)->json_name()), "\":", body, "}");
  }
  std::string bytes;
  if (route.raw_body) {
    bytes = WithRawBody(route, body, type_of_body);
  } else if (const auto parsed =
                 pb::util::JsonToBinaryString(impl_->resolver.get(), UrlOf(type), json, &bytes);
             !parsed.ok()) {
    const std::string why(parsed.message());  // a picture of the place may follow on lines of its own
    return absl::InvalidArgumentError(Join("the body is not a valid ", std::string_view(type.full_name()),
                                           " in JSON: ", why.substr(0, why.find('\n'))));
  }
  if (match.bindings.empty() && query.empty() && !form) return bytes;
  const std::unique_ptr<pb::Message> message(impl_->factory.GetPrototype(&type)->New());
  if (!message->ParsePartialFromString(bytes)) return absl::InternalError("no message");
  if (!query.empty()) {
    if (route.body == "*") return absl::InvalidArgumentError("this request takes no query");
    if (absl::Status status = SetFromQuery(*message, route, query); !status.ok()) return status;
  }
  if (form) {
    if (absl::Status status = SetFromQuery(*message, route, body); !status.ok()) return status;
  }
  // The path has the last word.
  for (const auto& [field, value] : match.bindings) {
    if (absl::Status status = internal::SetField(*message, field, value); !status.ok()) return status;
  }
  return message->SerializePartialAsString();
}

absl::StatusOr<RawReply> Transcoder::Raw(std::string_view bytes) {
  google::api::HttpBody raw;
  if (!raw.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InternalError("the reply is not a google.api.HttpBody");
  }
  RawReply reply{.type = std::move(*raw.mutable_content_type()), .bytes = std::move(*raw.mutable_data())};
  // Nothing that would end a header.
  const bool plain = !reply.type.empty() && std::all_of(reply.type.begin(), reply.type.end(),
                                                        [](char c) { return c >= ' ' && c <= '~'; });
  if (!plain) reply.type = kAnyBytes;
  return reply;
}

absl::StatusOr<std::string> Transcoder::Reply(const Route& route, std::string_view bytes) const {
  const pb::Descriptor& type = *route.method.descriptor->output_type();
  pb::util::JsonPrintOptions options;
  options.always_print_primitive_fields = !route.response_body.empty();
  std::string json;
  const auto printed =
      pb::util::BinaryToJsonString(impl_->resolver.get(), UrlOf(type), std::string(bytes), &json, options);
  if (!printed.ok()) {
    return absl::InternalError(Join("the reply is not a valid ", std::string_view(type.full_name())));
  }
  if (route.response_body.empty()) return json;
  const Json document = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto member = document.find(std::string(type.FindFieldByName(route.response_body)->json_name()));
  return member == document.end() ? "{}" : Compact(*member);
}

std::string Transcoder::Error(const absl::Status& status) const {
  Json details = Json::array();
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    const std::string bytes(payload);
    Json detail = {{"@type", std::string(url)}};
    const std::optional<Json> json = impl_->Print({url.data(), url.size()}, bytes);
    // Those have forms of their own.
    const bool well_known = absl::StrContains(url, "/google.protobuf.");
    if (json && json->is_object() && !well_known) {
      detail.update(*json);
    } else {
      detail["value"] = json ? *json : Json(wire::Base64Encode(bytes));
    }
    details.push_back(std::move(detail));
  });
  return Compact({{"code", static_cast<int>(status.code())},
                  {"message", std::string(Message(status))},
                  {"details", std::move(details)}});
}

}  // namespace curtail::gateway
