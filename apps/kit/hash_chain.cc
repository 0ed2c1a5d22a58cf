// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/hash_chain.h"

#include "apps/kit/digest.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

const char HashChain::kSchema[] =
    "CREATE TABLE links(number INTEGER PRIMARY KEY, record BLOB NOT NULL, hash TEXT NOT NULL) STRICT";

std::string HashChain::HashOf(std::string_view before, std::string_view record) {
  return Digest(Join(before, record));
}

absl::Status HashChain::Append(SqlSession& s, std::string_view record) {
  Head last;
  absl::Status status =
      s.Query("SELECT number, hash FROM links ORDER BY number DESC LIMIT 1", {},
              [&](const SqlRow& row) { last = {row.Unsigned(0), std::string(row.Text(1))}; });
  if (!status.ok()) return status;
  return s.Execute("INSERT INTO links(number, record, hash) VALUES (?1, ?2, ?3)",
                   {last.links + 1, SqlValue::Bytes(record), HashOf(last.hash, record)});
}

absl::Status HashChain::Verify(SqlSession& s, absl::FunctionRef<absl::Status(std::string_view record)> each,
                               Head* head) {
  constexpr int kPage = 1000;
  *head = {};
  absl::Status broken;
  int rows = kPage;
  while (rows == kPage) {
    rows = 0;
    absl::Status status =
        s.Query("SELECT number, record, hash FROM links WHERE number > ?1 ORDER BY number LIMIT ?2",
                {head->links, kPage}, [&](const SqlRow& row) {
                  ++rows;
                  if (!broken.ok()) return;
                  const uint64_t number = row.Unsigned(0);
                  const std::string hash = HashOf(head->hash, row.Text(1));
                  if (number != head->links + 1 || hash != row.Text(2))
                    broken = absl::DataLossError(Join("link ", head->links + 1, " has changed"));
                  else broken = each(row.Text(1));
                  *head = {number, hash};
                });
    if (!status.ok()) return status;
    if (!broken.ok()) return broken;
  }
  return absl::OkStatus();
}

}  // namespace curtail::apps
