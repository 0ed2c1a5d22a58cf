// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/one_time_code.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "curtail/base/strings.h"

namespace curtail::apps {

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

}  // namespace curtail::apps
