// SPDX-License-Identifier: Apache-2.0
//
// Bank information: the branches of this bank, and real banks of eleven countries by BIC, IBAN or words of their names. Keeps nothing:
// data/banks.tsv is a part of the program.
#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "apps/bank/branches.h"
#include "apps/bank/data.h"
#include "apps/bank/iban.h"
#include "apps/kit/page.h"
#include "curtail/base/embedded_file.h"

namespace curtail::bank {

std::span<const EmbeddedFile> BankFiles();  // made by CMake of data/banks.tsv

constexpr size_t kMostSearchBytes = 100;

struct BankInfoSearchService final : BankInfoSearch::CoroutineService {
  // DATA_LOSS: the file is not in its form.
  absl::Status Load(std::string_view file) {
    const std::vector<std::string> lines = absl::StrSplit(std::string(file), '\n', absl::SkipEmpty());
    for (const std::string& line : lines) {
      if (line[0] == '#') continue;
      const std::vector<std::string> cells = absl::StrSplit(line, '\t');
      if (cells.size() != 4) return absl::DataLossError(Join("banks.tsv: not four cells: ", line));
      BankInfo& bank = banks.emplace_back();
      bank.set_country(cells[0]);
      if (cells[1] != "-") bank.set_bic(Whole(cells[1]));
      bank.set_name(cells[2]);
      names.push_back(absl::AsciiStrToLower(cells[2]));
      const size_t at = banks.size() - 1;
      if (!bank.bic().empty()) by_bic.emplace(bank.bic(), at);
      const std::vector<std::string> codes = absl::StrSplit(cells[3], ' ', absl::SkipEmpty());
      for (const std::string& code : codes) {
        by_code.emplace(Join(bank.country(), code), at);
        longest_code = std::max(longest_code, code.size());
      }
    }
    return absl::OkStatus();
  }
  // A BIC of eight characters names the head office, as with XXX behind it.
  static std::string Whole(std::string bic) { return bic.size() == 8 ? bic + "XXX" : bic; }

  Coroutine Branches(Context&, const BranchQuery& request, BranchList* reply) override {
    if (absl::Status status = CheckPlace(request.near()); !status.ok()) co_return status;
    std::vector<std::pair<double, const Branch*>> found;
    for (const Branch& one : AllBranches())
      found.emplace_back(KilometresBetween(request.near(), one.place()), &one);
    std::ranges::sort(found, {}, [](const auto& one) { return std::pair(one.first, one.second->id()); });
    found.resize(std::min<size_t>(found.size(), apps::LimitOf(request.limit())));
    for (const auto& [distance, one] : found) *reply->add_branches() = *one;
    co_return absl::OkStatus();
  }

  Coroutine Find(Context&, const BankQuery& request, BankList* reply) override {
    if (request.bic().empty() == request.iban().empty())
      co_return absl::InvalidArgumentError("give either a BIC or an IBAN");
    if (!request.bic().empty()) {
      const std::string bic = absl::AsciiStrToUpper(request.bic());
      if ((bic.size() != 8 && bic.size() != 11) || !std::ranges::all_of(bic, absl::ascii_isalnum))
        co_return absl::InvalidArgumentError("a BIC has 8 or 11 letters and digits");
      Add(by_bic.equal_range(Whole(bic)), reply);
    } else {
      const absl::StatusOr<std::string> iban = CheckedIban(request.iban());
      if (!iban.ok()) co_return iban.status();
      const std::string country = iban->substr(0, 2);
      // In Italy a letter to check is before the code.
      const std::string code = iban->substr(country == "IT" ? 5 : 4, longest_code);
      for (size_t length = code.size(); length > 0 && reply->banks().empty(); --length)
        Add(by_code.equal_range(Join(country, code.substr(0, length))), reply);
    }
    if (reply->banks().empty()) co_return absl::NotFoundError("no bank that is known here has it");
    co_return absl::OkStatus();
  }

  template <class Range>
  void Add(const Range& range, BankList* reply) const {
    for (auto it = range.first; it != range.second && reply->banks_size() < apps::kMostIds; ++it)
      *reply->add_banks() = banks[it->second];
  }

  Coroutine Search(Context&, const BankSearchQuery& request, BankList* reply) override {
    const std::string text = absl::AsciiStrToLower(request.text());
    const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
    if (words.empty() || text.size() > kMostSearchBytes)
      co_return absl::InvalidArgumentError(
          Join("a search has words, and at most ", kMostSearchBytes, " bytes"));
    const int limit = static_cast<int>(apps::LimitOf(request.limit()));
    for (size_t i = 0; i < banks.size() && reply->banks_size() < limit; ++i) {
      const auto has = [&](const std::string& word) { return absl::StrContains(names[i], word); };
      if (std::ranges::all_of(words, has)) *reply->add_banks() = banks[i];
    }
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Branches", {}}, {"Find", {}}, {"Search", {}}};
  }

  // Immutable after Load().
  std::vector<BankInfo> banks;
  std::vector<std::string> names;  // of the banks, in small letters
  std::multimap<std::string, size_t> by_bic, by_code;
  size_t longest_code = 0;
};

HostedService HostedBankInfoSearch() {
  return {.name = "bank-info-search", .make = [](Env&) -> MadeService {
            auto service = std::make_unique<BankInfoSearchService>();
            if (absl::Status status = service->Load(BankFiles()[0].bytes); !status.ok()) return status;
            return service;
          }};
}

}  // namespace curtail::bank
