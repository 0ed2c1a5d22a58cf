// SPDX-License-Identifier: Apache-2.0
//
// signed_token.h - JSON Web Tokens that a secret signs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace curtail::apps {

// Returns a token (HS256) of an issuer, whose subject is the user and whose id is `id`, digits and dots. curtail/rpc/jwt.h verifies
// it.
std::string SignToken(std::string_view secret, std::string_view issuer, uint64_t user, std::string_view id,
                      int64_t now_s, int64_t expires_s);

}  // namespace curtail::apps
