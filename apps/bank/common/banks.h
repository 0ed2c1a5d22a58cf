// SPDX-License-Identifier: Apache-2.0
//
// banks.h - real banks, which `bank-info-search` keeps in its database.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/store/sql/session.h"

namespace curtail::bank {

inline constexpr size_t kLongestCode = 16;  // of a bank in an IBAN, at most

// `low` is the name in small letters. A code is a BIC of 11 characters, or a country and the code of a bank there.
extern const char kBanksSchema[];

// A BIC of eight characters names the head office, as with XXX behind it.
std::string WholeBic(std::string bic);

struct BankRow {
  std::string low;
  std::string bytes;  // a BankInfo
  std::vector<std::string> codes;
};

// data/banks.tsv, which is a part of the program.
std::string_view BuiltinBanks();
// Errors: DATA_LOSS, the file is not in its form.
absl::StatusOr<std::vector<BankRow>> ReadBanks(std::string_view file);
// Replaces the banks of another file by them.
absl::Status WriteBanks(SqlSession& s, const std::vector<BankRow>& rows);

}  // namespace curtail::bank
