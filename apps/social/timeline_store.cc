// SPDX-License-Identifier: Apache-2.0
#include "apps/social/timeline_store.h"

#include "apps/social/page.h"

namespace curtail::social {

const char TimelineStore::kSchema[] =
    "CREATE TABLE entries(user INTEGER, post INTEGER, author INTEGER NOT NULL, mentioned INTEGER NOT NULL,"
    " PRIMARY KEY(user, post)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE sizes(user INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT";

absl::Status TimelineStore::Add(SqlSession& session, const Entry& entry) const {
  absl::Status status =
      session.Execute("INSERT OR IGNORE INTO entries(user, post, author, mentioned) VALUES (?1, ?2, ?3, ?4)",
                      {entry.user, entry.post, entry.author, entry.mentioned ? 1 : 0});
  if (!status.ok()) return status;
  if (session.changes() == 0) {
    if (!entry.mentioned) return absl::OkStatus();
    return session.Execute("UPDATE entries SET mentioned = 1 WHERE user = ?1 AND post = ?2",
                           {entry.user, entry.post});
  }
  uint64_t size = 0;
  status = session.Query(
      "INSERT INTO sizes(user, size) VALUES (?1, 1) ON CONFLICT DO UPDATE SET size = size + 1 RETURNING size",
      {entry.user}, [&](const SqlRow& row) { size = row.Unsigned(0); });
  return status.ok() && size > most_ ? Trim(session, entry.user) : status;
}

absl::Status TimelineStore::Trim(SqlSession& session, uint64_t user) const {
  absl::Status status = session.Execute(
      "DELETE FROM entries WHERE user = ?1 AND post <="
      " (SELECT post FROM entries WHERE user = ?1 ORDER BY post DESC LIMIT 1 OFFSET ?2)",
      {user, length_});
  if (!status.ok()) return status;
  return Shrink(session, user, static_cast<uint64_t>(session.changes()));
}

absl::Status TimelineStore::Shrink(SqlSession& session, uint64_t user, uint64_t by) const {
  return session.Execute("UPDATE sizes SET size = size - ?2 WHERE user = ?1", {user, by});
}

absl::Status TimelineStore::Remove(SqlSession& session, uint64_t user, uint64_t post) const {
  absl::Status status = session.Execute("DELETE FROM entries WHERE user = ?1 AND post = ?2", {user, post});
  if (!status.ok() || session.changes() == 0) return status;
  return Shrink(session, user, 1);
}

absl::Status TimelineStore::Read(SqlSession& session, const TimelinePage& page,
                                 std::vector<Entry>* entries) const {
  return session.Query(
      "SELECT post, author, mentioned FROM entries WHERE user = ?1 AND post < ?2 ORDER BY post DESC LIMIT ?3",
      {page.user(), BeforeOf(page.before()), uint64_t{LimitOf(page.limit())}}, [&](const SqlRow& row) {
        entries->push_back({.user = page.user(),
                            .post = row.Unsigned(0),
                            .author = row.Unsigned(1),
                            .mentioned = row.Integer(2) != 0});
      });
}

ViewRequest ViewOf(uint64_t viewer, const std::vector<TimelineStore::Entry>& entries) {
  ViewRequest view;
  view.set_viewer(viewer);
  for (const auto& entry : entries) view.add_ids(entry.post);
  return view;
}

uint64_t NextOf(const std::vector<TimelineStore::Entry>& entries, const TimelinePage& page) {
  return entries.size() < LimitOf(page.limit()) ? 0 : entries.back().post;
}

}  // namespace curtail::social
