// SPDX-License-Identifier: Apache-2.0
//
// jwt_testing.h - keys and tokens for tests, signed on the spot.
#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "curtail/base/strings.h"

namespace curtail {

inline std::string Base64Url(std::string_view bytes) {
  std::string text;
  absl::WebSafeBase64Escape(std::string(bytes), &text);
  return text;
}

// "HEADER.CLAIMS", which a signature makes a token.
inline std::string Unsigned(std::string_view header, std::string_view claims) {
  return Join(Base64Url(header), ".", Base64Url(claims));
}

inline std::string SignedBySecret(std::string_view header, std::string_view claims, std::string_view secret) {
  const std::string bytes = Unsigned(header, claims);
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), mac, &size);
  return Join(bytes, ".", Base64Url({reinterpret_cast<char*>(mac), size}));
}

// A TestKey is a key pair that signs tokens.
class TestKey {
 public:
  static TestKey Rsa(int bits = 2048) { return TestKey(EVP_RSA_gen(static_cast<unsigned>(bits))); }
  static TestKey Ec(const char* curve = "P-256") { return TestKey(EVP_EC_gen(curve)); }
  ~TestKey() { EVP_PKEY_free(key_); }
  TestKey(const TestKey&) = delete;
  TestKey& operator=(const TestKey&) = delete;

  std::string PublicPem() const { return Pem(&PEM_write_bio_PUBKEY); }
  std::string PrivatePem() const {
    return Pem([](BIO* bio, const EVP_PKEY* key) {
      return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  // {"kty":"RSA",...}; `more` stands behind the key's members: ,"kid":"a"
  std::string Jwk(std::string_view more = "") const {
    if (EVP_PKEY_get_base_id(key_) == EVP_PKEY_RSA) {
      return Join(R"({"kty":"RSA","n":")", NumberText(OSSL_PKEY_PARAM_RSA_N), R"(","e":")",
                  NumberText(OSSL_PKEY_PARAM_RSA_E), "\"", more, "}");
    }
    return Join(R"({"kty":"EC","crv":"P-256","x":")", NumberText(OSSL_PKEY_PARAM_EC_PUB_X, 32), R"(","y":")",
                NumberText(OSSL_PKEY_PARAM_EC_PUB_Y, 32), "\"", more, "}");
  }

  std::string Sign(std::string_view header, std::string_view claims) const {
    const std::string bytes = Unsigned(header, claims);
    EVP_MD_CTX* const digest = EVP_MD_CTX_new();
    size_t size = 1024;
    std::string signature(size, '\0');
    EVP_DigestSignInit(digest, nullptr, EVP_sha256(), nullptr, key_);
    EVP_DigestSign(digest, reinterpret_cast<unsigned char*>(signature.data()), &size,
                   reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    EVP_MD_CTX_free(digest);
    signature.resize(size);
    if (EVP_PKEY_get_base_id(key_) == EVP_PKEY_EC) signature = RawSignature(signature);
    return Join(bytes, ".", Base64Url(signature));
  }

 private:
  explicit TestKey(EVP_PKEY* key) : key_(key) {}

  template <class Write>
  std::string Pem(Write write) const {
    BIO* const bio = BIO_new(BIO_s_mem());
    write(bio, key_);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string text(data, static_cast<size_t>(size));
    BIO_free(bio);
    return text;
  }
  std::string NumberText(const char* name, int size = 0) const {
    BIGNUM* number = nullptr;
    EVP_PKEY_get_bn_param(key_, name, &number);
    std::string bytes(static_cast<size_t>(size > 0 ? size : BN_num_bytes(number)), '\0');
    BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
    BN_free(number);
    return Base64Url(bytes);
  }
  static std::string RawSignature(const std::string& der) {
    const auto* data = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* const signature = d2i_ECDSA_SIG(nullptr, &data, static_cast<long>(der.size()));
    std::string raw(64, '\0');
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), reinterpret_cast<unsigned char*>(raw.data()), 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), reinterpret_cast<unsigned char*>(raw.data()) + 32, 32);
    ECDSA_SIG_free(signature);
    return raw;
  }

  EVP_PKEY* const key_;
};

}  // namespace curtail
