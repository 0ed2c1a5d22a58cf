// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/path_id.h"

namespace curtail {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

}  // namespace

uint32_t PathIdOf(std::string_view method) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char byte : method) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619u;
  return hash == 0 ? 1 : hash;
}

std::optional<uint32_t> ParsePathId(std::string_view text) {
  if (text.size() != 8) return std::nullopt;
  uint32_t id = 0;
  for (const char digit : text) {
    if (digit >= '0' && digit <= '9') {
      id = id << 4 | static_cast<uint32_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      id = id << 4 | static_cast<uint32_t>(digit - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  if (id == 0) return std::nullopt;
  return id;
}

std::string_view FormatPathId(uint32_t id, char (&buffer)[8]) {
  for (int i = 0; i < 8; ++i) buffer[i] = kDigits[id >> (28 - 4 * i) & 15];
  return {buffer, sizeof buffer};
}

}  // namespace curtail
