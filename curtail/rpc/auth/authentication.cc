// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/authentication.h"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

constexpr std::string_view kAuthorization = "authorization";
constexpr std::string_view kBearer = "Bearer ";

// The clock that tokens mean.
int64_t SecondsSince1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The token of a call. Errors: UNAUTHENTICATED when there is none, or more than one.
absl::StatusOr<std::string_view> TokenOf(const Metadata& metadata) {
  std::string_view value;
  int count = 0;
  for (const auto& [key, text] : metadata) {
    if (key != kAuthorization) continue;
    value = text;
    ++count;
  }
  if (count == 0) return absl::UnauthenticatedError("this call needs a token (authorization: Bearer)");
  const std::string_view scheme = value.substr(0, kBearer.size());
  if (count > 1 ||
      !absl::EqualsIgnoreCase({scheme.data(), scheme.size()}, {kBearer.data(), kBearer.size()})) {
    return absl::UnauthenticatedError("the metadata \"authorization\" is not one bearer token");
  }
  return value.substr(kBearer.size());
}

}  // namespace

JwtAuthentication::JwtAuthentication(std::unique_ptr<const JwtVerifier> verifier,
                                     std::vector<std::string> open)
    : verifier_(std::move(verifier)), open_(std::move(open)) {}

bool JwtAuthentication::IsOpen(std::string_view path) const {
  for (const std::string& open : open_) {
    if (path == open || (open.ends_with('/') && path.starts_with(open))) return true;
  }
  return false;
}

absl::Status JwtAuthentication::Before(const IncomingCall& call) {
  if (IsOpen(call.path)) return absl::OkStatus();
  const absl::StatusOr<std::string_view> token = TokenOf(call.context.metadata());
  if (!token.ok()) return token.status();
  const absl::StatusOr<JwtClaims> claims = verifier_->Verify(*token, SecondsSince1970());
  if (!claims.ok()) return claims.status();
  call.context.AddProperty("jwt.subject", claims->subject);
  call.context.AddProperty("jwt.issuer", claims->issuer);
  call.context.AddProperty("jwt.claims", claims->json);
  return absl::OkStatus();
}

BearerCredentials::BearerCredentials(std::string token, Transport transport)
    : BearerCredentials([token = std::move(token)]() -> absl::StatusOr<std::string> { return token; },
                        transport) {}

BearerCredentials::BearerCredentials(Source source, Transport transport)
    : source_(std::move(source)), transport_(transport) {}

absl::Status BearerCredentials::Before(const OutgoingCall& call, Metadata& metadata) {
  if (!call.secure && transport_ == Transport::kSecure) {
    return absl::UnauthenticatedError(
        Join("a token is not sent to ", call.target, " in plain text; use TLS or a Unix socket"));
  }
  const absl::StatusOr<std::string> token = source_();
  if (!token.ok()) return token.status();
  metadata.AddLowerCase(kAuthorization, Join(kBearer, *token));
  return absl::OkStatus();
}

}  // namespace curtail
