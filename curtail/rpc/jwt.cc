// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A token is checked in the order of what an attacker may know: its size and form, its header, its signature,
// and only then its claims. Up to the signature each failure has the same text.
//
// Verified tokens stand in a table, each at the place that a hash of it names: a client sends one token thousands of
// times, and a signature takes longer than all the rest of a call. The hash has a secret of the process's, so that no
// client can drive another's token out at will. What a token says of time is checked at each use.
#include "curtail/rpc/jwt.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "curtail/base/internal/json_document.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/auth/jwt_keys.h"

namespace curtail {

using internal::DecodeBase64Url;
using internal::Json;
using internal::JsonKind;
using internal::JwtAlgorithm;
using internal::JwtKey;

namespace {

constexpr JsonKind kHeader{.name = "header", .max_depth = 2, .max_keys = 16};
constexpr JsonKind kClaims{.name = "token", .max_depth = 16, .max_keys = 256};
constexpr double kMaxSeconds = 253402300800.0;  // the year 10000

// The same for all that is wrong before the signature has been checked, and for the signature.
absl::Status Invalid() { return absl::UnauthenticatedError("the token is not valid"); }

struct TokenHeader {
  JwtAlgorithm algorithm;
  std::string key_id;
};

std::optional<TokenHeader> ParseHeader(std::string_view encoded) {
  const std::optional<std::string> text = DecodeBase64Url(encoded);
  if (!text || text->empty() || text->front() != '{') return std::nullopt;
  const absl::StatusOr<Json> json = internal::ParseJson(*text, kHeader);
  if (!json.ok() || json->contains("crit") || json->contains("enc") || json->contains("b64")) {
    return std::nullopt;
  }
  const auto algorithm = json->find("alg");
  if (algorithm == json->end() || !algorithm->is_string()) return std::nullopt;
  TokenHeader header;
  if (*algorithm == "HS256") {
    header.algorithm = JwtAlgorithm::kHs256;
  } else if (*algorithm == "RS256") {
    header.algorithm = JwtAlgorithm::kRs256;
  } else if (*algorithm == "ES256") {
    header.algorithm = JwtAlgorithm::kEs256;
  } else {
    return std::nullopt;
  }
  if (const auto id = json->find("kid"); id != json->end()) {
    if (!id->is_string()) return std::nullopt;
    header.key_id = id->get<std::string>();
  }
  return header;
}

// A time of a token. False: it is there, and is none.
bool ReadTime(const Json& claims, const char* key, int64_t* seconds) {
  const auto found = claims.find(key);
  if (found == claims.end()) return true;
  if (!found->is_number()) return false;
  const auto value = found->get<double>();
  if (!(std::abs(value) < kMaxSeconds)) return false;
  *seconds = static_cast<int64_t>(std::floor(value));
  return true;
}

// A text of a token; the same.
bool ReadText(const Json& claims, const char* key, std::string* text) {
  const auto found = claims.find(key);
  if (found == claims.end()) return true;
  if (!found->is_string()) return false;
  *text = found->get<std::string>();
  return true;
}

bool IsFor(const Json& claims, const std::string& audience) {
  const auto found = claims.find("aud");
  if (found == claims.end()) return false;
  if (found->is_string()) return *found == audience;
  if (!found->is_array()) return false;
  for (const Json& one : *found) {
    if (one.is_string() && one == audience) return true;
  }
  return false;
}

absl::Status CheckTime(const JwtClaims& claims, int64_t now_s, int64_t leeway_s) {
  if (claims.expires_s != INT64_MAX && now_s - leeway_s >= claims.expires_s) {
    return absl::UnauthenticatedError("the token has expired");
  }
  if (claims.not_before_s != INT64_MIN && now_s + leeway_s < claims.not_before_s) {
    return absl::UnauthenticatedError("the token is not valid yet");
  }
  return absl::OkStatus();
}

}  // namespace

struct JwtVerifier::Impl {
  struct Place {
    Mutex mu;
    std::string token CURTAIL_GUARDED_BY(mu);
    JwtClaims claims CURTAIL_GUARDED_BY(mu);
  };
  static constexpr size_t kPlaces = 256;

  const JwtKey* KeyFor(const TokenHeader& header, std::string_view bytes, std::string_view signature) const;
  absl::StatusOr<JwtClaims> Check(std::string_view token) const;
  absl::StatusOr<JwtClaims> ReadClaims(std::string_view encoded) const;
  Place& PlaceOf(std::string_view token) {
    return places[(std::hash<std::string_view>{}(token)*salt >> 32) % kPlaces];
  }

