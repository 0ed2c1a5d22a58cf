// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/commands/audit.h"

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/bank/common/books.h"
#include "apps/bank/common/interest.h"
#include "apps/bank/common/leaving.h"
#include "apps/bank/data.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/hash_chain.h"
#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

struct InTransit {
  int64_t cents = 0;
  uint64_t pending = 0;  // transfers
};

absl::Status AuditShard(SqlSession& s, InTransit* in_transit) {
  absl::Status status = apps::Ledger::Audit(s);
  if (!status.ok()) return status;
  return s.Query(
      "SELECT balance, (SELECT count(*) FROM transfers WHERE settled = 0) FROM accounts WHERE id = ?1",
      {apps::kInTransit}, [&](const SqlRow& row) {
        in_transit->cents += row.Integer(0);
        in_transit->pending += row.Unsigned(1);
      });
}

// Accounts and cards that are listed, by shard: an id, its owner, and its lowest balance. A card is its own owner.
using Listed = std::vector<std::vector<int64_t>>;

absl::Status ReadListed(const std::string& folder, uint32_t shards, Listed* listed) {
  listed->resize(shards);
  const auto read = [&](std::string_view service, std::string_view sql) {
    return apps::LookAtData(folder, service, [&](SqlSession& s) {
      return s.Query(sql, {}, [&](const SqlRow& row) {
        std::vector<int64_t>& of = (*listed)[apps::PartOf(row.Unsigned(0), shards)];
        of.insert(of.end(), {row.Integer(0), row.Integer(1), row.Integer(2)});
      });
    });
  };
  absl::Status status = read("accounts", "SELECT id, owner, 0 FROM accounts ORDER BY number");
  if (status.ok()) status = read("credit-card", "SELECT id, id, -most FROM cards ORDER BY number");
  return status.ok() ? read("deposits", "SELECT id, id, 0 FROM terms ORDER BY id") : status;
}

// Balances that accounts of loans, deposits and investments have at rest.
using Expected = std::vector<std::pair<uint64_t, int64_t>>;

// A loan has a limit of all instalments, and owes the principal of all that are not paid.
absl::Status ReadDebts(const std::string& folder, Listed* listed, Expected* expected) {
  struct Owed {
    int64_t limit = 0, debt = 0;
    bool moves = false;
  };
  std::map<uint64_t, Owed> loans;
  absl::Status status = apps::LookAtData(folder, "loan-request", [&](SqlSession& s) {
    return s.Query(
        "SELECT loan, cents, interest, (SELECT count(*) FROM payments WHERE id = repayment AND"
        " payments.round = instalments.round AND state = ?1), (SELECT count(*) FROM payments WHERE"
        " id = repayment AND open = 1) FROM instalments",
        {Payment::BOOKED}, [&](const SqlRow& row) {
          Owed& owed = loans[row.Unsigned(0)];
          owed.limit += row.Integer(1);
          if (row.Integer(3) == 0) owed.debt += row.Integer(1) - row.Integer(2);
          owed.moves = owed.moves || row.Integer(4) > 0;
        });
  });
  for (const auto& [id, owed] : loans) {
    std::vector<int64_t>& of = (*listed)[apps::PartOf(id, listed->size())];
    of.insert(of.end(), {static_cast<int64_t>(id), static_cast<int64_t>(id), -owed.limit});
    if (!owed.moves) expected->emplace_back(id, -owed.debt);
  }
  return status;
}

// A deposit has its cents and the interest that was posted, until it is paid back.
absl::Status ReadDeposits(const std::string& folder, Expected* expected) {
  return apps::LookAtData(folder, "deposits", [&](SqlSession& s) {
    return s.Query(
        "SELECT id, cents, rate_bp, posted, (SELECT count(*) FROM breaks WHERE breaks.id = terms.id AND open "
        "= 0)"
        " FROM terms WHERE posted = accrued AND NOT EXISTS (SELECT 1 FROM breaks WHERE breaks.id = terms.id "
        "AND"
        " open = 1)",
        {}, [&](const SqlRow& row) {
          const int64_t interest = DaysInterest(row.Integer(1), static_cast<uint32_t>(row.Unsigned(2)),
                                                static_cast<uint32_t>(row.Unsigned(3)));
          expected->emplace_back(row.Unsigned(0), row.Integer(4) > 0 ? 0 : row.Integer(1) + interest);
        });
  });
}

// The orders of trades, and their sums.
struct Trades {
  bool moves = false;                                        // an order is open
  std::map<std::pair<uint64_t, std::string>, int64_t> held;  // units, by customer and stock
  std::map<uint64_t, int64_t> cents, booked;  // of the bank's accounts for investments; how many

