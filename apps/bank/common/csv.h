// SPDX-License-Identifier: Apache-2.0
//
// csv.h - movements as lines of CSV (RFC 4180), which spreadsheets read without running a formula of the payer's.
#pragma once

#include <string>
#include <string_view>

#include "bank.pb.h"

namespace curtail::bank {

// The names of the columns.
inline constexpr char kCsvHead[] = "version,booked,amount,balance,iban,text\r\n";

// Returns the text in quotes, with its own quotes doubled. An apostrophe precedes each of = + - @ that begins the text, or comes
// behind a comma, a semicolon, a bar or a quote: some spreadsheets take these as the end of a cell.
std::string CsvText(std::string_view text);

// Appends the line of a movement. The time is in UTC, and the amounts have two decimals: -12.34.
void AppendCsv(const Movement& movement, std::string* lines);

}  // namespace curtail::bank
