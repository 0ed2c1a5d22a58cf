// SPDX-License-Identifier: Apache-2.0
//
// secrets.h - passwords that are kept as scrypt hashes, and tokens that are signed with a secret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail::apps {

// The secret in the file `path`; a new one, which only this user can read, if there is no file. All processes that ask
// get the same. Errors: FAILED_PRECONDITION (too short, or readable to others).
absl::StatusOr<std::string> SecretOf(const std::string& path);

// A JSON Web Token (HS256) of an issuer, whose subject is the user and whose id is `id`, digits and dots. curtail/rpc/jwt.h verifies it.
std::string SignToken(std::string_view secret, std::string_view issuer, uint64_t user, std::string_view id,
                      int64_t now_s, int64_t expires_s);

// The metadata that says where a client is, for calls that check its password.
inline constexpr std::string_view kClientAddress = "x-forwarded-for";

// How the id of a token of User::StepUp() ends.
inline constexpr std::string_view kSteppedUpEnd = ".up";

// TOTP, RFC 6238, with SHA-1: the code of six digits that an app shows in the step `step`, of 30 s each since 1970.
std::string CodeOf(std::string_view secret, int64_t step);
inline constexpr int64_t kCodeStepS = 30;
// RFC 4648, section 6, without padding.
std::string InBase32(std::string_view bytes);

// A salt and the hash of a password: scrypt, N = 2^14, r = 8, p = 1. Takes some 50 ms and 16 MiB. Errors: INTERNAL.
absl::StatusOr<std::string> HashPassword(std::string_view password);
// True if `hash` is of the password. Takes as long, whatever `hash` is.
bool IsPassword(std::string_view password, std::string_view hash);

// Returns HMAC-SHA-256 of `text`: 32 bytes, from which nobody without the secret finds a text, even one of few.
std::string Mac(std::string_view secret, std::string_view text);

// Random bytes. Errors: INTERNAL.
absl::StatusOr<std::string> RandomBytes(size_t count);

}  // namespace curtail::apps
