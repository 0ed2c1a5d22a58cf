// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/term/flags.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "curtail/base/internal/output_path.h"

namespace curtail::tool {
namespace {

absl::Status Bad(std::string_view text, const char* expected) {
  return absl::InvalidArgumentError(absl::StrCat("'", std::string(text), "' is not a ", expected));
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

absl::StatusOr<Nanos> ParseDuration(std::string_view text) {
  absl::Duration d;
  if (!absl::ParseDuration(std::string(text), &d) || d < absl::ZeroDuration() || d > absl::Hours(24)) {
    return Bad(text, "duration from 0 to 24h; write 10s, 1m30s or 500us");
  }
  return absl::ToChronoNanoseconds(d);
}

absl::StatusOr<Nanos> DurationOf(std::string_view flag, std::string_view text) {
  absl::StatusOr<Nanos> value = ParseDuration(text);
  if (value.ok()) return value;
  return absl::InvalidArgumentError(absl::StrCat(std::string(flag), ": ", value.status().message()));
}

absl::StatusOr<Nanos> TimeLimitOf(std::string_view flag, std::string_view text) {
  absl::StatusOr<Nanos> value = DurationOf(flag, text);
  if (!value.ok() || *value > Nanos::zero()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(flag), ": ", std::string(text), " is not above 0; write 10s, for example"));
}

absl::StatusOr<std::string> ParseHex(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (char c : text) {
    if (absl::ascii_isspace(static_cast<unsigned char>(c)) && high < 0) continue;
    const int digit = HexDigit(c);
    if (digit < 0) return Bad(text, "hexadecimal string like 0a1b");
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<char>(high << 4 | digit));
      high = -1;
    }
  }
  if (high >= 0) return Bad(text, "whole number of bytes: a hexadecimal digit is missing");
  return bytes;
}

absl::StatusOr<std::vector<double>> ParseRates(std::string_view text) {
  std::vector<double> rates;
  for (const absl::string_view part : absl::StrSplit(std::string(text), ',')) {
    const absl::StatusOr<double> rate = ParseNumber({part.data(), part.size()});
    if (!rate.ok() || *rate <= 0) return Bad(text, "list of rates; write 50,200,1k");
    rates.push_back(*rate);
  }
  return rates;
}

absl::StatusOr<double> ParseNumber(std::string_view text) {
  absl::string_view digits(text.data(), text.size());
  const double scale = absl::ConsumeSuffix(&digits, "k") ? 1e3 : absl::ConsumeSuffix(&digits, "M") ? 1e6 : 1;
  double number = 0;
  if (!absl::SimpleAtod(digits, &number) || !std::isfinite(number)) {
    return Bad(text, "number; write 500, 2.5k or 1M");
  }
  return number * scale;
}

std::string WithoutSecret(std::string_view line) {
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string key = absl::AsciiStrToLower(std::string(line.substr(0, colon)));
  for (const char* const secret : {"auth", "cookie", "token", "secret", "password", "key", "session"}) {
    if (absl::StrContains(key, secret)) return absl::StrCat(std::string(line.substr(0, colon)), ": ***");
  }
  return std::string(line);
}

std::string CommandText(const std::vector<std::string>& arguments) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+";
  std::string text;
  bool metadata = false;
  for (std::string argument : arguments) {
    for (const absl::string_view flag : {"-H", "--metadata="}) {
      if (absl::StartsWith(argument, flag) && argument.size() > flag.size())
        argument = absl::StrCat(flag, WithoutSecret(argument.substr(flag.size())));
    }
    if (metadata) argument = WithoutSecret(argument);
    metadata = argument == "-H" || argument == "--metadata";
    const bool plain =
        !argument.empty() && argument.find_first_not_of(std::string(kPlain)) == std::string::npos;
    absl::StrAppend(
        &text, text.empty() ? "" : " ",
        plain ? argument : absl::StrCat("'", absl::StrReplaceAll(argument, {{"'", "'\\''"}}), "'"));
  }
  return text;
}

absl::Status CheckWritable(const std::string& path) {
  if (path.empty() || path == "-") return absl::OkStatus();
  const auto cannot = [&](int error) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": ", strerror(error)));
  };
  const internal::OutputPath end = internal::FollowLinks(path);
  if (end.fd >= 0) {
    const int mode = fcntl(end.fd, F_GETFL);
    if (mode < 0) return cannot(errno);
    return (mode & O_ACCMODE) == O_RDONLY ? cannot(EBADF) : absl::OkStatus();
  }
  struct stat existing{};
  if (stat(end.path.c_str(), &existing) == 0) {
    if (S_ISDIR(existing.st_mode)) return cannot(EISDIR);
    if (!S_ISREG(existing.st_mode))
      return access(end.path.c_str(), W_OK) == 0 ? absl::OkStatus() : cannot(errno);
  }
  const std::filesystem::path folder = std::filesystem::path(end.path).parent_path();
  return access(folder.empty() ? "." : folder.c_str(), W_OK) == 0 ? absl::OkStatus() : cannot(errno);
}

}  // namespace curtail::tool
