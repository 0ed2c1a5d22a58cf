// SPDX-License-Identifier: Apache-2.0
//
// jwt.h - verifies JSON Web Tokens (RFC 7519) that are signed: HS256, RS256 and ES256.
//
// A key belongs to one algorithm, so that no token chooses how it is verified: an RSA key verifies
// RS256, one of the curve P-256 ES256, a secret HS256. "none", encrypted tokens, critical header
// parameters and keys within tokens are refused. Nothing of a token but its header is read before
// its signature holds. authentication.h puts it before the handlers of a server.
//
// Code: auth/jwt.cc, auth/jwt_keys.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail {

struct JwtOptions {
  // A file of keys: a JWK set (JSON), or PEM with public keys and certificates.
  std::string key_file;
  // From one look at the file to the next; zero: never. A file that has changed is read again by
  // the thread whose token is verified next. One that cannot be used leaves the keys as they were.
  // A token of a key that is gone is refused from then on; a JWK set may be empty by then.
  Nanos reload_interval = std::chrono::seconds(10);
  // A secret for HS256, of 32 bytes and more, beside or instead of the file.
  std::string secret;
  // If set, the token's "iss" is this, and its "aud" is or contains this. A service that shares its
  // issuer with others sets the audience, or takes their tokens, too.
  std::string issuer;
  std::string audience;
  // The difference of clocks for which "exp" and "nbf" make allowance.
  int64_t leeway_s = 60;
  // Takes tokens without "exp". They are valid for ever.
  bool allow_endless = false;
};

// The statements of a verified token.
struct JwtClaims {
  std::string subject;  // "sub"; empty without
  std::string issuer;   // "iss"
  std::string id;       // "jti"
  std::string json;     // all of them, as the issuer wrote them
  // In seconds since 1970; the extremes of the type without "exp" and "nbf".
  int64_t expires_s = INT64_MAX;
  int64_t not_before_s = INT64_MIN;
};

// A JwtVerifier holds keys, and the tokens that it has verified last, as one client sends one token
// many times. Thread-safe; its locks are held for some hundred nanoseconds.
class JwtVerifier {
 public:
  static constexpr size_t kMaxTokenBytes = 8192;
  static constexpr size_t kMaxKeys = 64;

  // Errors: INVALID_ARGUMENT for a file that cannot be read or used, a key that is too weak (RSA
  // below 2048 bits, a secret below 32 bytes), or no key at all. May take some milliseconds.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<JwtVerifier>> Load(const JwtOptions& options);
  // The same with the content of a file; JwtOptions::key_file is never read.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<JwtVerifier>> Make(const JwtOptions& options,
                                                                         std::string_view keys);
  ~JwtVerifier();
  JwtVerifier(const JwtVerifier&) = delete;
  JwtVerifier& operator=(const JwtVerifier&) = delete;

  // The claims of `token` at `now_s`, in seconds since 1970. A new token takes some 30 to 100 us of
  // CPU, a repeated one less than one.
  // The one that finds the file changed takes as long as Load().
  // Errors: UNAUTHENTICATED. The text says nothing of the token's content, nor of the keys.
  [[nodiscard]] absl::StatusOr<JwtClaims> Verify(std::string_view token, int64_t now_s) const;

 private:
  struct Impl;
  explicit JwtVerifier(std::unique_ptr<Impl> impl);
  static absl::StatusOr<std::unique_ptr<JwtVerifier>> WithKeys(std::unique_ptr<Impl> impl,
                                                               std::string_view text);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace curtail
