// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A decision is one write, everything after it is repeatable, everything before it undoes itself.
//
//  L1  A posting is decided by the transaction that writes it, with the name of its request and all that follows from it: the
//      balances, the hold that it takes, the transfer that it begins. An error before leaves nothing.
//  L2  Writers of one database take turns (sql.h), from the first statement of a transaction to its commit. So the numbers of
//      postings, holds and versions have no gaps and become visible in order: a follower misses none.
//  L3  Entries are added, never changed. The answer to a request is read from them, so that a repetition has the same.
//      A refusal that somebody acts on is kept as an answer, too: no late attempt turns it round.
//  L4  The row of an account is the state behind its last entry. What is held is the sum over its holds that are not settled.
//  L5  A hold that expires is settled by the first write that needs its money. From then on it is expired, whatever a clock says.
//  L6  A transfer is decided in the shard of the sender. Its cents are in kInTransit there, until they arrive or come back.
//  L7  Whether it arrives is decided in the shard of the receiver, by its first request there: a refusal is kept as an answer,
//      too. A late repetition cannot turn it round.
//  L8  Settle() follows that decision. The first one ends the transfer, and books it back in the same transaction. The sender's
//      account is there, since Close() refuses while a transfer is pending.
//  L9  A worker that dies between L6, L7 and L8 leaves a pending transfer. The next one sends it again, and L7 answers as before.
//  L10 A refusal is forgotten by the transaction that raises the mark kForgotten to the since_ms of its request, or above. The mark
//      never falls. A request that the shard does not know is refused, and keeps nothing, if its since_ms is not above the mark. All
//      attempts at a request have one since_ms, so each attempt at a forgotten one is refused, however late it comes and whatever
//      the clocks say. Clocks only decide when to forget. If one is wrong, a request that was never answered may be refused as too old,
//      and all attempts at it are: nothing moves. A booking, and the answers of L7, are never forgotten.
#include "apps/kit/ledger/ledger.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "apps/kit/digest.h"
#include "apps/kit/ledger/input.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

using namespace ledger;

