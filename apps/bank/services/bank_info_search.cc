// SPDX-License-Identifier: Apache-2.0
//
// Bank information: the branches of this bank, and real banks of eleven countries by BIC, IBAN or words of their names.
//
// The banks come from data/banks.tsv, which is a part of the program. The first instance that starts with another file than the last
// puts it into the database. Replies that have banks are kept in the cache, by the file that they are from.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "apps/bank/common/banks.h"
#include "apps/bank/common/branches.h"
#include "apps/bank/common/iban.h"
#include "apps/bank/data.h"
#include "apps/kit/data/cache.h"
#include "apps/kit/digest.h"
#include "apps/kit/page.h"

namespace curtail::bank {

constexpr size_t kMostSearchBytes = 100, kMostSearchWords = 8;
constexpr Nanos kLoadTime = std::chrono::seconds(60);

// Returns the pattern of LIKE for names that have `word` in them.
std::string PatternOf(const std::string& word) {
  return Join("%", absl::StrReplaceAll(word, {{"!", "!!"}, {"%", "!%"}, {"_", "!_"}}), "%");
}

struct BankInfoSearchService final : BankInfoSearch::CoroutineService {
  BankInfoSearchService(SqlDatabase& d, std::unique_ptr<apps::Cache> c) : db(d), cache(std::move(c)) {}

  absl::Status Load(std::string_view file) {
    digest = apps::Digest(file);
    const absl::StatusOr<std::vector<BankRow>> rows = ReadBanks(file);
    if (!rows.ok()) return rows.status();
    return db.Write(Deadline::In(kLoadTime), [&](SqlSession& s) {
      bool loaded = false;
      absl::Status status =
          s.Query("SELECT 1 FROM files WHERE digest = ?1", {digest}, [&](const SqlRow&) { loaded = true; });
      if (!status.ok() || loaded) return status;
      status = WriteBanks(s, *rows);
      return status.ok() ? s.Execute("INSERT INTO files(digest) VALUES (?1)", {digest}) : status;
    });
  }

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

  Coroutine Find(Context& ctx, const BankQuery& request, BankList* reply) override {
    if (request.bic().empty() == request.iban().empty())
      co_return absl::InvalidArgumentError("give either a BIC or an IBAN");
    std::vector<std::string> keys;  // the first that a bank has is the one
    if (!request.bic().empty()) {
      const std::string bic = absl::AsciiStrToUpper(request.bic());
      if ((bic.size() != 8 && bic.size() != 11) || !std::ranges::all_of(bic, absl::ascii_isalnum))
        co_return absl::InvalidArgumentError("a BIC has 8 or 11 letters and digits");
      keys.push_back(WholeBic(bic));
    } else {
      const absl::StatusOr<std::string> iban = CheckedIban(request.iban());
      if (!iban.ok()) co_return iban.status();
      const std::string country = iban->substr(0, 2);
      // In Italy a letter to check is before the code.
      const std::string code = iban->substr(country == "IT" ? 5 : 4, kLongestCode);
      for (size_t length = code.size(); length > 0; --length)
        keys.push_back(country + code.substr(0, length));
    }
    const std::string key = Join("find ", keys.front());
    absl::Status status = co_await Cached(ctx, key, reply, [&](SqlSession& s, Add add) {
      size_t first = keys.size();
      return s.QueryEach(
          "SELECT bytes FROM codes JOIN banks ON banks.id = codes.bank WHERE code = ?1 ORDER BY banks.id", 1,
          apps::Each(keys), [&](size_t run, const SqlRow& row) {
            first = std::min(first, run);
            if (run == first && reply->banks_size() < apps::kMostIds) add(row.Text(0));
          });
    });
    if (status.ok() && reply->banks().empty())
      status = absl::NotFoundError("no bank that is known here has it");
    co_return status;
  }

  Coroutine Search(Context& ctx, const BankSearchQuery& request, BankList* reply) override {
    const std::string text = absl::AsciiStrToLower(request.text());
    const std::set<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
    if (words.empty() || words.size() > kMostSearchWords || text.size() > kMostSearchBytes)
      co_return absl::InvalidArgumentError(
          Join("a search has 1 to ", kMostSearchWords, " words, and at most ", kMostSearchBytes, " bytes"));
    const int limit = static_cast<int>(apps::LimitOf(request.limit()));
    const std::string longest = PatternOf(*std::ranges::max_element(words, {}, &std::string::size));
    const std::string key = Join("search ", limit, " ", absl::StrJoin(words, " "));
    co_return co_await Cached(ctx, key, reply, [&](SqlSession& s, Add add) {
      return s.Query("SELECT low, bytes FROM banks WHERE low LIKE ?1 ESCAPE '!' ORDER BY id", {longest},
                     [&](const SqlRow& row) {
                       const auto has = [&](const std::string& word) {
                         return row.Text(0).find(word) != std::string_view::npos;
                       };
                       if (reply->banks_size() < limit && std::ranges::all_of(words, has)) add(row.Text(1));
                     });
    });
  }

  // Replies with the banks that `read` adds, or has added for the same key before.
  using Add = absl::FunctionRef<void(std::string_view bytes)>;
  Coroutine Cached(Context& ctx, std::string_view key, BankList* reply,
                   std::function<absl::Status(SqlSession& s, Add add)> read) {
    const std::vector<std::string> keys = {Join(digest.substr(0, 16), " ", key)};
    std::vector<std::optional<std::string>> found(1);
    if (cache != nullptr) (co_await cache->Get(ctx, keys, &found)).IgnoreError();
    if (found[0] && reply->ParseFromString(*found[0])) co_return absl::OkStatus();
    reply->Clear();
    bool readable = true;
    const auto add = [&](std::string_view bytes) {
      readable = reply->add_banks()->ParseFromString(std::string(bytes)) && readable;
    };
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) { return read(s, add); });
    if (status.ok() && !readable) status = absl::DataLossError("a bank is unreadable");
    if (cache == nullptr || !status.ok() || reply->banks().empty()) co_return status;
    const std::vector<std::string> values = {reply->SerializeAsString()};
    co_return co_await cache->Add(ctx, keys, values);
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Branches", {}}, {"Find", {}}, {"Search", {}}};
  }

  SqlDatabase& db;
  const std::unique_ptr<apps::Cache> cache;  // may be null
  std::string digest;                        // of the file; immutable after Load()
};

HostedService HostedBankInfoSearch() {
  return apps::HostedOnData(kApplication, "bank-info-search",
                            [](Env& env, const apps::DataOptions& data) -> MadeService {
                              auto db = apps::OpenData(env, data, "bank-info-search", {kBanksSchema});
                              if (!db.ok()) return db.status();
                              auto cache = apps::Cache::Of(env, "bank-info-cache");
                              if (!cache.ok()) return cache.status();
                              auto service = std::make_unique<BankInfoSearchService>(**db, *std::move(cache));
                              if (absl::Status status = service->Load(BuiltinBanks()); !status.ok())
                                return status;
                              return service;
                            });
}

}  // namespace curtail::bank
