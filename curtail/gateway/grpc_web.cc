// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/grpc_web.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "curtail/base/strings.h"
#include "curtail/wire/metadata.h"

namespace curtail::gateway {
namespace {

constexpr std::string_view kBinaryType = "application/grpc-web";
constexpr std::string_view kTextType = "application/grpc-web-text";
constexpr size_t kPrefix = 5;
constexpr char kTrailers = static_cast<char>(0x80);

bool IsType(std::string_view content_type, std::string_view type) {
  if (!content_type.starts_with(type)) return false;
  content_type.remove_prefix(type.size());
  return content_type.empty() || content_type.front() == '+' || content_type.front() == ';';
}

// Chunks of base64, each with its own padding.
std::optional<std::string> Unpack(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const size_t padding = text.find('=');
    // A padded chunk ends at a multiple of four from its start.
    const size_t end = padding == std::string_view::npos ? text.size() : padding / 4 * 4 + 4;
    if (end > text.size()) return std::nullopt;
    const std::optional<std::string> chunk = wire::Base64Decode(text.substr(0, end));
    if (!chunk) return std::nullopt;
    bytes += *chunk;
    text.remove_prefix(end);
  }
  return bytes;
}

void AddFrame(char kind, std::string_view content, std::string* out) {
  out->push_back(kind);
  for (int shift = 24; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(static_cast<uint32_t>(content.size()) >> shift));
  }
  out->append(content);
}

std::string ValueText(std::string_view key, std::string_view value) {
  return key.ends_with("-bin") ? wire::Base64Encode(value) : std::string(value);
}

void AddTrailers(const absl::Status& status, const Metadata& metadata, std::string* out) {
  std::string trailers = Join("grpc-status:", status.raw_code(), "\r\n");
  if (!Message(status).empty()) {
    trailers += Join("grpc-message:", wire::PercentEncode(Message(status)), "\r\n");
  }
  for (const auto& [key, value] : metadata) trailers += Join(key, ":", ValueText(key, value), "\r\n");
  AddFrame(kTrailers, trailers, out);
}

// Fields of HTTP that browsers and caches obey: whole names, and the beginnings of others.
constexpr std::string_view kObeyed =
    " age allow alt-svc alt-used cache-control clear-site-data critical-ch date document-policy etag "
    "expect-ct expires "
    "last-modified link location nel no-vary-search origin-agent-cluster pragma referrer-policy refresh "
    "retry-after "
    "server-timing service-worker-allowed sourcemap speculation-rules strict-transport-security "
    "supports-loading-mode "
    "timing-allow-origin trailer vary warning www-authenticate x-sourcemap x-ua-compatible ";
constexpr std::string_view kObeyedFamilies[] = {
    "accept-",   "access-control-", "attribution-", "content-",    "cross-origin-", "permissions-policy",
    "proxy-",    "public-key-pins", "report",       "sec-",        "set-cookie",    "x-accel-",
    "x-content", "x-dns-",          "x-frame-",     "x-permitted", "x-robots-",     "x-xss-"};

bool IsObeyed(std::string_view key) {
  return kObeyed.find(Join(" ", key, " ")) != std::string_view::npos ||
         std::any_of(std::begin(kObeyedFamilies), std::end(kObeyedFamilies),
                     [key](std::string_view family) { return key.starts_with(family); });
}

std::string Packed(WebForm form, std::string bytes) {
  if (form == WebForm::kBinary) return bytes;
  std::string text = wire::Base64Encode(bytes);
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

}  // namespace

std::optional<WebForm> WebFormOf(std::string_view content_type) {
  if (IsType(content_type, kTextType)) return WebForm::kText;
  if (IsType(content_type, kBinaryType)) return WebForm::kBinary;
  return std::nullopt;
}

absl::StatusOr<std::string> WebMessage(WebForm form, std::string_view body) {
  std::optional<std::string> unpacked;
  if (form == WebForm::kText) {
    unpacked = Unpack(body);
    if (!unpacked) return absl::InvalidArgumentError("the body is not base64");
    body = *unpacked;
  }
  if (body.empty()) return absl::UnimplementedError("the call carries no message");
  if (body.size() < kPrefix) return absl::InvalidArgumentError("the body is not a gRPC-Web frame");
  if (body[0] == 1) return absl::UnimplementedError("compressed messages are not taken");
  if (body[0] != 0) return absl::InvalidArgumentError("the body is not a gRPC-Web frame");
  uint32_t size = 0;
  for (size_t i = 1; i < kPrefix; ++i) size = size << 8 | static_cast<uint8_t>(body[i]);
  if (body.size() - kPrefix < size) return absl::InvalidArgumentError("the body ends within a message");
  if (body.size() - kPrefix > size) return absl::UnimplementedError("the call carries several messages");
  return std::string(body.substr(kPrefix));
}

HttpReply WebReply(WebForm form, const absl::Status& status, std::string_view message,
                   const ReplyMetadata& metadata) {
  HttpReply reply;
  reply.headers = WebHeaders(form, metadata.initial);
  std::string body;
  if (status.ok()) AddFrame(0, message, &body);
  AddTrailers(status, metadata.trailing, &body);
  reply.body = Packed(form, std::move(body));
  return reply;
}

std::vector<std::pair<std::string, std::string>> WebHeaders(WebForm form, const Metadata& initial) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (const auto& [key, value] : initial)
    headers.emplace_back(Join(IsObeyed(key) ? kMetadataPrefix : "", key), ValueText(key, value));
  headers.emplace_back("content-type", Join(form == WebForm::kText ? kTextType : kBinaryType, "+proto"));
  return headers;
}

std::string WebPart(WebForm form, std::string_view message) {
  std::string part;
  AddFrame(0, message, &part);
  return Packed(form, std::move(part));
}

std::string WebEnd(WebForm form, const absl::Status& status, const Metadata& trailing) {
  std::string part;
  AddTrailers(status, trailing, &part);
  return Packed(form, std::move(part));
}

}  // namespace curtail::gateway
