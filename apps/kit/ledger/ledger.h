// SPDX-License-Identifier: Apache-2.0
//
// ledger.h - accounts, postings and holds in cents, in one database: a shard.
//
//   co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
//     return ledger.Post(s, {user, key}, {.entries = {{from, -500}, {to, 500}}, .text = "rent"}, &booked);
//   });
//
// The functions are parts of a work of a SqlDatabase, so that a service may write rows of its own in the same transaction. A work
// that gets an error returns it, which undoes all of the work.
//
//  - A posting has entries whose sum is 0. Its conditions are checked, and its entries written, in one transaction.
//  - A request has a name of its caller. The same name and content again changes nothing and has the same answer; another
//    content is ALREADY_EXISTS. Names are kept for ever, except refused ones: see Refuse(). A request that failed keeps no
//    name, so a repetition tries again, unless Refuse() has ended it.
//  - A hold keeps money of an account for one posting. The service decides who may take or void it.
//  - A transfer moves money to an account of another shard. Once its posting is booked, it arrives or comes back: Deliver().
//
// Errors of all functions: INVALID_ARGUMENT, NOT_FOUND (an account, a hold or a posting), FAILED_PRECONDITION (an account is
// closed or has too little, a hold is settled or too small), those of SqlSession.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {

// The tables, a step of the schema of a service.
extern const char kLedgerSchema[];
extern const char kLedgerForgetsSchema[];  // a later step, if requests have LedgerRequest::since_ms

inline constexpr int64_t kMostCents = 1'000'000'000'000;  // of an entry, and of a hold
// No balance is further from 0. As the limit of an account: it has none.
inline constexpr int64_t kUnlimited = 1'000'000'000'000'000'000;
inline constexpr size_t kMostEntries = 16;  // of a posting
inline constexpr size_t kMostTextCharacters = 140;
inline constexpr size_t kMostRequestBytes = 160;  // an idempotency key of 128, and words of its service
inline constexpr uint32_t kMostPage = 1000;       // entries, or postings, of one page
// The account of each shard for money on its way between shards. Over all shards its balances sum to 0 when no transfer is
// pending.
inline constexpr uint64_t kInTransit = 1;
inline constexpr int64_t kRefusalKeptMs = 2 * 86'400'000;  // a refusal that may be forgotten

// `caller` is not 0.
struct LedgerRequest {
  uint64_t caller = 0;
  std::string_view name;  // 1 to kMostRequestBytes
  // 0: a refusal is kept for ever. Otherwise when its work began, since 1970, equal in all attempts: Refuse() may forget it.
  int64_t since_ms = 0;
};

struct LedgerAccount {
  uint64_t id = 0;  // above kInTransit, below 2^63; unique over all shards
  uint64_t owner = 0;
  int64_t limit = 0;  // how far the balance may go below 0
};

struct Entry {
  uint64_t account = 0;
  int64_t cents = 0;  // not 0
  // The version that the account has before; any if empty.
  std::optional<uint64_t> version;
};

// An account of another shard.
struct Place {
  uint32_t shard = 0;
  uint64_t account = 0;
};

struct Posting {
  std::vector<Entry> entries;  // 2 to kMostEntries, of different accounts
  std::string text;            // UTF-8 without control characters
  uint64_t hold = 0;           // the hold that this posting takes its money from; 0: none
  // Makes it a transfer: what its one entry of kInTransit gets goes on to this place. It has one debit.
  std::optional<Place> to;
};

// An entry in the books.
struct Booked {
  uint64_t posting = 0;  // counted from 1 in each shard, without gaps
  uint64_t account = 0;
  uint64_t version = 0;  // counted from 1 in each account, without gaps
  int64_t cents = 0;
  int64_t balance = 0;  // with this entry
  // The other account, in another shard if this is a transfer; 0 if there are several.
  uint64_t counterpart = 0;
  std::string text;
  int64_t booked_ms = 0;  // since 1970
  bool operator==(const Booked&) const = default;
};

struct AccountState {
  uint64_t owner = 0;
  uint64_t version = 0;
  int64_t balance = 0;
  int64_t available = 0;  // the balance and the limit, less what is held
  bool open = false;
};

struct Transfer {
  uint32_t from_shard = 0;
  uint64_t posting = 0;  // of that shard
  uint64_t sender = 0;
  Place to;
  int64_t cents = 0;
  std::string text;
};
enum class TransferState : uint8_t { kPending, kArrived, kReturned };

// A Ledger has no state but what is in the database. Thread-safe. Several processes may use one database.
class Ledger {
 public:
  // Milliseconds since 1970.
  using Clock = std::function<int64_t()>;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // `shard` is the number that places name. The sessions' databases have kLedgerSchema.
  Ledger(uint32_t shard, Clock clock) : shard_(shard), clock_(std::move(clock)) {}

