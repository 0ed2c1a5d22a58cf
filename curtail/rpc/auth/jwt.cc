// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A token is checked in the order of what an attacker may know: its size and form, its header, its signature,
// and only then its claims. Up to the signature each failure has the same text.
//
// Verified tokens stand in a table, each at the place that a hash of it names: a client sends one token thousands of
// times, and a signature takes longer than all the rest of a call. The hash has a secret of the process's, so that no
// client can drive another's token out at will. What a token says of time is checked at each use.
//
// No thread watches the file of keys: a call that finds a look due looks. New keys are a new set, whose number no token
// in the table has, so each is checked anew.
#include "curtail/rpc/jwt.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "curtail/base/internal/json_document.h"
#include "curtail/base/log.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/auth/jwt_keys.h"
#include "curtail/rpc/transport/file_watch.h"

namespace curtail {

using internal::DecodeBase64Url;
using internal::FileWatch;
using internal::Json;
using internal::JsonKind;
using internal::JwtAlgorithm;
using internal::JwtKey;

namespace {

constexpr JsonKind kHeader{.name = "header", .max_depth = 2, .max_keys = 16};
constexpr JsonKind kClaims{.name = "token", .max_depth = 16, .max_keys = 256};
constexpr double kMaxSeconds = 253402300800.0;  // the year 10000

// Without a "kid" each key of the algorithm costs as much as a call.
constexpr int kMostTries = 4;

// INVALID_ARGUMENT: a token could be of a key that is never tried.
absl::Status CheckTries(const std::vector<JwtKey>& keys) {
  for (const JwtKey& key : keys) {
    const auto tried = std::ranges::count_if(keys, [&](const JwtKey& one) {
      return one.algorithm() == key.algorithm() && (one.id().empty() || one.id() == key.id());
    });
    if (tried > kMostTries)
      return absl::InvalidArgumentError(Join(
          "has ", tried, " keys of one algorithm that no \"kid\" tells apart, and a token is tried with ",
          kMostTries, ": remove old keys, or name each by its \"kid\" in a JWK set"));
  }
  return absl::OkStatus();
}

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
    uint64_t set CURTAIL_GUARDED_BY(mu) = 0;  // KeySet::number
  };
  // Immutable.
  struct KeySet {
    uint64_t number = 1;
    std::vector<JwtKey> keys;
    const JwtKey* Find(const TokenHeader& header, std::string_view bytes, std::string_view signature) const;
  };
  static constexpr size_t kPlaces = 256;

  // The keys of `text` and the secret.
  absl::StatusOr<std::vector<JwtKey>> KeysOf(std::string_view text) const;
  absl::StatusOr<std::string> ReadFile() const;
  std::shared_ptr<const KeySet> Keys() {
    MutexLock lock(mu);
    return set;
  }
  // Reads the file again if it has changed, where a look at it is due.
  void LookIfDue();
  void Look();
  absl::StatusOr<JwtClaims> Check(std::string_view token, const KeySet& set) const;
  absl::StatusOr<JwtClaims> ReadClaims(std::string_view encoded) const;
  Place& PlaceOf(std::string_view token) {
    return places[(std::hash<std::string_view>{}(token)*salt >> 32) % kPlaces];
  }

  explicit Impl(const JwtOptions& o) : options(o), watch({o.key_file}, o.reload_interval) {}

  // Immutable once used.
  const JwtOptions options;
  uint64_t salt = 1;

  std::array<Place, kPlaces> places;
  // Atomic, relaxed: in ns; the thread that moves it looks at the file.
  std::atomic<int64_t> next_look{INT64_MAX};

  Mutex watch_mu;  // held while the file is read
  FileWatch watch CURTAIL_GUARDED_BY(watch_mu);
  Mutex mu;  // taken after watch_mu
  std::shared_ptr<const KeySet> set CURTAIL_GUARDED_BY(mu);
  // Atomic: that of `set`. Written under mu (release), read per token (acquire).
  std::atomic<uint64_t> number{1};
};

