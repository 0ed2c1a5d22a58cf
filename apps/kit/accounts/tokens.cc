// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/tokens.h"

#include "apps/kit/accounts/signed_token.h"
#include "apps/kit/digits.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

absl::StatusOr<Tokens> Tokens::Load(const DataOptions& data) {
  auto secret = TokenSecret(data);
  if (!secret.ok()) return secret.status();
  JwtOptions tokens;
  tokens.secret = *secret;
  tokens.issuer = IssuerOf(data);
  tokens.leeway_s = 0;
  auto verifier = JwtVerifier::Load(tokens);
  if (!verifier.ok()) return verifier.status();
  return Tokens(*std::move(secret), tokens.issuer, *std::move(verifier));
}

void Tokens::Open(const SessionId& id, int64_t lifetime_s, Session* session) const {
  session->set_user(id.user());
  session->set_expires_s(id.expires_s());
  session->set_token(SignToken(secret_, issuer_, id.user(),
                               Join(id.epoch(), ".", id.number(), id.stepped_up() ? kSteppedUpEnd : ""),
                               id.expires_s() - lifetime_s, id.expires_s()));
}

absl::StatusOr<SessionId> Tokens::Read(std::string_view token) const {
  if (token.empty()) return absl::UnauthenticatedError("log in, and send the token of the session");
  const absl::StatusOr<JwtClaims> claims = verifier_->Verify(token, NowMs() / 1000);
  if (!claims.ok()) return claims.status();
  std::string_view id = claims->id;
  SessionId session;
  session.set_stepped_up(id.ends_with(kSteppedUpEnd));
  if (session.stepped_up()) id.remove_suffix(kSteppedUpEnd.size());
  const size_t dot = id.find('.');
  const auto user = ParseDigits(claims->subject), epoch = ParseDigits(id.substr(0, dot)),
             number = ParseDigits(id.substr(dot + 1));
  if (dot == id.npos || !user || !epoch || !number)
    return absl::UnauthenticatedError("the token names no session: log in again");
  session.set_user(*user);
  session.set_epoch(*epoch);
  session.set_number(*number);
  session.set_expires_s(claims->expires_s);
  return session;
}

}  // namespace curtail::apps