  // Takes a row of the query below. DATA_LOSS: the trade does not have the units of its order.
  absl::Status Add(const SqlRow& row) {
    KeptPayment kept;
    const bool readable = kept.ParseFromString(std::string(row.Text(4)));
    const Trade& trade = kept.trade();
    const int64_t sign = trade.sale() ? -1 : 1;
    const uint64_t account = trade.sale() ? kept.shown().from() : kept.payee();
    const bool is_booked = row.Integer(2) == Payment::BOOKED;
    moves = moves || row.Integer(3) != 0;
    cents[account] += is_booked ? sign * kept.shown().cents() : 0;
    booked[account] += is_booked ? 1 : 0;
    if (is_booked) held[{row.Unsigned(1), trade.symbol()}] += sign * trade.units();
    const bool entered = row.Unsigned(5) == row.Unsigned(1) && row.Text(6) == trade.symbol() &&
                         row.Integer(7) == sign * trade.units() && row.Integer(8) == 0;
    if (readable && (entered || !is_booked)) return absl::OkStatus();
    return absl::DataLossError(Join("trade ", row.Unsigned(0), " is not as it was ordered"));
  }
};

// Each trade has the units of its order, nobody has sold more than was bought, holdings are the sums of their trades, and the bank's
// accounts for investments have the cents of all that are booked.
absl::Status ReadTrades(const std::string& folder, Listed* listed, Expected* expected) {
  Trades trades;
  absl::Status wrong;
  absl::Status status = apps::LookAtData(folder, "wealth-management", [&](SqlSession& s) {
    return s.Query(
        "SELECT payments.id, payments.owner, state, open, bytes, coalesce(trades.owner, 0),"
        " coalesce(symbol, ''), coalesce(units, 0), coalesce(refused, 0) FROM payments"
        " LEFT JOIN trades ON trades.id = payments.id ORDER BY payments.id",
        {}, [&](const SqlRow& row) { wrong.Update(trades.Add(row)); });
  });
  std::map<std::pair<uint64_t, std::string>, int64_t> kept = trades.held;  // holdings
  if (status.ok() && !trades.moves) {
    kept.clear();
    status = apps::LookAtData(folder, "wealth-management", [&](SqlSession& s) {
      return s.Query("SELECT owner, symbol, units FROM holdings", {}, [&](const SqlRow& row) {
        kept[{row.Unsigned(0), std::string(row.Text(1))}] = row.Integer(2);
        trades.held.try_emplace({row.Unsigned(0), std::string(row.Text(1))}, 0);
      });
    });
  }
  for (const auto& [of, units] : trades.held) {
    const std::string whose = Join("customer ", of.first, " has ", units, " units of ", of.second);
    if (units < 0) wrong.Update(absl::DataLossError(whose));
    if (units != kept[of])
      wrong.Update(absl::DataLossError(Join(whose, ", but the portfolio has ", kept[of])));
  }
  for (const auto& [id, cents] : trades.cents) {
    std::vector<int64_t>& of = (*listed)[apps::PartOf(id, listed->size())];
    const auto account = static_cast<int64_t>(id);
    if (trades.booked[id] > 0) of.insert(of.end(), {account, account, -apps::kUnlimited});
    if (!trades.moves) expected->emplace_back(id, cents);
  }
  return status.ok() ? wrong : status;
}

absl::Status CheckBalances(SqlSession& s, const Shard& shard, const Expected& expected) {
  absl::Status wrong;
  for (const auto& [id, cents] : expected) {
    if (apps::PartOf(id, shard.count) != shard.index) continue;
    absl::Status status = s.Query(
        "SELECT balance FROM accounts WHERE id = ?1 AND balance <> ?2", {id, cents}, [&](const SqlRow& row) {
          wrong = absl::DataLossError(
              Join("account ", id, " has ", row.Integer(0), " cents, but its service expects ", cents));
        });
    if (!status.ok() || !wrong.ok()) return status.ok() ? wrong : status;
  }
  return wrong;
}

// The accounts of customers who were closed are closed and empty, from the decision on.
absl::Status CheckClosed(const std::string& folder, uint32_t shards) {
  std::vector<uint64_t> closed;
  absl::Status status = apps::LookAtData(folder, "customer-info", [&](SqlSession& s) {
    return s.Query("SELECT id FROM closings WHERE state IN (?1, ?2)", {kLeft, kClosed},
                   [&](const SqlRow& row) { closed.push_back(row.Unsigned(0)); });
  });
  std::vector<std::vector<uint64_t>> accounts(shards);
  if (status.ok())
    status = apps::LookAtData(folder, "accounts", [&](SqlSession& s) {
      return s.QueryEach("SELECT id FROM accounts WHERE owner = ?1", 1, apps::Each(closed),
                         [&](size_t, const SqlRow& row) {
                           const uint64_t id = row.Unsigned(0);
                           accounts[apps::PartOf(id, shards)].push_back(id);
                         });
    });
  for (Shard shard{0, shards}; status.ok() && shard.index < shard.count; ++shard.index) {
    status = apps::LookAtData(folder, BooksOf(shard), [&](SqlSession& s) {
      absl::Status wrong;
      absl::Status read = s.QueryEach(
          "SELECT id FROM accounts WHERE id = ?1 AND (open = 1 OR balance <> 0)", 1,
          apps::Each(accounts[shard.index]), [&](size_t, const SqlRow& row) {
            wrong = absl::DataLossError(
                Join("account ", row.Unsigned(0), " is not closed and empty, but its customer is closed"));
          });
      return read.ok() ? wrong : read;
    });
  }
  return status;
}