namespace {

constexpr int64_t kBack = -1;
constexpr uint64_t kRefused = 0;  // as an answer
constexpr uint32_t kTransfersAtOnce = 64;
constexpr int kForgottenAtOnce = 16;
constexpr char kForgotten[] = "forgotten";  // the name of kLedger whose answer is the mark of L10
constexpr Nanos kStepTime = std::chrono::seconds(5);

// The error of a request that may be one whose refusal was forgotten: L10.
absl::Status CheckRemembered(SqlSession& s, const LedgerRequest& request) {
  if (request.since_ms == 0) return absl::OkStatus();
  int64_t mark = 0;
  absl::Status status = s.Query("SELECT answer FROM ledger_requests WHERE caller = ?1 AND name = ?2",
                                {kLedger, kForgotten}, [&](const SqlRow& row) { mark = row.Integer(0); });
  if (!status.ok() || request.since_ms > mark) return status;
  return absl::FailedPreconditionError(
      Join("the request \"", request.name, "\" is too old; give it again by a new name"));
}

// Forgets some refusals: L10.
absl::Status ForgetRefusals(SqlSession& s, int64_t before_ms) {
  int64_t mark = 0;
  absl::Status status = s.Query(
      "DELETE FROM ledger_requests WHERE (caller, name) IN (SELECT caller, name FROM ledger_requests"
      " WHERE answer = 0 AND since_ms > 0 AND since_ms < ?1 ORDER BY since_ms LIMIT ?2) RETURNING since_ms",
      {before_ms, kForgottenAtOnce}, [&](const SqlRow& row) { mark = std::max(mark, row.Integer(0)); });
  if (!status.ok() || mark == 0) return status;
  return s.Execute(
      "INSERT INTO ledger_requests(caller, name, content, answer) VALUES (?1, ?2, '', ?3)"
      " ON CONFLICT(caller, name) DO UPDATE SET answer = excluded.answer"
      " WHERE ledger_requests.answer < excluded.answer",
      {kLedger, kForgotten, mark});
}

// Runs `work`, which sets `*answer`, unless the request was answered before: L1.
template <class Work>
absl::Status AnswerOnce(SqlSession& s, const LedgerRequest& request, std::string_view content,
                        uint64_t* answer, Work work) {
  const std::string digest = Digest(content);
  bool known = false, same = true;
  absl::Status status = s.Query("SELECT content, answer FROM ledger_requests WHERE caller = ?1 AND name = ?2",
                                {request.caller, request.name}, [&](const SqlRow& row) {
                                  known = true;
                                  same = row.Text(0) == digest;
                                  *answer = row.Unsigned(1);
                                });
  if (!same)
    return absl::AlreadyExistsError(
        Join("the request \"", request.name, "\" had another content; take a new name for each request"));
  if (status.ok() && !known) status = CheckRemembered(s, request);
  if (status.ok() && !known) status = work();
  if (!status.ok() || known) return status;
  return s.Execute("INSERT INTO ledger_requests(caller, name, content, answer) VALUES (?1, ?2, ?3, ?4)",
                   {request.caller, request.name, digest, *answer});
}

absl::Status NoAccount(uint64_t account) {
  return absl::NotFoundError(Join("there is no account ", account));
}

// The state of an account within a transaction. `available` counts expired holds as held.
struct State {
  bool found = false, open = false;
  uint64_t version = 0;
  int64_t balance = 0, available = 0;
};

absl::Status ReadStates(SqlSession& s, std::span<const SqlValue> accounts, std::vector<State>* states) {
  states->resize(accounts.size());
  return s.QueryEach("SELECT open, version, balance, balance - lowest - held FROM states WHERE id = ?1", 1,
                     accounts, [&](size_t run, const SqlRow& row) {
                       (*states)[run] = {.found = true,
                                         .open = row.Integer(0) != 0,
                                         .version = row.Unsigned(1),
                                         .balance = row.Integer(2),
                                         .available = row.Integer(3)};
                     });
}

absl::Status CheckOpen(uint64_t account, const State& state) {
  if (!state.found) return NoAccount(account);
  return state.open ? absl::OkStatus()
                    : absl::FailedPreconditionError(Join("account ", account, " is closed"));
}

// Checks that an account has something left, after expired holds have given their money back: L5.
absl::Status CheckLeft(SqlSession& s, uint64_t account, int64_t left, int64_t now) {
  if (left >= 0) return absl::OkStatus();
  absl::Status status = s.Query(
      "UPDATE holds SET settled = ?3 WHERE account = ?1 AND settled = 0 AND expires_ms <= ?2 RETURNING cents",
      {account, now, kBack}, [&](const SqlRow& row) { left += row.Integer(0); });
  if (!status.ok() || left >= 0) return status;
  return absl::FailedPreconditionError(Join("account ", account, " lacks ", -left, " cents"));
}

absl::Status CheckMoved(SqlSession& s, const Entry& entry, const State& after, int64_t now) {
  if (absl::Status open = CheckOpen(entry.account, after); !open.ok()) return open;
  if (entry.version && after.version - 1 != *entry.version)
    return absl::AbortedError(Join("account ", entry.account, " has version ", after.version - 1, ", not ",
                                   *entry.version, "; look at it again"));
  if (after.balance > kUnlimited)
    return absl::FailedPreconditionError(
        Join("account ", entry.account, " would have more than ", kUnlimited, " cents"));
  return entry.cents > 0 ? absl::OkStatus() : CheckLeft(s, entry.account, after.available, now);
}

// The error of a hold that is not there, or is settled.
absl::Status WhyNotHeld(SqlSession& s, uint64_t hold) {
  bool found = false;
  int64_t settled = 0;
  absl::Status status = s.Query("SELECT settled FROM holds WHERE id = ?1", {hold}, [&](const SqlRow& row) {
    found = true;
    settled = row.Integer(0);
  });
  if (!status.ok()) return status;
  if (!found) return absl::NotFoundError(Join("there is no hold ", hold));
  return absl::FailedPreconditionError(settled > 0 ? Join("posting ", settled, " has taken hold ", hold)
                                                   : Join("hold ", hold, " was given back or has expired"));
}

absl::Status TakeHold(SqlSession& s, const Posting& posting, uint64_t id, int64_t now) {
  uint64_t account = 0;
  int64_t held = 0;
  absl::Status status = s.Query(
      "UPDATE holds SET settled = ?2 WHERE id = ?1 AND settled = 0 AND expires_ms > ?3 RETURNING account, "
      "cents",
      {posting.hold, id, now}, [&](const SqlRow& row) {
        account = row.Unsigned(0);
        held = row.Integer(1);
      });
  if (!status.ok()) return status;
  if (held == 0) return WhyNotHeld(s, posting.hold);
  const Entry* const taken = Find(posting.entries, account);
  if (taken != nullptr && taken->cents < 0 && -taken->cents <= held) return absl::OkStatus();
  return absl::FailedPreconditionError(Join("hold ", posting.hold, " has ", held, " cents of account ",
                                            account, "; a posting takes that or less from it"));
}

absl::Status BeginTransfer(SqlSession& s, const Posting& posting, uint64_t id) {
  const auto sender = std::ranges::find_if(posting.entries, [](const Entry& e) { return e.cents < 0; });
  return s.Execute(
      "INSERT INTO transfers(posting, sender, shard, account, cents, settled) VALUES (?1, ?2, ?3, ?4, ?5, 0)",
      {id, sender->account, uint64_t{posting.to->shard}, posting.to->account,
       Find(posting.entries, kInTransit)->cents});
}

absl::Status List(SqlSession& s, std::string_view sql, std::initializer_list<SqlValue> values,
                  std::vector<Booked>* booked) {
  return s.Query(sql, values, [&](const SqlRow& row) {
    booked->push_back({.posting = row.Unsigned(0),
                       .account = row.Unsigned(1),
                       .version = row.Unsigned(2),
                       .cents = row.Integer(3),
                       .balance = row.Integer(4),
                       .counterpart = row.Unsigned(5),
                       .text = std::string(row.Text(6)),
                       .booked_ms = row.Integer(7)});
  });
}

}  // namespace

