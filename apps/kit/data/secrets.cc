// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/secrets.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/escaping.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr size_t kSaltBytes = 16;
constexpr size_t kKeyBytes = 32;

std::string InBase64(std::string_view bytes) {
  std::string text;
  absl::WebSafeBase64Escape(std::string(bytes), &text);
  return text;
}

const unsigned char* Octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

absl::StatusOr<std::string> Scrypt(std::string_view password, std::string_view salt) {
  constexpr uint64_t kN = 1 << 14, kR = 8, kP = 1, kMostMemory = 64 << 20;
  std::string key(kKeyBytes, '\0');
  if (EVP_PBE_scrypt(password.data(), password.size(), Octets(salt), salt.size(), kN, kR, kP, kMostMemory,
                     reinterpret_cast<unsigned char*>(key.data()), key.size()) != 1) {
    return absl::InternalError("scrypt failed: is there memory?");
  }
  return key;
}

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::NotFoundError(Join(path, ": ", std::generic_category().message(errno)));
  std::string secret(4096, '\0');
  struct stat file = {};
  const ssize_t got = fstat(fd, &file) == 0 ? read(fd, secret.data(), secret.size()) : -1;
  close(fd);
  if (got < static_cast<ssize_t>(kSecretBytes)) {
    return absl::FailedPreconditionError(
        Join(path, " holds no secret of ", kSecretBytes, " bytes or more; remove it for a new one"));
  }
  // Its group may read it, as a container's does what is mounted for it.
  if ((file.st_mode & 037) != 0) {
    return absl::FailedPreconditionError(Join(path, " can be read by others: chmod 600 ", path));
  }
  secret.resize(static_cast<size_t>(got));
  return secret;
}

}  // namespace

absl::StatusOr<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1) return bytes;
  return absl::InternalError("no random bytes");
}

absl::StatusOr<std::string> SecretOf(const std::string& path) {
  absl::StatusOr<std::string> known = ReadSecret(path);
  if (!absl::IsNotFound(known.status())) return known;
  const absl::StatusOr<std::string> secret = RandomBytes(kSecretBytes);
  if (!secret.ok()) return secret.status();
  // Written whole under another name, then linked: the first process wins, and the others read its secret.
  const std::string mine = Join(path, ".", getpid());
  const int fd = open(mine.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = fd >= 0 &&
                       write(fd, secret->data(), secret->size()) == static_cast<ssize_t>(kSecretBytes) &&
                       fsync(fd) == 0;
  if (fd >= 0) close(fd);
  const bool linked = written && (link(mine.c_str(), path.c_str()) == 0 || errno == EEXIST);
  unlink(mine.c_str());
  if (!linked) return absl::FailedPreconditionError(Join(path, " cannot be written"));
  return ReadSecret(path);
}

std::string SignToken(std::string_view secret, std::string_view issuer, uint64_t user, std::string_view id,
                      int64_t now_s, int64_t expires_s) {
  const std::string claims = Join(R"({"iss":")", issuer, R"(","sub":")", user, R"(","jti":")", id,
                                  R"(","iat":)", now_s, R"(,"exp":)", expires_s, "}");
  const std::string text = Join(InBase64(R"({"alg":"HS256","typ":"JWT"})"), ".", InBase64(claims));
  return Join(text, ".", InBase64(Mac(secret, text)));
}

std::string Mac(std::string_view secret, std::string_view text) {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), Octets(text), text.size(), mac, &size);
  return {reinterpret_cast<const char*>(mac), size};
}

std::string CodeOf(std::string_view secret, int64_t step) {
  unsigned char counter[8], mac[EVP_MAX_MD_SIZE];
  for (int i = 0; i < 8; ++i) counter[i] = static_cast<unsigned char>(step >> (56 - 8 * i));
  unsigned size = 0;
  HMAC(EVP_sha1(), secret.data(), static_cast<int>(secret.size()), counter, sizeof(counter), mac, &size);
  const unsigned char* const part = mac + (mac[size - 1] & 15);  // RFC 4226, section 5.3
  const uint32_t number = (part[0] & 127u) << 24 | part[1] << 16 | part[2] << 8 | part[3];
  const std::string digits = Join(1'000'000 + number % 1'000'000);
  return digits.substr(1);
}

std::string InBase32(std::string_view bytes) {
  std::string text;
  uint32_t held = 0;
  int bits = 0;
  for (const char byte : bytes) {
    held = held << 8 | static_cast<unsigned char>(byte);
    for (bits += 8; bits >= 5; bits -= 5) text += "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[held >> (bits - 5) & 31];
  }
  if (bits > 0) text += "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[held << (5 - bits) & 31];
  return text;
}

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