  JwtOptions options;
  std::vector<JwtKey> keys;
  uint64_t salt = 1;
  std::array<Place, kPlaces> places;
};

JwtVerifier::JwtVerifier(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JwtVerifier::~JwtVerifier() = default;

absl::StatusOr<std::unique_ptr<JwtVerifier>> JwtVerifier::Load(const JwtOptions& options) {
  std::string text;
  if (!options.key_file.empty()) {
    std::ifstream file(options.key_file, std::ios::binary);
    if (!file) {
      return absl::InvalidArgumentError(
          Join("keys of tokens \"", options.key_file, "\": ", std::strerror(errno)));
    }
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  return Make(options, text);
}

absl::StatusOr<std::unique_ptr<JwtVerifier>> JwtVerifier::Make(const JwtOptions& options,
                                                               std::string_view keys) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (!keys.empty()) {
    auto parsed = internal::ParseJwtKeys(keys);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          Join("keys of tokens \"", options.key_file, "\" ", Message(parsed.status())));
    }
    impl->keys = *std::move(parsed);
  }
  if (!options.secret.empty()) {
    auto secret = JwtKey::Secret(options.secret, {});
    if (!secret.ok()) return secret.status();
    impl->keys.push_back(*std::move(secret));
  }
  if (impl->keys.empty()) {
    return absl::InvalidArgumentError(
        "no key to verify tokens with: name a file of RSA or P-256 keys, or a secret");
  }
  RAND_bytes(reinterpret_cast<unsigned char*>(&impl->salt), sizeof impl->salt);
  impl->salt |= 1;
  return std::unique_ptr<JwtVerifier>(new JwtVerifier(std::move(impl)));
}

absl::StatusOr<JwtClaims> JwtVerifier::Verify(std::string_view token, int64_t now_s) const {
  if (token.size() > kMaxTokenBytes) return Invalid();
  Impl::Place& place = impl_->PlaceOf(token);
  {
    MutexLock lock(place.mu);
    if (place.token.size() == token.size() && !token.empty() &&
        CRYPTO_memcmp(place.token.data(), token.data(), token.size()) == 0) {
      if (absl::Status late = CheckTime(place.claims, now_s, impl_->options.leeway_s); !late.ok())
        return late;
      return place.claims;
    }
  }
  absl::StatusOr<JwtClaims> claims = impl_->Check(token);
  if (!claims.ok()) return claims;
  if (absl::Status late = CheckTime(*claims, now_s, impl_->options.leeway_s); !late.ok()) return late;
  MutexLock lock(place.mu);
  place.token.assign(token);
  place.claims = *claims;
  return claims;
}

// The key that the signature is of; null if it is of none.
const JwtKey* JwtVerifier::Impl::KeyFor(const TokenHeader& header, std::string_view bytes,
                                        std::string_view signature) const {
  constexpr int kMostTries = 4;  // without a "kid" each key of the algorithm costs as much as a call
  int tries = 0;
  for (const JwtKey& key : keys) {
    const bool named = header.key_id.empty() || key.id().empty() || key.id() == header.key_id;
    if (key.algorithm() != header.algorithm || !named) continue;
    if (key.Verify(bytes, signature)) return &key;
    if (++tries == kMostTries) break;
  }
  return nullptr;
}

absl::StatusOr<JwtClaims> JwtVerifier::Impl::Check(std::string_view token) const {
  const size_t first = token.find('.');
  const size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return Invalid();
  const std::optional<TokenHeader> header = ParseHeader(token.substr(0, first));
  const std::optional<std::string> signature = DecodeBase64Url(token.substr(second + 1));
  if (!header || !signature || KeyFor(*header, token.substr(0, second), *signature) == nullptr)
    return Invalid();
  return ReadClaims(token.substr(first + 1, second - first - 1));
}

absl::StatusOr<JwtClaims> JwtVerifier::Impl::ReadClaims(std::string_view encoded) const {
  std::optional<std::string> text = DecodeBase64Url(encoded);
  if (!text) return Invalid();
  const absl::StatusOr<Json> json = internal::ParseJson(*text, kClaims);
  JwtClaims claims;
  if (!json.ok() || !json->is_object() || !ReadTime(*json, "exp", &claims.expires_s) ||
      !ReadTime(*json, "nbf", &claims.not_before_s) || !ReadText(*json, "iss", &claims.issuer) ||
      !ReadText(*json, "sub", &claims.subject)) {
    return Invalid();
  }
  if (claims.expires_s == INT64_MAX && !options.allow_endless) {
    return absl::UnauthenticatedError("the token never expires, which is not accepted");
  }
  if (!options.issuer.empty() && claims.issuer != options.issuer) {
    return absl::UnauthenticatedError("the token is of another issuer");
  }
  if (!options.audience.empty() && !IsFor(*json, options.audience)) {
    return absl::UnauthenticatedError("the token is for another audience");
  }
  claims.json = *std::move(text);
  return claims;
}

}  // namespace curtail
