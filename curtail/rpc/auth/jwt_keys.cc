// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/auth/jwt_keys.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/jwt.h"

namespace curtail::internal {
namespace {

constexpr size_t kSha256Bytes = 32;
constexpr size_t kMinSecretBytes = 32;  // RFC 7518, 3.2
constexpr int kMinRsaBits = 2048;       // RFC 7518, 3.3
constexpr int kMaxRsaBits = 8192;       // a larger one would take milliseconds a token
constexpr size_t kCoordinateBytes = 32;
constexpr JsonKind kJwkSet{.name = "JWK set", .max_depth = 8, .max_keys = 64};

template <class T, void (*Free)(T*)>
struct Freer {
  void operator()(T* object) const { Free(object); }
};
using PkeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX, EVP_MD_CTX_free>>;
using PkeyContextPtr = std::unique_ptr<EVP_PKEY_CTX, Freer<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
using BuilderPtr = std::unique_ptr<OSSL_PARAM_BLD, Freer<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>>;
using ParamsPtr = std::unique_ptr<OSSL_PARAM, Freer<OSSL_PARAM, OSSL_PARAM_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Freer<BIGNUM, BN_free>>;
using SignaturePtr = std::unique_ptr<ECDSA_SIG, Freer<ECDSA_SIG, ECDSA_SIG_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509, X509_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

NumberPtr Number(std::string_view bytes) {
  return NumberPtr(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

bool IsP256(const EVP_PKEY* key) {
  char group[32] = {};
  size_t size = 0;
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
         EVP_PKEY_get_group_name(key, group, sizeof group, &size) == 1 &&
         (std::string_view(group, size) == "prime256v1" || std::string_view(group, size) == "P-256");
}

// A key of `type` with the parameters that were pushed.
PkeyPtr FromParameters(const char* type, OSSL_PARAM_BLD* builder) {
  const ParamsPtr params(OSSL_PARAM_BLD_to_param(builder));
  const PkeyContextPtr context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  PkeyPtr made(key);
  const PkeyContextPtr check(EVP_PKEY_CTX_new_from_pkey(nullptr, made.get(), nullptr));
  return check != nullptr && EVP_PKEY_public_check(check.get()) == 1 ? std::move(made) : nullptr;
}

PkeyPtr RsaKey(std::string_view n, std::string_view e) {
  const BuilderPtr builder(OSSL_PARAM_BLD_new());
  const NumberPtr modulus = Number(n), exponent = Number(e);
  if (n.size() > kMaxRsaBits / 8 || e.size() > 8 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
    return nullptr;
  }
  return FromParameters("RSA", builder.get());
}

PkeyPtr EcKey(std::string_view x, std::string_view y) {
  if (x.size() != kCoordinateBytes || y.size() != kCoordinateBytes) return nullptr;
  const std::string point = Join("\x04", x, y);
  const BuilderPtr builder(OSSL_PARAM_BLD_new());
  if (OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) !=
          1) {
    return nullptr;
  }
  return FromParameters("EC", builder.get());
}

// The signature of RFC 7518, 3.4, as OpenSSL wants it; empty if it is none.
std::string DerSignature(std::string_view raw) {
  if (raw.size() != 2 * kCoordinateBytes) return {};
  const SignaturePtr signature(ECDSA_SIG_new());
  NumberPtr r = Number(raw.substr(0, kCoordinateBytes)), s = Number(raw.substr(kCoordinateBytes));
  if (ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) return {};
  r.release(), s.release();
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return {};
  std::string text(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return text;
}

bool VerifyDigest(EVP_PKEY* key, std::string_view bytes, std::string_view signature) {
  const DigestPtr digest(EVP_MD_CTX_new());
  return digest != nullptr && EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(digest.get(), Bytes(signature), signature.size(), Bytes(bytes), bytes.size()) == 1;
}

// A member that is text; empty without.
std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string BytesOf(const Json& object, const char* key) {
  return DecodeBase64Url(TextOf(object, key)).value_or(std::string());
}

// Nothing for a key that is not for signatures of the three algorithms.
absl::StatusOr<std::optional<JwtKey>> FromJwk(const Json& jwk) {
  const std::string type = TextOf(jwk, "kty"), use = TextOf(jwk, "use"), algorithm = TextOf(jwk, "alg");
  const std::string id = TextOf(jwk, "kid");
  const auto for_us = [&](const char* name) {
    return (use.empty() || use == "sig") && (algorithm.empty() || algorithm == name);
  };
  const auto wrong = [&] {
    return absl::InvalidArgumentError(Join("a key of type ", type, " is malformed"));
  };
  absl::StatusOr<JwtKey> key = absl::UnknownError("");
  if (type == "RSA" && for_us("RS256")) {
    PkeyPtr rsa = RsaKey(BytesOf(jwk, "n"), BytesOf(jwk, "e"));
    if (rsa == nullptr) return wrong();
    key = JwtKey::Public(rsa.release(), id);
  } else if (type == "EC" && TextOf(jwk, "crv") == "P-256" && for_us("ES256")) {
    PkeyPtr ec = EcKey(BytesOf(jwk, "x"), BytesOf(jwk, "y"));
    if (ec == nullptr) return wrong();
    key = JwtKey::Public(ec.release(), id);
  } else if (type == "oct" && for_us("HS256")) {
    key = JwtKey::Secret(BytesOf(jwk, "k"), id);
  } else {
    return std::optional<JwtKey>();
  }
  if (!key.ok()) return key.status();
  return std::optional<JwtKey>(*std::move(key));
}

absl::StatusOr<std::vector<JwtKey>> ParseJwkSet(std::string_view text) {
  absl::StatusOr<Json> json = ParseJson(text, kJwkSet);
  if (!json.ok()) return json.status();
  const auto found = json->is_object() ? json->find("keys") : json->end();
  if (!json->is_object() || found == json->end() || !found->is_array()) {
    return absl::InvalidArgumentError("is not a JWK set: it has no array \"keys\"");
  }
  std::vector<JwtKey> keys;
  absl::Status unusable;  // a key that cannot be used is passed over (RFC 7517, 5)
  for (const Json& jwk : *found) {
    if (!jwk.is_object()) {
      unusable.Update(absl::InvalidArgumentError("is not a JWK set: a key is not an object"));
      continue;
    }
    absl::StatusOr<std::optional<JwtKey>> key = FromJwk(jwk);
    unusable.Update(key.status());
    if (!key.ok() || !key->has_value()) continue;
    keys.push_back(**std::move(key));
    if (keys.size() > JwtVerifier::kMaxKeys) return absl::InvalidArgumentError("has too many keys");
  }
  if (keys.empty() && !unusable.ok()) return unusable;
  return keys;
}

// The public key in a block of PEM; null if it has none.
PkeyPtr FromPemBlock(std::string_view name, const unsigned char* data, long size) {
  if (name == PEM_STRING_PUBLIC) return PkeyPtr(d2i_PUBKEY(nullptr, &data, size));
  if (name != PEM_STRING_X509) return nullptr;
  const X509Ptr certificate(d2i_X509(nullptr, &data, size));
  return PkeyPtr(certificate == nullptr ? nullptr : X509_get_pubkey(certificate.get()));
}

absl::StatusOr<std::vector<JwtKey>> ParsePem(std::string_view text) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  std::vector<JwtKey> keys;
  char *name = nullptr, *header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  absl::Status status;
  while (status.ok() && PEM_read_bio(bio.get(), &name, &header, &data, &size) == 1) {
    const std::string_view kind = name;
    if (PkeyPtr found = FromPemBlock(kind, data, size)) {
      absl::StatusOr<JwtKey> key = JwtKey::Public(found.release(), {});
      status = key.status();
      if (key.ok()) keys.push_back(*std::move(key));
    } else {
      status = absl::InvalidArgumentError(
          Join("holds a ", kind, "; tokens are verified with public keys and certificates"));
    }
    OPENSSL_free(name), OPENSSL_free(header), OPENSSL_free(data);
    if (keys.size() > JwtVerifier::kMaxKeys) status = absl::InvalidArgumentError("has too many keys");
  }
  if (!status.ok()) return status;
  if (keys.empty()) return absl::InvalidArgumentError("holds no key in PEM, and is not a JWK set");
  return keys;
}

}  // namespace

absl::StatusOr<JwtKey> JwtKey::Public(evp_pkey_st* key, std::string id) {
  std::shared_ptr<evp_pkey_st> owned(key, &EVP_PKEY_free);
  if (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA) {
    const int bits = EVP_PKEY_get_bits(key);
    if (bits < kMinRsaBits || bits > kMaxRsaBits) {
      return absl::InvalidArgumentError(
          Join("has an RSA key of ", bits, " bits; use ", kMinRsaBits, " to ", kMaxRsaBits));
    }
    JwtKey made(JwtAlgorithm::kRs256, std::move(id));
    made.key_ = std::move(owned);
    return made;
  }
  if (!IsP256(key)) return absl::InvalidArgumentError("has a key that is neither RSA nor of the curve P-256");
  JwtKey made(JwtAlgorithm::kEs256, std::move(id));
  made.key_ = std::move(owned);
  return made;
}

absl::StatusOr<JwtKey> JwtKey::Secret(std::string secret, std::string id) {
  if (secret.size() < kMinSecretBytes) {
    return absl::InvalidArgumentError(
        Join("has a secret of ", secret.size(), " bytes; HS256 wants ", kMinSecretBytes, " at least"));
  }
  JwtKey made(JwtAlgorithm::kHs256, std::move(id));
  made.secret_ = std::move(secret);
  return made;
}

bool JwtKey::Verify(std::string_view bytes, std::string_view signature) const {
  switch (algorithm_) {
    case JwtAlgorithm::kHs256: {
      unsigned char mac[EVP_MAX_MD_SIZE];
      unsigned size = 0;
      HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), Bytes(bytes), bytes.size(), mac,
           &size);
      return size == kSha256Bytes && signature.size() == size &&
             CRYPTO_memcmp(mac, signature.data(), size) == 0;
    }
    case JwtAlgorithm::kRs256:
      return VerifyDigest(key_.get(), bytes, signature);
    case JwtAlgorithm::kEs256: {
      const std::string der = DerSignature(signature);
      return !der.empty() && VerifyDigest(key_.get(), bytes, der);
    }
  }
  return false;
}

absl::StatusOr<std::vector<JwtKey>> ParseJwtKeys(std::string_view text) {
  constexpr size_t kMostBytes = 1 << 20;
  if (text.size() > kMostBytes) return absl::InvalidArgumentError("is too long for a file of keys");
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '{') return ParseJwkSet(text);
  return ParsePem(text);
}

std::optional<std::string> DecodeBase64Url(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (!std::all_of(text.begin(), text.end(), allowed)) return std::nullopt;
  std::string bytes, again;
  if (!absl::WebSafeBase64Unescape({text.data(), text.size()}, &bytes)) return std::nullopt;
  absl::WebSafeBase64Escape(bytes, &again);
  if (again != text) return std::nullopt;
  return bytes;
}

}  // namespace curtail::internal
