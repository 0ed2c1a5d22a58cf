// SPDX-License-Identifier: Apache-2.0
//
// jwt_keys.h - the keys that signatures of tokens are checked with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

struct evp_pkey_st;

namespace curtail::internal {

enum class JwtAlgorithm { kHs256, kRs256, kEs256 };

// A JwtKey is a public key or a secret, for one algorithm. Immutable, so thread-safe.
class JwtKey {
 public:
  // Takes the reference. Errors: INVALID_ARGUMENT for a kind or size of key that is not for signatures here.
  static absl::StatusOr<JwtKey> Public(evp_pkey_st* key, std::string id);
  static absl::StatusOr<JwtKey> Secret(std::string secret, std::string id);

  JwtAlgorithm algorithm() const { return algorithm_; }
  const std::string& id() const { return id_; }  // "kid"; empty: for all tokens of the algorithm
  // True if `signature`, in the form of RFC 7518, is of `bytes`. Takes the same time for all signatures of a secret.
  bool Verify(std::string_view bytes, std::string_view signature) const;

 private:
  JwtKey(JwtAlgorithm algorithm, std::string id) : algorithm_(algorithm), id_(std::move(id)) {}

  JwtAlgorithm algorithm_;
  std::string id_;
  std::string secret_;
  std::shared_ptr<evp_pkey_st> key_;
};

// The keys of a file: a JWK set, or PEM. Keys of a set that are for other algorithms or uses are left out.
// Errors: INVALID_ARGUMENT, to be read after the name of the file.
absl::StatusOr<std::vector<JwtKey>> ParseJwtKeys(std::string_view text);

// Base64 of RFC 7515: no padding, no space, and only the one form of each value.
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace curtail::internal
