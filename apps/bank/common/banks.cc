// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/banks.h"

#include <cstdint>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "bank.curtail.h"
#include "curtail/base/embedded_file.h"
#include "curtail/base/strings.h"

namespace curtail::bank {

std::span<const EmbeddedFile> BankFiles();  // made by CMake of data/banks.tsv

const char kBanksSchema[] =
    "CREATE TABLE files(digest TEXT PRIMARY KEY) STRICT;"
    "CREATE TABLE banks(id INTEGER PRIMARY KEY, low TEXT NOT NULL, bytes BLOB NOT NULL) STRICT;"
    "CREATE TABLE codes(code TEXT, bank INTEGER, PRIMARY KEY(code, bank)) STRICT, WITHOUT ROWID";

std::string WholeBic(std::string bic) { return bic.size() == 8 ? bic + "XXX" : bic; }

std::string_view BuiltinBanks() { return BankFiles()[0].bytes; }

absl::StatusOr<std::vector<BankRow>> ReadBanks(std::string_view file) {
  std::vector<BankRow> rows;
  const std::vector<std::string> lines = absl::StrSplit(std::string(file), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    if (line[0] == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    if (cells.size() != 4) return absl::DataLossError(Join("banks.tsv: not four cells: ", line));
    BankInfo bank;
    bank.set_country(cells[0]);
    if (cells[1] != "-") bank.set_bic(WholeBic(cells[1]));
    bank.set_name(cells[2]);
    BankRow& row = rows.emplace_back();
    row.low = absl::AsciiStrToLower(cells[2]);
    row.bytes = bank.SerializeAsString();
    if (!bank.bic().empty()) row.codes.push_back(bank.bic());
    const std::vector<std::string> codes = absl::StrSplit(cells[3], ' ', absl::SkipEmpty());
    for (const std::string& code : codes) {
      if (code.size() > kLongestCode)
        return absl::DataLossError(Join("banks.tsv: a code is too long: ", line));
      row.codes.push_back(bank.country() + code);
    }
  }
  return rows;
}

absl::Status WriteBanks(SqlSession& s, const std::vector<BankRow>& rows) {
  std::vector<SqlValue> banks, codes;
  for (uint64_t id = 1; id <= rows.size(); ++id) {
    const BankRow& row = rows[id - 1];
    banks.insert(banks.end(), {id, row.low, SqlValue::Bytes(row.bytes)});
    for (const std::string& code : row.codes) codes.insert(codes.end(), {code, id});
  }
  const auto none = [](size_t, const SqlRow&) {};
  absl::Status status;
  for (const char* const old : {"DELETE FROM files", "DELETE FROM codes", "DELETE FROM banks"})
    if (status.ok()) status = s.Execute(old);
  if (status.ok())
    status = s.QueryEach("INSERT INTO banks(id, low, bytes) VALUES (?1, ?2, ?3)", 3, banks, none);
  if (!status.ok()) return status;
  return s.QueryEach("INSERT INTO codes(code, bank) VALUES (?1, ?2) ON CONFLICT DO NOTHING", 2, codes, none);
}

}  // namespace curtail::bank