// The account and the cents of each payment that `access-control` has allowed.
using Allowed = std::unordered_map<uint64_t, std::pair<uint64_t, int64_t>>;

absl::Status CheckListed(SqlSession& s, const std::vector<int64_t>& listed) {
  std::vector<bool> found(listed.size() / 3);
  absl::Status status =
      s.QueryEach("SELECT 1 FROM accounts WHERE id = ?1 AND owner = ?2 AND lowest = ?3", 3,
                  apps::Each(listed), [&](size_t run, const SqlRow&) { found[run] = true; });
  for (size_t i = 0; status.ok() && i < found.size(); ++i) {
    if (!found[i])
      return absl::DataLossError(Join("account ", listed[3 * i], " of ", listed[3 * i + 1],
                                      " is listed and has no books with its limit"));
  }
  return status;
}

// Looks for the decision that allowed each payment of a service that has moved money.
absl::Status CheckAllowed(const std::string& folder, std::string_view service, const Allowed& allowed) {
  return apps::LookAtData(folder, service, [&](SqlSession& s) {
    absl::Status missing;
    absl::Status status =
        s.Query("SELECT id, bytes FROM payments WHERE state = ?1", {Payment::BOOKED}, [&](const SqlRow& row) {
          KeptPayment kept;
          const auto act = allowed.find(row.Unsigned(0));
          if (!missing.ok() || (kept.ParseFromString(std::string(row.Text(1))) && act != allowed.end() &&
                                act->second == std::pair(kept.shown().from(), kept.shown().cents())))
            return;
          missing =
              absl::DataLossError(Join("nobody allowed payment ", row.Unsigned(0), ", which was booked"));
        });
    return status.ok() ? missing : status;
  });
}

absl::Status CheckDecisions(const std::string& folder) {
  Allowed allowed;
  absl::Status status = apps::LookAtData(folder, "access-control", [&](SqlSession& s) {
    apps::HashChain::Head head;
    return apps::HashChain::Verify(
        s,
        [&](std::string_view record) {
          Decision decision;
          if (!decision.ParseFromString(std::string(record)))
            return absl::DataLossError("a decision is unreadable");
          const Act& act = decision.act();
          if (decision.allowed() && decision.has_act())
            allowed[act.reference()] = {act.account(), act.cents()};
          return absl::OkStatus();
        },
        &head);
  });
  for (const std::string_view service : {"payments", "credit-card", "card-payment", "loan-request"})
    if (status.ok()) status = CheckAllowed(folder, service, allowed);
  return status;
}

}  // namespace

absl::Status Audit(const std::string& data) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data);
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<uint32_t> shards = ShardsIn(*folder);
  if (!shards.ok()) return shards.status();
  Listed listed;
  Expected expected;
  absl::Status read = ReadListed(*folder, *shards, &listed);
  if (read.ok()) read = ReadDebts(*folder, &listed, &expected);
  if (read.ok()) read = ReadDeposits(*folder, &expected);
  if (read.ok()) read = ReadTrades(*folder, &listed, &expected);
  if (!read.ok()) return read;
  InTransit in_transit;
  for (Shard shard{0, *shards}; shard.index < shard.count; ++shard.index) {
    absl::Status status = apps::LookAtData(*folder, BooksOf(shard), [&](SqlSession& s) {
      absl::Status whole = AuditShard(s, &in_transit);
      return whole.ok() ? CheckListed(s, listed[shard.index]) : whole;
    });
    if (!status.ok()) return absl::Status(status.code(), Join(BooksOf(shard), ": ", Message(status)));
  }
  for (Shard shard{0, *shards}; in_transit.pending == 0 && shard.index < shard.count; ++shard.index) {
    absl::Status status = apps::LookAtData(*folder, BooksOf(shard),
                                           [&](SqlSession& s) { return CheckBalances(s, shard, expected); });
    if (!status.ok()) return absl::Status(status.code(), Join(BooksOf(shard), ": ", Message(status)));
  }
  if (absl::Status status = CheckClosed(*folder, *shards); !status.ok()) return status;
  if (in_transit.pending > 0 || in_transit.cents == 0) return CheckDecisions(*folder);
  return absl::DataLossError(Join("account ", apps::kInTransit, " has ", in_transit.cents,
                                  " cents in transit over all shards, and no transfer is pending"));
}

}  // namespace curtail::bank