absl::Status Ledger::Open(SqlSession& s, const LedgerAccount& account) const {
  absl::Status status = CheckAccount(account);
  if (!status.ok()) return status;
  bool found = false, same = false;
  status = s.Query("SELECT owner, lowest FROM accounts WHERE id = ?1", {account.id}, [&](const SqlRow& row) {
    found = true;
    same = row.Unsigned(0) == account.owner && row.Integer(1) == -account.limit;
  });
  if (!status.ok() || same) return status;
  if (found) return absl::AlreadyExistsError(Join("account ", account.id, " has another owner or limit"));
  return s.Execute(
      "INSERT INTO accounts(id, owner, lowest, open, version, balance) VALUES (?1, ?2, ?3, 1, 0, 0)",
      {account.id, account.owner, -account.limit});
}

absl::Status Ledger::CheckAtRest(SqlSession& s, uint64_t account) const {
  absl::Status status = CheckId(account);
  if (!status.ok()) return status;
  std::vector<State> states;
  status = ReadStates(s, {{account}}, &states);
  if (!status.ok()) return status;
  if (!states[0].found) return NoAccount(account);
  bool busy = states[0].balance != 0;
  status = s.Query(
      "SELECT 1 FROM holds WHERE account = ?1 AND settled = 0 AND expires_ms > ?2"
      " UNION ALL SELECT 1 FROM transfers WHERE sender = ?1 AND settled = 0",
      {account, clock_()}, [&](const SqlRow&) { busy = true; });
  if (!status.ok() || !busy) return status;
  return absl::FailedPreconditionError(Join("account ", account, " has ", states[0].balance,
                                            " cents, a hold or a pending transfer; end these first"));
}

absl::Status Ledger::Close(SqlSession& s, uint64_t account) const {
  absl::Status status = CheckAtRest(s, account);
  return status.ok() ? s.Execute("UPDATE accounts SET open = 0 WHERE id = ?1", {account}) : status;
}

