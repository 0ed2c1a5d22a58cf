// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a token, as a signed token's header and claims, and as a file of keys: an error whose text is one of a
// few, or claims that the options allow.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "curtail/rpc/auth/jwt_keys.h"
#include "curtail/rpc/auth/jwt_testing.h"
#include "curtail/rpc/jwt.h"

namespace {

using namespace curtail;

constexpr int64_t kNow = 1'700'000'000;

void Require(bool holds) {
  if (!holds) std::abort();
}

const std::string& Secret() {
  static const std::string secret(32, 's');
  return secret;
}

const JwtVerifier& Verifier() {
  static const auto verifier = [] {
    const TestKey rsa = TestKey::Rsa(), ec = TestKey::Ec();
    return JwtVerifier::Make({.secret = Secret(), .audience = "a"}, rsa.PublicPem() + ec.PublicPem()).value();
  }();
  return *verifier;
}

void Check(std::string_view token, bool may_hold) {
  const auto claims = Verifier().Verify(token, kNow);
  if (claims.ok()) {
    Require(may_hold && claims->expires_s > kNow - 61 && claims->not_before_s < kNow + 61);
    Require(Verifier().Verify(token, kNow)->json == claims->json);
    return;
  }
  Require(absl::IsUnauthenticated(claims.status()) && claims.status().message().size() < 60);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      Check(text, /*may_hold=*/false);
      break;
    case 1:
      Check(SignedBySecret(R"({"alg":"HS256"})", text, Secret()), true);
      break;
    case 2:
      Check(SignedBySecret(text, R"({"aud":"a","exp":1700000100})", Secret()), true);
      break;
    default: {
      const auto keys = internal::ParseJwtKeys(text);
      Require(keys.ok() ? keys->size() <= JwtVerifier::kMaxKeys : !keys.status().message().empty());
    }
  }
  return 0;
}
