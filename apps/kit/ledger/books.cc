// SPDX-License-Identifier: Apache-2.0
//
// The tables of a ledger, and the rules that its books keep.
#include <array>

#include "apps/kit/ledger/ledger.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

// accounts.lowest is the limit as a balance; postings.remote the account in another shard, or 0. holds.settled is 0 while the
// money is held, -1 once the account has it back, or else the posting that took it. transfers.settled is 0 while a transfer is
// pending, -1 once it has arrived, or else the posting that booked it back.
const char kLedgerSchema[] =
    "CREATE TABLE accounts(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, lowest INTEGER NOT NULL,"
    " open INTEGER NOT NULL, version INTEGER NOT NULL, balance INTEGER NOT NULL) STRICT;"
    "CREATE TABLE postings(id INTEGER PRIMARY KEY, text TEXT NOT NULL, remote INTEGER NOT NULL,"
    " booked_ms INTEGER NOT NULL) STRICT;"
    "CREATE TABLE entries(account INTEGER, version INTEGER, cents INTEGER NOT NULL, balance INTEGER NOT NULL,"
    " posting INTEGER NOT NULL, PRIMARY KEY(account, version)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX entries_of ON entries(posting, account, cents);"
    "CREATE TABLE holds(id INTEGER PRIMARY KEY, account INTEGER NOT NULL, cents INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL, settled INTEGER NOT NULL) STRICT;"
    "CREATE INDEX holds_of ON holds(account) WHERE settled = 0;"
    "CREATE TABLE transfers(posting INTEGER PRIMARY KEY, sender INTEGER NOT NULL, shard INTEGER NOT NULL,"
    " account INTEGER NOT NULL, cents INTEGER NOT NULL, settled INTEGER NOT NULL) STRICT;"
    "CREATE INDEX transfers_of ON transfers(sender) WHERE settled = 0;"
    "CREATE INDEX transfers_pending ON transfers(posting) WHERE settled = 0;"
    "CREATE TABLE ledger_requests(caller INTEGER, name TEXT, content TEXT NOT NULL, answer INTEGER NOT NULL,"
    " PRIMARY KEY(caller, name)) STRICT, WITHOUT ROWID;"
    "CREATE VIEW states AS SELECT id, owner, lowest, open, version, balance,"
    " (SELECT CAST(coalesce(sum(cents), 0) AS INTEGER) FROM holds h WHERE h.account = a.id AND h.settled = 0)"
    " AS held FROM accounts a;"
    "CREATE VIEW booked AS SELECT e.posting, e.account, e.version, e.cents, e.balance,"
    " (SELECT CASE WHEN count(*) > 1 THEN 0 WHEN p.remote > 0 THEN p.remote ELSE min(o.account) END"
    " FROM entries o WHERE o.posting = e.posting AND o.account <> e.account) AS counterpart, p.text, "
    "p.booked_ms"
    " FROM entries e JOIN postings p ON p.id = e.posting;"
    "INSERT INTO accounts(id, owner, lowest, open, version, balance)"
    " VALUES (1, 0, -1000000000000000000, 1, 0, 0)";

// The refusals that Refuse() may forget.
const char kLedgerForgetsSchema[] =
    "ALTER TABLE ledger_requests ADD COLUMN since_ms INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX ledger_refusals ON ledger_requests(since_ms) WHERE answer = 0 AND since_ms > 0";