  // Opens an account. A repetition changes nothing. ALREADY_EXISTS: it has another owner or limit.
  absl::Status Open(SqlSession& s, const LedgerAccount& account) const;
  // FAILED_PRECONDITION: the account has a balance, a hold or a pending transfer.
  absl::Status CheckAtRest(SqlSession& s, uint64_t account) const;
  // Closes an account that is at rest. A repetition changes nothing. Errors: as CheckAtRest().
  absl::Status Close(SqlSession& s, uint64_t account) const;
  // Opens an account again that was closed. A repetition changes nothing.
  absl::Status Reopen(SqlSession& s, uint64_t account) const;

  // Books a posting, and appends its entries, by account. ALREADY_EXISTS: the request had another content. ABORTED: an account
  // has another version; look again.
  absl::Status Post(SqlSession& s, const LedgerRequest& request, const Posting& posting,
                    std::vector<Booked>* booked) const;

  // Has a posting that failed be refused for ever, and appends nothing: Post() with its name is FAILED_PRECONDITION from now on.
  // If the request was booked meanwhile it stays booked, and this appends its entries. ALREADY_EXISTS: as Post(). A caller that
  // acts on a failure calls this first, in another transaction: an attempt of before may still be on its way.
  // With request.since_ms, this forgets some refusals of requests that are older by kRefusalKeptMs, also by the clock. An attempt at
  // a forgotten request, and each new request that is as old, is FAILED_PRECONDITION: L10.
  absl::Status Refuse(SqlSession& s, const LedgerRequest& request, const Posting& posting,
                      std::vector<Booked>* booked) const;

  // Holds cents of an account until a posting takes the hold, Void(), or the clock reaches `expires_ms`. ALREADY_EXISTS: as Post().
  absl::Status Hold(SqlSession& s, const LedgerRequest& request, uint64_t account, int64_t cents,
                    int64_t expires_ms, uint64_t* hold) const;
  // Gives the money of a hold back. A repetition changes nothing. FAILED_PRECONDITION: a posting has taken it.
  absl::Status Void(SqlSession& s, uint64_t hold) const;

  // Returns the state of an account. UNAVAILABLE: it has not reached the version `at_least`; try again. This does not wait, as
  // a work sees one state of the database. A primary has each version that was told; a standby may be behind.
  absl::Status Balance(SqlSession& s, uint64_t account, uint64_t at_least, AccountState* state) const;
  // Appends the next `limit` entries of an account, kMostPage at most, behind the version `after`, in order. None: it has no more.
  absl::Status Entries(SqlSession& s, uint64_t account, uint64_t after, uint32_t limit,
                       std::vector<Booked>* booked) const;
  // Appends all entries of the next `limit` postings, kMostPage at most, behind the posting `after`, in order. Postings become
  // visible in order. So a reader that goes on behind the last posting it has seen gets each once.
  absl::Status Follow(SqlSession& s, uint64_t after, uint32_t limit, std::vector<Booked>* booked) const;

  // Returns where a transfer is. NOT_FOUND: the posting is not a transfer of this shard.
  absl::Status Look(SqlSession& s, uint64_t posting, TransferState* state) const;
  // Called in the shard of the receiver: books a transfer, or refuses it because the account is closed, full or unknown. The
  // first answer holds for ever.
  absl::Status Receive(SqlSession& s, const Transfer& transfer, bool* arrived) const;
  // Called in the shard of the sender: ends a pending transfer by the receiver's answer. One that did not arrive is booked back.
  absl::Status Settle(SqlSession& s, uint64_t posting, bool arrived) const;

  // Calls Receive() in the shard of these transfers, which have one, and appends an answer for each. May block.
  using Send =
      std::function<absl::Status(const std::vector<Transfer>& transfers, std::vector<bool>* arrived)>;
  // Sends and settles the pending transfers, in order, some at a time. Skips a shard that failed. Returns the first error, and
  // returns early when `stopping()`. Several processes may do so at once. For a Finisher (apps/kit/jobs/finisher.h).
  absl::Status Deliver(SqlDatabase& db, const Send& send, absl::FunctionRef<bool()> stopping) const;

  // Checks all books of the shard, in bounded memory. DATA_LOSS names the first row that breaks a rule.
  static absl::Status Audit(SqlSession& s);

 private:
  // Post(), with what a new request does.
  absl::Status Answer(SqlSession& s, const LedgerRequest& request, const Posting& posting,
                      absl::FunctionRef<absl::Status(uint64_t* id)> decide,
                      std::vector<Booked>* booked) const;
  // Writes a posting with all that follows from it. `remote` is the account in the other shard, or 0.
  absl::Status Write(SqlSession& s, const Posting& posting, uint64_t remote, uint64_t* id) const;
  absl::Status Move(SqlSession& s, const std::vector<Entry>& entries, uint64_t posting, int64_t now) const;
  absl::Status DeliverTo(SqlDatabase& db, const Send& send, const std::vector<Transfer>& transfers) const;

  const uint32_t shard_;
  const Clock clock_;
};

}  // namespace curtail::apps
