// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/iban.h"

#include <algorithm>

#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

// The form of Germany: ten digits of an account after eight of its bank. No bank there has a number that begins with 9.
constexpr std::string_view kCountry = "DE", kBankCode = "90000000";
constexpr size_t kDigitsOfNumber = 10, kLeast = 15, kMost = 34;

// The length of each country's IBAN, from the registry in schwifty 2026.10.1 (MIT): two letters and two digits a country.
constexpr std::string_view kLengths =
    "AD24AE23AL28AO25AT20AX18AZ28BA20BE16BF28BG22BH22BI27BJ28BL27BR29BY28CF27CG27CH21CI28CM27CR22CV25CY28CZ24"
    "DE22DJ27DK18DO28DZ26EE20EG29ES24FI18FK18FO18FR27GA27GB22GE22GF27GG22GI23GL18GP27GQ27GR27GT28GW25HN28HR21"
    "HU28IE22IL23IM22IQ23IR26IS26IT27JE22JO30KM27KW30KZ20LB28LC32LI21LT20LU20LV21LY25MA28MC27MD24ME22MF27MG27"
    "MK19ML28MN20MQ27MR27MT31MU30MZ25NC27NE28NI28NL18NO15OM23PF27PK24PL28PM27PS29PT25QA29RE27RO24RS22RU33SA24"
    "SC31SD18SE24SI19SK24SM27SN28SO23ST25SV28TD27TF27TG28TL23TN24TR26UA29VA22VG24WF27XK20YE30YT27";

// 0: the country has no IBANs.
size_t LengthIn(std::string_view country) {
  for (size_t i = 0; i < kLengths.size(); i += 4)
    if (kLengths.substr(i, 2) == country)
      return static_cast<size_t>(kLengths[i + 2] - '0') * 10 + static_cast<size_t>(kLengths[i + 3] - '0');
  return 0;
}

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
  const size_t length = LengthIn(iban.substr(0, 2));
  if (length == 0) return absl::InvalidArgumentError(Join("no country ", iban.substr(0, 2), " has IBANs"));
  if (length != iban.size())
    return absl::InvalidArgumentError(
        Join("an IBAN of ", iban.substr(0, 2), " has ", length, " characters, not ", iban.size()));
  if (Remainder(iban) == 1) return iban;
  return absl::InvalidArgumentError("the check sum of the IBAN is wrong: look for a typing error");
}

}  // namespace curtail::bank