namespace {

// All rows are read in the order of an index, so that neither database keeps or sorts them.
struct Rule {
  const char* broken;
  const char* sql;  // the first row that breaks the rule: its posting, account and version, 0 if it has none
};

constexpr std::array kRules = {
    Rule{"the posting before it is missing",
         "SELECT p.id, 0, 0 FROM postings p LEFT JOIN postings b ON b.id = p.id - 1"
         " WHERE p.id > 1 AND b.id IS NULL ORDER BY p.id LIMIT 1"},
    Rule{"its entries do not sum to 0",
         "SELECT p.id, 0, 0 FROM postings p LEFT JOIN entries e ON e.posting = p.id GROUP BY p.id"
         " HAVING count(e.account) < 2 OR sum(e.cents) <> 0 ORDER BY p.id LIMIT 1"},
    Rule{"it is not there, and has an entry",
         "SELECT e.posting, e.account, e.version FROM entries e LEFT JOIN postings p ON p.id = e.posting"
         " WHERE p.id IS NULL ORDER BY e.posting, e.account LIMIT 1"},
    Rule{"its balance is not the one before and its cents",
         "SELECT posting, account, version FROM (SELECT posting, account, version, cents, balance,"
         " max(version) OVER w AS last, max(balance) OVER w AS before FROM entries WINDOW w AS"
         " (PARTITION BY account ORDER BY version ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING)) e"
         " WHERE version <> coalesce(last, 0) + 1 OR balance <> coalesce(before, 0) + cents"
         " ORDER BY account, version LIMIT 1"},
    Rule{"its balance is below the limit of its account, or it has none",
         "SELECT e.posting, e.account, e.version FROM entries e LEFT JOIN accounts a ON a.id = e.account"
         " WHERE a.id IS NULL OR e.balance < a.lowest ORDER BY e.account, e.version LIMIT 1"},
    Rule{"its state is not that of its last entry",
         "SELECT 0, a.id, a.version FROM accounts a"
         " LEFT JOIN entries e ON e.account = a.id AND e.version = a.version"
         " LEFT JOIN entries n ON n.account = a.id AND n.version = a.version + 1"
         " WHERE a.balance <> coalesce(e.balance, 0) OR (a.version > 0 AND e.version IS NULL)"
         " OR n.version IS NOT NULL ORDER BY a.id LIMIT 1"},
    Rule{"it is closed and has a balance",
         "SELECT 0, id, version FROM accounts WHERE open = 0 AND balance <> 0 ORDER BY id LIMIT 1"},
    Rule{"the balances do not sum to 0",
         "SELECT 0, 0, 0 FROM (SELECT sum(balance) AS total FROM accounts) t WHERE total <> 0"},
    Rule{"its holds are more than it has",
         "SELECT 0, id, version FROM states WHERE held > balance - lowest ORDER BY id LIMIT 1"},
    Rule{"it took another amount than its hold had",
         "SELECT h.settled, h.account, 0 FROM holds h"
         " LEFT JOIN entries e ON e.posting = h.settled AND e.account = h.account WHERE h.settled > 0"
         " AND (e.cents IS NULL OR e.cents > 0 OR -e.cents > h.cents) ORDER BY h.id LIMIT 1"},
    Rule{"its transfer is of another amount or account",
         "SELECT t.posting, t.sender, 0 FROM transfers t"
         " LEFT JOIN entries i ON i.posting = t.posting AND i.account = 1"
         " LEFT JOIN entries e ON e.posting = t.posting AND e.account = t.sender"
         " WHERE coalesce(i.cents, 0) <> t.cents OR coalesce(e.cents, 0) > -t.cents ORDER BY t.posting LIMIT "
         "1"},
    Rule{"its transfer was not booked back as it was booked",
         "SELECT t.posting, t.sender, 0 FROM transfers t"
         " LEFT JOIN entries i ON i.posting = t.settled AND i.account = 1"
         " LEFT JOIN entries e ON e.posting = t.settled AND e.account = t.sender WHERE t.settled > 0"
         " AND (coalesce(i.cents, 0) <> -t.cents OR coalesce(e.cents, 0) <> t.cents) ORDER BY t.posting "
         "LIMIT 1"},
    Rule{
        "it has money in transit without a transfer",
        "SELECT e.posting, e.account, e.version FROM entries e LEFT JOIN transfers t ON t.posting = e.posting"
        " WHERE e.account = 1 AND e.cents > 0 AND t.posting IS NULL ORDER BY e.version LIMIT 1"},
};

}  // namespace

absl::Status Ledger::Audit(SqlSession& s) {
  for (const Rule& rule : kRules) {
    std::string where;
    absl::Status status = s.Query(rule.sql, {}, [&](const SqlRow& row) {
      where = Join("posting ", row.Integer(0), ", account ", row.Integer(1), ", version ", row.Integer(2));
    });
    if (!status.ok()) return status;
    if (!where.empty())
      return absl::DataLossError(Join("the books are broken at ", where, ": ", rule.broken));
  }
  return absl::OkStatus();
}

}  // namespace curtail::apps