JwtVerifier::JwtVerifier(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JwtVerifier::~JwtVerifier() = default;

absl::StatusOr<std::string> JwtVerifier::Impl::ReadFile() const {
  std::ifstream file(options.key_file, std::ios::binary);
  if (!file) {
    return absl::InvalidArgumentError(
        Join("keys of tokens \"", options.key_file, "\": ", std::strerror(errno)));
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<std::vector<JwtKey>> JwtVerifier::Impl::KeysOf(std::string_view text) const {
  std::vector<JwtKey> keys;
  if (!text.empty() || !options.key_file.empty()) {
    auto parsed = internal::ParseJwtKeys(text);
    if (parsed.ok()) {
      if (absl::Status tried = CheckTries(*parsed); !tried.ok()) parsed = std::move(tried);
    }
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          Join("keys of tokens \"", options.key_file, "\" ", Message(parsed.status())));
    }
    keys = *std::move(parsed);
  }
  if (!options.secret.empty()) {
    auto secret = JwtKey::Secret(options.secret, {});
    if (!secret.ok()) return secret.status();
    keys.push_back(*std::move(secret));
  }
  return keys;
}

void JwtVerifier::Impl::LookIfDue() {
  int64_t due = next_look.load(std::memory_order_relaxed);
  if (due != INT64_MAX && Now().time_since_epoch().count() >= due &&
      next_look.compare_exchange_strong(due, INT64_MAX, std::memory_order_relaxed)) {
    Look();
  }
}

void JwtVerifier::Impl::Look() {
  MutexLock lock(watch_mu);
  if (watch.Changed(Now())) {
    watch.BeforeReading();
    absl::StatusOr<std::string> text = ReadFile();
    absl::StatusOr<std::vector<JwtKey>> keys = text.ok() ? KeysOf(*text) : text.status();
    if (keys.ok()) {
      Log(keys->empty() ? Severity::kWarning : Severity::kInfo,
          Join("tokens: read again: ", options.key_file,
               keys->empty() ? ", which has no key: none is valid" : ""),
          {{"file", options.key_file}});
    } else {
      Log(Severity::kError, Join("tokens: the keys stay as they were: ", Message(keys.status())),
          {{"file", options.key_file}});
    }
    if (keys.ok()) {
      MutexLock set_lock(mu);
      set = std::make_shared<const KeySet>(KeySet{set->number + 1, *std::move(keys)});
      number.store(set->number, std::memory_order_release);
    }
  }
  next_look.store(watch.next_look().time_since_epoch().count(), std::memory_order_relaxed);
}

absl::StatusOr<std::unique_ptr<JwtVerifier>> JwtVerifier::Load(const JwtOptions& options) {
  if (options.key_file.empty()) return Make(options, "");
  auto impl = std::make_unique<Impl>(options);
  TimePoint next;
  {
    MutexLock lock(impl->watch_mu);
    impl->watch.BeforeReading();
    next = impl->watch.next_look();
  }
  absl::StatusOr<std::string> text = impl->ReadFile();
  if (!text.ok()) return text.status();
  impl->next_look.store(next.time_since_epoch().count(), std::memory_order_relaxed);
  return WithKeys(std::move(impl), *text);
}

absl::StatusOr<std::unique_ptr<JwtVerifier>> JwtVerifier::Make(const JwtOptions& options,
                                                               std::string_view keys) {
  return WithKeys(std::make_unique<Impl>(options), keys);
}

absl::StatusOr<std::unique_ptr<JwtVerifier>> JwtVerifier::WithKeys(std::unique_ptr<Impl> impl,
                                                                   std::string_view text) {
  absl::StatusOr<std::vector<JwtKey>> keys = impl->KeysOf(text);
  if (!keys.ok()) return keys.status();
  if (keys->empty()) {
    return absl::InvalidArgumentError(
        "no key to verify tokens with: name a file of RSA or P-256 keys, or a secret");
  }
  {
    MutexLock lock(impl->mu);
    impl->set = std::make_shared<const Impl::KeySet>(Impl::KeySet{1, *std::move(keys)});
  }
  RAND_bytes(reinterpret_cast<unsigned char*>(&impl->salt), sizeof impl->salt);
  impl->salt |= 1;
  return std::unique_ptr<JwtVerifier>(new JwtVerifier(std::move(impl)));
}

absl::StatusOr<JwtClaims> JwtVerifier::Verify(std::string_view token, int64_t now_s) const {
  if (token.size() > kMaxTokenBytes) return Invalid();
  impl_->LookIfDue();
  const uint64_t number = impl_->number.load(std::memory_order_acquire);
  Impl::Place& place = impl_->PlaceOf(token);
  {
    MutexLock lock(place.mu);
    if (place.set == number && place.token.size() == token.size() && !token.empty() &&
        CRYPTO_memcmp(place.token.data(), token.data(), token.size()) == 0) {
      if (absl::Status late = CheckTime(place.claims, now_s, impl_->options.leeway_s); !late.ok())
        return late;
      return place.claims;
    }
  }
  const std::shared_ptr<const Impl::KeySet> set = impl_->Keys();
  absl::StatusOr<JwtClaims> claims = impl_->Check(token, *set);
  if (!claims.ok()) return claims;
  if (absl::Status late = CheckTime(*claims, now_s, impl_->options.leeway_s); !late.ok()) return late;
  MutexLock lock(place.mu);
  place.token.assign(token);
  place.claims = *claims;
  place.set = set->number;
  return claims;
}

// The key that the signature is of; null if it is of none.
const JwtKey* JwtVerifier::Impl::KeySet::Find(const TokenHeader& header, std::string_view bytes,
                                              std::string_view signature) const {
  int tries = 0;
  for (const JwtKey& key : keys) {
    const bool named = header.key_id.empty() || key.id().empty() || key.id() == header.key_id;
    if (key.algorithm() != header.algorithm || !named) continue;
    if (key.Verify(bytes, signature)) return &key;
    if (++tries == kMostTries) break;
  }
  return nullptr;
}

absl::StatusOr<JwtClaims> JwtVerifier::Impl::Check(std::string_view token, const KeySet& set) const {
  const size_t first = token.find('.');
  const size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return Invalid();
  const std::optional<TokenHeader> header = ParseHeader(token.substr(0, first));
  const std::optional<std::string> signature = DecodeBase64Url(token.substr(second + 1));
  if (!header || !signature || set.Find(*header, token.substr(0, second), *signature) == nullptr)
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
      !ReadText(*json, "sub", &claims.subject) || !ReadText(*json, "jti", &claims.id)) {
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