absl::Status Ledger::Reopen(SqlSession& s, uint64_t account) const {
  absl::Status status = s.Execute("UPDATE accounts SET open = 1 WHERE id = ?1", {account});
  return status.ok() && s.changes() == 0 ? NoAccount(account) : status;
}

absl::Status Ledger::Post(SqlSession& s, const LedgerRequest& request, const Posting& posting,
                          std::vector<Booked>* booked) const {
  const size_t before = booked->size();
  absl::Status status = Answer(
      s, request, posting,
      [&](uint64_t* id) { return Write(s, posting, posting.to ? posting.to->account : 0, id); }, booked);
  if (status.ok() && booked->size() == before)
    return absl::FailedPreconditionError(Join("the request \"", request.name, "\" was refused"));
  return status;
}

absl::Status Ledger::Refuse(SqlSession& s, const LedgerRequest& request, const Posting& posting,
                            std::vector<Booked>* booked) const {
  bool refused = false;
  const auto refuse = [&](uint64_t*) {
    refused = true;
    return absl::OkStatus();
  };
  absl::Status status = Answer(s, request, posting, refuse, booked);
  if (!status.ok() || !refused || request.since_ms == 0) return status;
  status = s.Execute("UPDATE ledger_requests SET since_ms = ?3 WHERE caller = ?1 AND name = ?2",
                     {request.caller, request.name, request.since_ms});
  return status.ok() ? ForgetRefusals(s, std::min(clock_(), request.since_ms) - kRefusalKeptMs) : status;
}

absl::Status Ledger::Answer(SqlSession& s, const LedgerRequest& request, const Posting& posting,
                            absl::FunctionRef<absl::Status(uint64_t* id)> decide,
                            std::vector<Booked>* booked) const {
  absl::Status status = CheckRequest(request);
  if (status.ok()) status = CheckPosting(posting, shard_);
  if (!status.ok()) return status;
  uint64_t id = kRefused;
  status = AnswerOnce(s, request, ContentOf(posting), &id, [&] { return decide(&id); });
  if (!status.ok() || id == kRefused) return status;
  return List(s, "SELECT * FROM booked WHERE posting = ?1 ORDER BY account", {id}, booked);  // L3
}

absl::Status Ledger::Write(SqlSession& s, const Posting& posting, uint64_t remote, uint64_t* id) const {
  const int64_t now = clock_();
  absl::Status status = s.Query(
      "INSERT INTO postings(id, text, remote, booked_ms)"
      " SELECT coalesce(max(id), 0) + 1, ?1, ?2, ?3 FROM postings RETURNING id",
      {posting.text, remote, now}, [&](const SqlRow& row) { *id = row.Unsigned(0); });
  if (status.ok() && posting.hold != 0) status = TakeHold(s, posting, *id, now);
  if (status.ok()) status = Move(s, posting.entries, *id, now);
  return status.ok() && posting.to ? BeginTransfer(s, posting, *id) : status;  // L6
}

absl::Status Ledger::Move(SqlSession& s, const std::vector<Entry>& entries, uint64_t posting,
                          int64_t now) const {
  std::vector<SqlValue> accounts, changes, rows;
  for (const Entry& entry : entries) {
    accounts.push_back(entry.account);
    changes.insert(changes.end(), {entry.account, entry.cents});
  }
  const auto none = [](size_t, const SqlRow&) {};
  std::vector<State> after;
  absl::Status status = s.QueryEach(
      "UPDATE accounts SET version = version + 1, balance = balance + ?2 WHERE id = ?1", 2, changes, none);
  if (status.ok()) status = ReadStates(s, accounts, &after);
  for (size_t i = 0; status.ok() && i < entries.size(); ++i) {
    status = CheckMoved(s, entries[i], after[i], now);
    rows.insert(rows.end(),
                {entries[i].account, after[i].version, entries[i].cents, after[i].balance, posting});
  }
  if (!status.ok()) return status;
  return s.QueryEach(
      "INSERT INTO entries(account, version, cents, balance, posting) VALUES (?1, ?2, ?3, ?4, ?5)", 5, rows,
      none);
}

