// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as memcached's answers: what is read does not depend on how the bytes arrive, lies within them,
// and is bounded. And any bytes as a key: the command is one line, of which the key can be read back.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "curtail/store/memcached_codec.h"

namespace {

using namespace curtail::memcached;

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckAnswer(std::string_view bytes) {
  const ParsedAnswer parsed = ParseAnswer(bytes);
  Require(parsed.consumed <= bytes.size());
  if (parsed.consumed == 0) {
    Require(parsed.wanted > bytes.size());
    Require(parsed.wanted <= kMaxValueBytes + 4096);
    return;
  }
  const auto within = [&](std::string_view view) {
    return view.empty() ||
           (view.data() >= bytes.data() && view.data() + view.size() <= bytes.data() + bytes.size());
  };
  Require(within(parsed.answer.value));
  if (parsed.answer.kind == Answer::Kind::kBroken) return;
  Require(within(parsed.answer.text));
  // A byte less is not enough, and what follows changes nothing.
  Require(ParseAnswer(bytes.substr(0, parsed.consumed - 1)).consumed == 0);
  const ParsedAnswer alone = ParseAnswer(bytes.substr(0, parsed.consumed));
  Require(alone.consumed == parsed.consumed && alone.answer.kind == parsed.answer.kind &&
          alone.answer.value == parsed.answer.value);
}

// As memcached decodes it.
std::string FromBase64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const size_t digit = kDigits.find(c);
    Require(digit != std::string_view::npos);
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) count -= 8, bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return bytes;
}

void CheckKeyRoundTrip(std::string_view key) {
  if (!CheckKey(key).ok()) return;
  std::string line;
  AppendDelete(key, &line);
  Require(line.find("\r\n") == line.size() - 2 && line.starts_with("md "));
  const std::string_view rest = std::string_view(line).substr(3, line.size() - 5);
  const size_t space = rest.find(' ');
  const std::string_view word = rest.substr(0, space);
  Require(word.size() <= 250);
  if (space == std::string_view::npos) {
    Require(word == key);
  } else {
    Require(rest.substr(space) == " b" && FromBase64(word) == key);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckAnswer(bytes);
  CheckAnswer("VA " + std::string(bytes));
  CheckKeyRoundTrip(bytes);
  return 0;
}
