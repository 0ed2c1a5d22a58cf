// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/audit.h"

#include <vector>

#include "apps/bank/books.h"
#include "apps/bank/data.h"
#include "apps/kit/data/folder.h"
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
  return status.ok() ? read("credit-card", "SELECT id, id, -most FROM cards ORDER BY number") : status;
}

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

}  // namespace

absl::Status Audit(const std::string& data) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data);
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<uint32_t> shards = ShardsIn(*folder);
  if (!shards.ok()) return shards.status();
  Listed listed;
  if (absl::Status status = ReadListed(*folder, *shards, &listed); !status.ok()) return status;
  InTransit in_transit;
  for (Shard shard{0, *shards}; shard.index < shard.count; ++shard.index) {
    absl::Status status = apps::LookAtData(*folder, BooksOf(shard), [&](SqlSession& s) {
      absl::Status whole = AuditShard(s, &in_transit);
      return whole.ok() ? CheckListed(s, listed[shard.index]) : whole;
    });
    if (!status.ok()) return absl::Status(status.code(), Join(BooksOf(shard), ": ", Message(status)));
  }
  if (in_transit.pending > 0 || in_transit.cents == 0) return absl::OkStatus();
  return absl::DataLossError(Join("account ", apps::kInTransit, " has ", in_transit.cents,
                                  " cents in transit over all shards, and no transfer is pending"));
}

}  // namespace curtail::bank