absl::Status Ledger::Hold(SqlSession& s, const LedgerRequest& request, uint64_t account, int64_t cents,
                          int64_t expires_ms, uint64_t* hold) const {
  absl::Status status = CheckRequest(request);
  if (status.ok()) status = CheckId(account);
  if (status.ok()) status = CheckCents(cents, 1);
  if (!status.ok()) return status;
  return AnswerOnce(s, request, Join("hold ", account, " ", cents, " ", expires_ms), hold, [&] {
    std::vector<State> states;
    absl::Status can = ReadStates(s, {{account}}, &states);
    if (can.ok()) can = CheckOpen(account, states[0]);
    if (can.ok()) can = CheckLeft(s, account, states[0].available - cents, clock_());
    if (!can.ok()) return can;
    return s.Query(
        "INSERT INTO holds(id, account, cents, expires_ms, settled)"
        " SELECT coalesce(max(id), 0) + 1, ?1, ?2, ?3, 0 FROM holds RETURNING id",
        {account, cents, expires_ms}, [&](const SqlRow& row) { *hold = row.Unsigned(0); });
  });
}

absl::Status Ledger::Void(SqlSession& s, uint64_t hold) const {
  absl::Status status =
      s.Execute("UPDATE holds SET settled = ?2 WHERE id = ?1 AND settled <= 0", {hold, kBack});
  return status.ok() && s.changes() == 0 ? WhyNotHeld(s, hold) : status;
}

absl::Status Ledger::Balance(SqlSession& s, uint64_t account, uint64_t at_least, AccountState* state) const {
  bool found = false;
  absl::Status status = s.Query(
      "SELECT owner, version, balance, open, balance - lowest - held +"
      " (SELECT CAST(coalesce(sum(cents), 0) AS INTEGER) FROM holds"
      "  WHERE account = ?1 AND settled = 0 AND expires_ms <= ?2) FROM states WHERE id = ?1",
      {account, clock_()}, [&](const SqlRow& row) {
        found = true;
        *state = {.owner = row.Unsigned(0),
                  .version = row.Unsigned(1),
                  .balance = row.Integer(2),
                  .available = row.Integer(4),
                  .open = row.Integer(3) != 0};
      });
  if (!status.ok()) return status;
  if (!found) return NoAccount(account);
  if (state->version >= at_least) return absl::OkStatus();
  return absl::UnavailableError(Join("account ", account, " has version ", state->version, " here, not ",
                                     at_least, " yet; try again, or ask the primary"));
}

absl::Status Ledger::Entries(SqlSession& s, uint64_t account, uint64_t after, uint32_t limit,
                             std::vector<Booked>* booked) const {
  return List(s, "SELECT * FROM booked WHERE account = ?1 AND version > ?2 ORDER BY version LIMIT ?3",
              {account, Bounded(after), uint64_t{std::min(limit, kMostPage)}}, booked);
}

absl::Status Ledger::Follow(SqlSession& s, uint64_t after, uint32_t limit,
                            std::vector<Booked>* booked) const {
  const uint64_t first = Bounded(after);
  return List(s, "SELECT * FROM booked WHERE posting > ?1 AND posting <= ?2 ORDER BY posting, account",
              {first, Bounded(first + std::min(limit, kMostPage))}, booked);
}

absl::Status Ledger::Look(SqlSession& s, uint64_t posting, TransferState* state) const {
  bool found = false;
  absl::Status status =
      s.Query("SELECT settled FROM transfers WHERE posting = ?1", {posting}, [&](const SqlRow& row) {
        found = true;
        const int64_t settled = row.Integer(0);
        *state = settled == 0       ? TransferState::kPending
                 : settled == kBack ? TransferState::kArrived
                                    : TransferState::kReturned;
      });
  if (status.ok() && !found)
    return absl::NotFoundError(Join("posting ", posting, " is not a transfer of this shard"));
  return status;
}

