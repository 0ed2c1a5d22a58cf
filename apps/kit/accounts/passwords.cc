// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/passwords.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>

#include "apps/kit/data/secrets.h"

namespace curtail::apps {
namespace {

constexpr size_t kSaltBytes = 16;
constexpr size_t kKeyBytes = 32;

absl::StatusOr<std::string> Scrypt(std::string_view password, std::string_view salt) {
  constexpr uint64_t kN = 1 << 14, kR = 8, kP = 1, kMostMemory = 64 << 20;
  std::string key(kKeyBytes, '\0');
  if (EVP_PBE_scrypt(password.data(), password.size(), reinterpret_cast<const unsigned char*>(salt.data()),
                     salt.size(), kN, kR, kP, kMostMemory, reinterpret_cast<unsigned char*>(key.data()),
                     key.size()) != 1) {
    return absl::InternalError("scrypt failed: is there memory?");
  }
  return key;
}

}  // namespace

absl::StatusOr<std::string> HashPassword(std::string_view password) {
  absl::StatusOr<std::string> salt = RandomBytes(kSaltBytes);
  if (!salt.ok()) return salt;
  const absl::StatusOr<std::string> key = Scrypt(password, *salt);
  return key.ok() ? *salt + *key : key;
}

bool IsPassword(std::string_view password, std::string_view hash) {
  const bool whole = hash.size() == kSaltBytes + kKeyBytes;
  const std::string nobody(kSaltBytes + kKeyBytes, '\0');
  if (!whole) hash = nobody;
  const absl::StatusOr<std::string> key = Scrypt(password, hash.substr(0, kSaltBytes));
  return key.ok() && whole && CRYPTO_memcmp(key->data(), hash.data() + kSaltBytes, kKeyBytes) == 0;
}

}  // namespace curtail::apps
