// SPDX-License-Identifier: Apache-2.0
//
// sessions.h - whose session a call belongs to, by its token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "apps/social/data.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/jwt.h"

namespace curtail::social {

// A Sessions knows the secret by which tokens are signed. Immutable; thread-safe.
class Sessions {
 public:
  // With the secret of TokenSecret(), whose errors it has.
  [[nodiscard]] static absl::StatusOr<Sessions> Load(const DataOptions& data);

  // The user. The token is `given`, or else the metadata "authorization: Bearer TOKEN".
  // Errors: UNAUTHENTICATED without a valid one.
  absl::StatusOr<uint64_t> CallerOf(const Context& ctx, std::string_view given) const;
  // The same, but 0 without a token.
  absl::StatusOr<uint64_t> ViewerOf(const Context& ctx, std::string_view given) const;

 private:
  explicit Sessions(std::unique_ptr<JwtVerifier> verifier) : verifier_(std::move(verifier)) {}
  std::unique_ptr<JwtVerifier> verifier_;
};

}  // namespace curtail::social