absl::Status Ledger::Receive(SqlSession& s, const Transfer& transfer, bool* arrived) const {
  absl::Status status = CheckTransfer(transfer, shard_);
  if (!status.ok()) return status;
  uint64_t answer = kRefused;
  const std::string name = Join("transfer ", transfer.from_shard, " ", transfer.posting);
  status = AnswerOnce(s, {kLedger, name}, ContentOf(transfer), &answer, [&] {  // L7
    std::vector<State> states;
    absl::Status read = ReadStates(s, {{transfer.to.account}}, &states);
    if (!read.ok() || !states[0].open || states[0].balance > kUnlimited - transfer.cents) return read;
    const Posting mirror{
        .entries = {{kInTransit, -transfer.cents, {}}, {transfer.to.account, transfer.cents, {}}},
        .text = transfer.text};
    return Write(s, mirror, transfer.sender, &answer);
  });
  *arrived = answer != kRefused;
  return status;
}

absl::Status Ledger::Settle(SqlSession& s, uint64_t posting, bool arrived) const {
  Transfer transfer;
  absl::Status status = s.Query(
      "UPDATE transfers SET settled = ?2 WHERE posting = ?1 AND settled = 0 RETURNING sender, account, cents,"
      " (SELECT text FROM postings WHERE id = posting)",
      {posting, kBack}, [&](const SqlRow& row) {
        transfer = {.sender = row.Unsigned(0),
                    .to = {.account = row.Unsigned(1)},
                    .cents = row.Integer(2),
                    .text = std::string(row.Text(3))};
      });
  if (!status.ok() || transfer.cents == 0 || arrived) return status;  // L8: 0 cents: it was settled before
  const Posting back{.entries = {{kInTransit, -transfer.cents, {}}, {transfer.sender, transfer.cents, {}}},
                     .text = transfer.text};
  uint64_t id = 0;
  status = Write(s, back, transfer.to.account, &id);
  if (!status.ok()) return status;
  return s.Execute("UPDATE transfers SET settled = ?2 WHERE posting = ?1", {posting, id});
}

absl::Status Ledger::Deliver(SqlDatabase& db, const Send& send, absl::FunctionRef<bool()> stopping) const {
  absl::Status first;
  std::set<uint32_t> failed;
  uint64_t after = 0;
  uint32_t seen = kTransfersAtOnce;
  while (seen == kTransfersAtOnce) {
    seen = 0;
    std::map<uint32_t, std::vector<Transfer>> shards;
    absl::Status read = db.Read(Deadline::In(kStepTime), [&](SqlSession& s) {
      return s.Query(
          "SELECT t.posting, t.sender, t.shard, t.account, t.cents, p.text FROM transfers t"
          " JOIN postings p ON p.id = t.posting WHERE t.settled = 0 AND t.posting > ?1"
          " ORDER BY t.posting LIMIT ?2",
          {after, uint64_t{kTransfersAtOnce}}, [&](const SqlRow& row) {
            ++seen;
            after = row.Unsigned(0);
            const Place to{.shard = static_cast<uint32_t>(row.Unsigned(2)), .account = row.Unsigned(3)};
            shards[to.shard].push_back(
                {shard_, after, row.Unsigned(1), to, row.Integer(4), std::string(row.Text(5))});
          });
    });
    if (!read.ok()) return read;
    for (const auto& [shard, transfers] : shards) {
      if (stopping()) return first;
      if (failed.contains(shard)) continue;
      absl::Status status = DeliverTo(db, send, transfers);
      if (!status.ok()) failed.insert(shard);
      first.Update(status);
    }
  }
  return first;
}

absl::Status Ledger::DeliverTo(SqlDatabase& db, const Send& send,
                               const std::vector<Transfer>& transfers) const {
  std::vector<bool> arrived;
  absl::Status status = send(transfers, &arrived);
  if (status.ok() && arrived.size() != transfers.size())
    status = absl::InternalError(Join("shard ", transfers[0].to.shard, " answered ", arrived.size(), " of ",
                                      transfers.size(), " transfers"));
  if (!status.ok()) return status;
  return db.Write(Deadline::In(kStepTime), [&](SqlSession& s) {
    absl::Status settled;
    for (size_t i = 0; settled.ok() && i < transfers.size(); ++i)
      settled = Settle(s, transfers[i].posting, arrived[i]);
    return settled;
  });
}

}  // namespace curtail::apps
