// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/memcached_codec.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "curtail/base/strings.h"

namespace curtail::memcached {
namespace {

// memcached's longest line is an error message.
constexpr size_t kMaxLine = 2048;

bool FitsText(std::string_view key) {
  return std::none_of(key.begin(), key.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte == 0x7f;
  });
}

// With padding, which memcached wants and gRPC's form leaves out.
void AppendBase64(std::string_view bytes, std::string* out) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](size_t j) {
      return j < bytes.size() ? uint32_t{static_cast<unsigned char>(bytes[j])} : 0;
    };
    const uint32_t three = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    out->push_back(kDigits[three >> 18]);
    out->push_back(kDigits[three >> 12 & 63]);
    out->push_back(i + 1 < bytes.size() ? kDigits[three >> 6 & 63] : '=');
    out->push_back(i + 2 < bytes.size() ? kDigits[three & 63] : '=');
  }
}

// The key, and behind it what belongs before the flags; then the flag that says how the key is written.
void AppendKey(std::string_view key, std::string_view then, std::string* out) {
  if (FitsText(key)) {
    out->append(key).append(then);
  } else {
    AppendBase64(key, out);
    out->append(then).append(" b");
  }
}

ParsedAnswer Whole(size_t consumed, Answer answer) { return {.consumed = consumed, .answer = answer}; }
ParsedAnswer Broken(size_t consumed, std::string_view text) {
  return Whole(consumed, {.kind = Answer::Kind::kBroken, .text = text});
}

// The number that `text` begins with, up to a space or the end.
std::optional<uint64_t> LeadingNumber(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || (rest != end && *rest != ' ')) return std::nullopt;
  return number;
}

// `line` is "VA SIZE FLAGS..." without its end.
ParsedAnswer ParseValue(std::string_view bytes, std::string_view line) {
  const std::optional<uint64_t> size = LeadingNumber(line.substr(3));
  if (!size) return Broken(line.size() + 2, "a value without its size");
  if (*size > kMaxValueBytes) return Broken(line.size() + 2, "a value of more than 1 MiB");
  const size_t begin = line.size() + 2;
  const size_t total = begin + *size + 2;
  if (bytes.size() < total) return {.wanted = total};
  if (bytes.substr(total - 2, 2) != kLineEnd) return Broken(total, "a value without an end");
  Answer answer{.kind = Answer::Kind::kValue, .value = bytes.substr(begin, *size)};
  if (const size_t flag = line.find(" c"); flag != std::string_view::npos) {
    const std::optional<uint64_t> version = LeadingNumber(line.substr(flag + 2));
    if (!version) return Broken(total, "a value with a wrong version");
    answer.version = *version;
  }
  return Whole(total, answer);
}

// The kind of an answer that is a line of one word (and flags).
std::optional<Answer::Kind> KindOf(std::string_view line) {
  const std::string_view word = line.substr(0, line.find(' '));
  if (word == "EN" || word == "NF") return Answer::Kind::kMiss;
  if (word == "HD" || word == "OK") return Answer::Kind::kDone;
  if (word == "NS" || word == "EX") return Answer::Kind::kNotStored;
  if (word == "SERVER_ERROR") return Answer::Kind::kRefused;
  return std::nullopt;
}

}  // namespace

absl::Status CheckKey(std::string_view key) {
  if (key.empty()) return absl::InvalidArgumentError("the key is empty; want 1 to 250 bytes");
  if (key.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(Join("the key has ", key.size(), " bytes; want 1 to 250"));
  }
  if (key.size() > kMaxBinaryKeyBytes && !FitsText(key)) {
    return absl::InvalidArgumentError(Join("the key has ", key.size(),
                                           " bytes, some of them spaces or control characters; want at most ",
                                           kMaxBinaryKeyBytes, ", or 250 without those"));
  }
  return absl::OkStatus();
}

absl::Status CheckValue(std::string_view value) {
  if (value.size() <= kMaxValueBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("the value has ", value.size(), " bytes; want at most ", kMaxValueBytes));
}

void AppendGet(std::string_view key, std::string* out) {
  out->append("mg ");
  AppendKey(key, " v", out);
  out->append(kLineEnd);
}

void AppendVersionedGet(std::string_view key, std::string* out) {
  out->append("mg ");
  AppendKey(key, " v c", out);
  out->append(kLineEnd);
}

void AppendSetHead(std::string_view key, size_t value_bytes, bool if_absent, std::string* out) {
  out->append("ms ");
  AppendKey(key, Join(" ", value_bytes), out);
  out->append(if_absent ? " ME\r\n" : "\r\n");
}

void AppendReplaceHead(std::string_view key, size_t value_bytes, uint64_t version, std::string* out) {
  out->append("ms ");
  AppendKey(key, Join(" ", value_bytes), out);
  out->append(Join(" C", version, kLineEnd));
}

void AppendDelete(std::string_view key, std::string* out) {
  out->append("md ");
  AppendKey(key, "", out);
  out->append(kLineEnd);
}

ParsedAnswer ParseAnswer(std::string_view bytes) {
  const size_t end = bytes.substr(0, kMaxLine).find(kLineEnd);
  if (end == std::string_view::npos) {
    if (bytes.size() >= kMaxLine) return Broken(bytes.size(), "a line that does not end");
    return {.wanted = bytes.size() + 1};
  }
  const std::string_view line = bytes.substr(0, end);
  if (line.substr(0, 3) == "VA ") return ParseValue(bytes, line);
  const std::optional<Answer::Kind> kind = KindOf(line);
  return Whole(end + 2, {.kind = kind.value_or(Answer::Kind::kBroken), .text = line});
}

}  // namespace curtail::memcached
