// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/csv.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

constexpr std::string_view kSigns = "=+-@", kEndsOfCells = ",;|\"";
// The same signs in full width, which some spreadsheets take for them.
constexpr std::array<std::string_view, 4> kWideSigns = {"\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d",
                                                        "\xef\xbc\xa0"};

bool BeginsWithSign(std::string_view text) {
  if (kSigns.find(text.front()) != kSigns.npos) return true;
  for (const std::string_view wide : kWideSigns)
    if (text.starts_with(wide)) return true;
  return false;
}

std::string DecimalOf(int64_t cents) {
  const uint64_t all = cents < 0 ? -static_cast<uint64_t>(cents) : static_cast<uint64_t>(cents);
  const uint64_t rest = all % 100;
  return Join(cents < 0 ? "-" : "", all / 100, rest < 10 ? ".0" : ".", rest);
}

std::string TimeOf(int64_t ms) {
  const std::chrono::sys_time<std::chrono::milliseconds> at{std::chrono::milliseconds(ms)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), "%d-%02u-%02uT%02d:%02d:%02d.%03dZ", int{date.year()},
                unsigned{date.month()}, unsigned{date.day()}, static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                static_cast<int>(time.subseconds().count()));
  return text.data();
}

}  // namespace

std::string CsvText(std::string_view text) {
  std::string quoted = "\"";
  bool begins = true;  // a cell, for some spreadsheet
  for (size_t i = 0; i < text.size(); ++i) {
    if (begins && BeginsWithSign(text.substr(i))) quoted += '\'';
    if (text[i] == '"') quoted += '"';
    quoted += text[i];
    if (text[i] != ' ') begins = kEndsOfCells.find(text[i]) != kEndsOfCells.npos;
  }
  return quoted += '"';
}

void AppendCsv(const Movement& movement, std::string* lines) {
  *lines +=
      Join(movement.version(), ",", TimeOf(movement.booked_ms()), ",", DecimalOf(movement.cents()), ",",
           DecimalOf(movement.balance_cents()), ",", movement.iban(), ",", CsvText(movement.text()), "\r\n");
}

}  // namespace curtail::bank
