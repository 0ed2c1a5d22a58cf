// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/iban.h"

#include <algorithm>

#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

// The form of Germany: ten digits of an account after eight of its bank. No bank there has a number that begins with 9.
constexpr std::string_view kCountry = "DE", kBankCode = "90000000";
constexpr size_t kDigitsOfNumber = 10, kLeast = 15, kMost = 34;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }

// The number that the characters spell, a letter as two digits from A = 10, modulo 97. The first four count as the last.
unsigned Remainder(std::string_view iban) {
  unsigned rest = 0;
  for (const std::string_view part : {iban.substr(4), iban.substr(0, 4)}) {
    for (const char c : part) {
      rest = IsDigit(c) ? rest * 10 + static_cast<unsigned>(c - '0')
                        : rest * 100 + static_cast<unsigned>(c - 'A') + 10;
      rest %= 97;
    }
  }
  return rest;
}

}  // namespace

std::string IbanOf(uint64_t number) {
  const std::string digits = std::to_string(number);
  const std::string account = Join(kBankCode, std::string(kDigitsOfNumber - digits.size(), '0'), digits);
  const unsigned check = 98 - Remainder(Join(kCountry, "00", account));
  return Join(kCountry, check / 10, check % 10, account);
}

absl::StatusOr<std::string> CheckedIban(std::string_view given) {
  std::string iban;
  for (const char c : given.substr(0, 2 * kMost)) {
    if (c != ' ') iban += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  const bool formed = given.size() <= 2 * kMost && iban.size() >= kLeast && iban.size() <= kMost &&
                      IsCapital(iban[0]) && IsCapital(iban[1]) && IsDigit(iban[2]) && IsDigit(iban[3]) &&
                      std::ranges::all_of(iban, [](char c) { return IsDigit(c) || IsCapital(c); });
  if (!formed)
    return absl::InvalidArgumentError(
        "an IBAN is a country of two letters, two digits to check, and 11 to 30 letters and digits");
  if (Remainder(iban) == 1) return iban;
  return absl::InvalidArgumentError("the check sum of the IBAN is wrong: look for a typing error");
}

}  // namespace curtail::bank
