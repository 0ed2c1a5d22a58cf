// SPDX-License-Identifier: Apache-2.0
#include "apps/social/sessions.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "apps/social/secrets.h"

namespace curtail::social {
namespace {

std::string_view TokenOf(const Context& ctx, std::string_view given) {
  if (!given.empty()) return given;
  const std::string_view header = ctx.metadata().Find("authorization").value_or("");
  constexpr std::string_view kBearer = "Bearer ";
  return header.starts_with(kBearer) ? header.substr(kBearer.size()) : "";
}

}  // namespace

absl::StatusOr<Sessions> Sessions::Load(const DataOptions& data) {
  auto secret = TokenSecret(data);
  if (!secret.ok()) return secret.status();
  JwtOptions tokens;
  tokens.secret = *std::move(secret);
  tokens.issuer = kIssuer;
  tokens.leeway_s = 0;
  auto verifier = JwtVerifier::Load(tokens);
  if (!verifier.ok()) return verifier.status();
  return Sessions(*std::move(verifier));
}

absl::StatusOr<uint64_t> Sessions::CallerOf(const Context& ctx, std::string_view given) const {
  const std::string_view token = TokenOf(ctx, given);
  if (token.empty()) return absl::UnauthenticatedError("log in, and send the token of the session");
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const absl::StatusOr<JwtClaims> claims =
      verifier_->Verify(token, std::chrono::duration_cast<std::chrono::seconds>(now).count());
  if (!claims.ok()) return claims.status();
  uint64_t id = 0;
  const std::string& text = claims->subject;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error == std::errc() && end == text.data() + text.size()) return id;
  return absl::UnauthenticatedError("the token names no user");
}

absl::StatusOr<uint64_t> Sessions::ViewerOf(const Context& ctx, std::string_view given) const {
  return TokenOf(ctx, given).empty() ? absl::StatusOr<uint64_t>(uint64_t{0}) : CallerOf(ctx, given);
}

}  // namespace curtail::social
