// SPDX-License-Identifier: Apache-2.0
#include "apps/social/page.h"
#include "apps/social/timeline_store.h"

namespace curtail::social {

const char kTimelineSchema[] =
    "CREATE TABLE entries(user INTEGER, post INTEGER, author INTEGER NOT NULL, mentioned INTEGER NOT NULL,"
    " PRIMARY KEY(user, post)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE sizes(user INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT";

namespace {

// It trims when an eighth is too many, as that looks at all of them.
class SqlTimelines final : public TimelineStore {
 public:
  SqlTimelines(SqlDatabase* db, uint64_t length)
      : db_(*db), length_(length), most_(length + length / 8 + 1) {}

  Coroutine Add(Context& ctx, std::vector<Entry> entries) override {
    co_return co_await db_.Writing(ctx.deadline(), [&](SqlSession& session) {
      absl::Status status;
      for (const Entry& entry : entries) status.Update(AddOne(session, entry));
      return status;
    });
  }

  Coroutine Remove(Context& ctx, std::vector<Entry> entries) override {
    co_return co_await db_.Writing(ctx.deadline(), [&](SqlSession& session) {
      absl::Status status;
      for (const Entry& entry : entries) status.Update(RemoveOne(session, entry.user, entry.post));
      return status;
    });
  }

  Coroutine Read(Context& ctx, const TimelinePage& page, std::vector<Entry>* entries) override {
    co_return co_await db_.Reading(ctx.deadline(), [&](SqlSession& session) {
      return session.Query(
          "SELECT post, author, mentioned FROM entries WHERE user = ?1 AND post < ?2 ORDER BY post DESC "
          "LIMIT ?3 OFFSET ?4",
          {page.user(), BeforeOf(page.before()), uint64_t{LimitOf(page.limit())}, uint64_t{page.skip()}},
          [&](const SqlRow& row) {
            entries->push_back({.user = page.user(),
                                .post = row.Unsigned(0),
                                .author = row.Unsigned(1),
                                .mentioned = row.Integer(2) != 0});
          });
    });
  }

 private:
  absl::Status AddOne(SqlSession& session, const Entry& entry) const;
  absl::Status RemoveOne(SqlSession& session, uint64_t user, uint64_t post) const;
  absl::Status Trim(SqlSession& session, uint64_t user) const;
  absl::Status Shrink(SqlSession& session, uint64_t user, uint64_t by) const;

  SqlDatabase& db_;
  const uint64_t length_, most_;
};

absl::Status SqlTimelines::AddOne(SqlSession& session, const Entry& entry) const {
  absl::Status status = session.Execute(
      "INSERT INTO entries(user, post, author, mentioned) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
      {entry.user, entry.post, entry.author, entry.mentioned ? 1 : 0});
  if (!status.ok()) return status;
  if (session.changes() == 0) {
    if (!entry.mentioned) return absl::OkStatus();
    return session.Execute("UPDATE entries SET mentioned = 1 WHERE user = ?1 AND post = ?2",
                           {entry.user, entry.post});
  }
  uint64_t size = 0;
  status = session.Query(
      "INSERT INTO sizes(user, size) VALUES (?1, 1) ON CONFLICT(user) DO UPDATE SET size = sizes.size + 1 "
      "RETURNING size",
      {entry.user}, [&](const SqlRow& row) { size = row.Unsigned(0); });
  return status.ok() && size > most_ ? Trim(session, entry.user) : status;
}

absl::Status SqlTimelines::Trim(SqlSession& session, uint64_t user) const {
  absl::Status status = session.Execute(
      "DELETE FROM entries WHERE user = ?1 AND post <="
      " (SELECT post FROM entries WHERE user = ?1 ORDER BY post DESC LIMIT 1 OFFSET ?2)",
      {user, length_});
  if (!status.ok()) return status;
  return Shrink(session, user, static_cast<uint64_t>(session.changes()));
}

absl::Status SqlTimelines::Shrink(SqlSession& session, uint64_t user, uint64_t by) const {
  return session.Execute("UPDATE sizes SET size = size - ?2 WHERE user = ?1", {user, by});
}

absl::Status SqlTimelines::RemoveOne(SqlSession& session, uint64_t user, uint64_t post) const {
  absl::Status status = session.Execute("DELETE FROM entries WHERE user = ?1 AND post = ?2", {user, post});
  if (!status.ok() || session.changes() == 0) return status;
  return Shrink(session, user, 1);
}

}  // namespace

std::unique_ptr<TimelineStore> MakeSqlTimelines(SqlDatabase* db, uint64_t length) {
  return std::make_unique<SqlTimelines>(db, length);
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
