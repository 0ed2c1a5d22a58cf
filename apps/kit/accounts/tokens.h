// SPDX-License-Identifier: Apache-2.0
//
// tokens.h - the tokens of sessions, which a secret of the application signs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "accounts.pb.h"
#include "apps/kit/data/data.h"
#include "curtail/rpc/jwt.h"

namespace curtail::apps {

// How the id of a token of User::StepUp() ends.
inline constexpr std::string_view kSteppedUpEnd = ".up";

// A Tokens makes and reads tokens. Thread-safe.
class Tokens {
 public:
  // Errors: as TokenSecret().
  [[nodiscard]] static absl::StatusOr<Tokens> Load(const DataOptions& data);

  // Sets the user, the end and the token of a session, which ends `lifetime_s` after it began. The same session has the same
  // token.
  void Open(const SessionId& id, int64_t lifetime_s, Session* session) const;
  // Returns the session that a token names; it may have been ended. Errors: UNAUTHENTICATED.
  absl::StatusOr<SessionId> Read(std::string_view token) const;

 private:
  Tokens(std::string secret, std::string issuer, std::unique_ptr<JwtVerifier> verifier)
      : secret_(std::move(secret)), issuer_(std::move(issuer)), verifier_(std::move(verifier)) {}

  std::string secret_, issuer_;
  std::unique_ptr<JwtVerifier> verifier_;
};

}  // namespace curtail::apps
