// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/metadata.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace curtail::wire {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct Unit {
  char name;
  int64_t nanos;
};

// Finest first: FormatTimeout() takes the first unit in which the value has at most eight digits.
constexpr std::array<Unit, 6> kUnits = {{{'n', 1},
                                         {'u', Nanos(microseconds(1)).count()},
                                         {'m', Nanos(milliseconds(1)).count()},
                                         {'S', Nanos(seconds(1)).count()},
                                         {'M', Nanos(minutes(1)).count()},
                                         {'H', Nanos(hours(1)).count()}}};
// Ahead of each entry of metadata.
struct Sizes {
  uint32_t key;
  uint32_t value;
};
constexpr size_t kFirstBytes = 240;

constexpr int64_t kMaxTimeoutDigits = 8;
constexpr int64_t kMaxTimeoutValue = 99'999'999;

constexpr std::array<bool, 256> kKeyChars = [] {
  std::array<bool, 256> chars{};
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyz0123456789_-.")) {
    chars[static_cast<uint8_t>(c)] = true;
  }
  return chars;
}();

bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

// The same of eight at a time. A byte below a space borrows from the next, one above '~' carries into it; either has
// failed then.
bool ArePrintable(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  return (((word - kOnes * ' ') | (word + kOnes * (0x80 - 0x7f)) | word) & kOnes * 0x80) == 0;
}

bool IsBase64Char(char c) { return absl::ascii_isalnum(c) || c == '+' || c == '/'; }

bool IsLowerOf(char lower, char c) { return lower == absl::ascii_tolower(static_cast<unsigned char>(c)); }

// The value of a hexadecimal digit, or -1.
int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Metadata::Iterator::Read() {
  if (at_ == end_) return;
  Sizes sizes;
  std::memcpy(&sizes, at_, sizeof(sizes));
  const char* const key = at_ + sizeof(sizes);
  entry_ = {{key, sizes.key}, {key + sizes.key, sizes.value}};
}

Metadata::Iterator& Metadata::Iterator::operator++() {
  at_ = entry_.second.data() + entry_.second.size();
  Read();
  return *this;
}

void Metadata::Add(std::string_view key, std::string_view value) {
  const size_t before = entries_.size();
  AddLowerCase(key, value);
  char* const added = entries_.data() + before + sizeof(Sizes);
  std::transform(added, added + key.size(), added,
                 [](char c) { return absl::ascii_tolower(static_cast<unsigned char>(c)); });
}

void Metadata::AddLowerCase(std::string_view key, std::string_view value) {
  const Sizes sizes = {static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())};
  const size_t needed = entries_.size() + sizeof(sizes) + key.size() + value.size();
  // `key` and `value` may be views of the present buffer.
  std::string before;
  if (needed > entries_.capacity()) {
    before.reserve(std::max({needed, 2 * entries_.capacity(), kFirstBytes}));
    before.append(entries_);
    before.swap(entries_);
  }
  entries_.append(reinterpret_cast<const char*>(&sizes), sizeof(sizes)).append(key).append(value);
}

std::optional<std::string_view> Metadata::Find(std::string_view key) const {
  for (const auto& [name, value] : *this) {
    if (name.size() == key.size() && std::equal(name.begin(), name.end(), key.begin(), IsLowerOf))
      return value;
  }
  return std::nullopt;
}

void Metadata::EraseIf(bool (*drop)(std::string_view key)) {
  size_t kept = 0;
  for (size_t at = 0; at < entries_.size();) {
    Sizes sizes;
    std::memcpy(&sizes, entries_.data() + at, sizeof(sizes));
    const size_t bytes = sizeof(sizes) + sizes.key + sizes.value;
    if (!drop({entries_.data() + at + sizeof(sizes), sizes.key})) {
      std::memmove(entries_.data() + kept, entries_.data() + at, bytes);
      kept += bytes;
    }
    at += bytes;
  }
  entries_.resize(kept);
}

size_t Metadata::size() const { return static_cast<size_t>(std::distance(begin(), end())); }

bool IsReservedKey(std::string_view key) {
  if (key.empty() || key[0] == ':') return true;
  // Those about retries are for applications to read, and servers' handlers send one of them.
  if (key.starts_with("grpc-")) return key != "grpc-previous-rpc-attempts" && key != "grpc-retry-pushback-ms";
  switch (key.size()) {
    case 2:
      return key == "te";
    case 4:
      return key == "host";
    case 7:
      return key == "upgrade";
    case 10:
      return key == "user-agent" || key == "connection" || key == "keep-alive";
    case 12:
      return key == "content-type";
    case 14:
      return key == "content-length";
    case 16:
      return key == "proxy-connection";
    case 17:
      return key == "transfer-encoding";
    default:
      return false;
  }
}

bool IsCustomKey(std::string_view key) {
  if (IsReservedKey(key)) return false;
  bool all = true;
  for (const char c : key) all &= kKeyChars[static_cast<uint8_t>(c)];
  return all;
}

bool IsTextValue(std::string_view value) {
  if (value.empty()) return true;
  if (value.front() == ' ' || value.back() == ' ') return false;
  const char* at = value.data();
  const char* const end = at + value.size();
  for (; end - at >= 8; at += 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    if (!ArePrintable(word)) return false;
  }
  return std::all_of(at, end, [](char c) { return IsPrintable(c); });
}

std::optional<Nanos> ParseTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > kMaxTimeoutDigits + 1) return std::nullopt;
  const char unit_name = text.back();
  text.remove_suffix(1);
  int64_t value = 0;
  for (char c : text) {
    if (!absl::ascii_isdigit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  for (const Unit& unit : kUnits) {
    if (unit.name != unit_name) continue;
    if (value > Nanos::max().count() / unit.nanos) return Nanos::max();
    return Nanos(value * unit.nanos);
  }
  return std::nullopt;
}

std::string_view FormatTimeout(Nanos timeout, char (&buffer)[12]) {
  const int64_t nanos = std::max<int64_t>(timeout.count(), 1);
  for (const Unit& unit : kUnits) {
    const int64_t value = nanos / unit.nanos + (nanos % unit.nanos != 0 ? 1 : 0);
    if (value > kMaxTimeoutValue) continue;
    char* end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
    *end++ = unit.name;
    return {buffer, static_cast<size_t>(end - buffer)};
  }
  return "99999999H";  // not reached: the longest representable time is some 2.6 million hours
}

std::string PercentEncode(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (IsPrintable(c) && c != '%') {
      out.push_back(c);
    } else {
      const auto byte = static_cast<uint8_t>(c);
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out;
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out.push_back(static_cast<char>(high * 16 + low));
        i += 2;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

std::string Base64Encode(std::string_view bytes) {
  std::string out = absl::Base64Escape({bytes.data(), bytes.size()});
  while (!out.empty() && out.back() == '=') out.pop_back();
  return out;
}

std::optional<std::string> Base64Decode(std::string_view text) {
  for (int padding = 0; padding < 2 && !text.empty() && text.back() == '='; ++padding) text.remove_suffix(1);
  // Checked here because the library's decoder also takes white space and a second alphabet.
  if (text.size() % 4 == 1 || !std::all_of(text.begin(), text.end(), IsBase64Char)) return std::nullopt;
  std::string out;
  if (!absl::Base64Unescape({text.data(), text.size()}, &out)) return std::nullopt;
  return out;
}

}  // namespace curtail::wire
