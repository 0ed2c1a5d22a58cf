// SPDX-License-Identifier: Apache-2.0
#include "apps/social/common/page.h"
#include "apps/social/common/timeline_store.h"

namespace curtail::social {

const char kTimelineSchema[] =
    "CREATE TABLE entries(user INTEGER, post INTEGER, author INTEGER NOT NULL, mentioned INTEGER NOT NULL,"
    " PRIMARY KEY(user, post)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE sizes(user INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT";

namespace {

// It trims when an eighth is too many, as that looks at all of them. Where it keeps all, it has no sizes.
class SqlTimelines final : public TimelineStore {
 public:
  SqlTimelines(SqlDatabase* db, uint64_t length)
      : db_(*db), length_(length), most_(length + length / 8 + 1) {}

  Coroutine Add(Context& ctx, std::vector<Entry> entries) override {
    co_return co_await db_.Writing(ctx.deadline(),
                                   [&](SqlSession& session) { return AddAll(session, entries); });
  }

  Coroutine Remove(Context& ctx, std::vector<Entry> entries) override {
    co_return co_await db_.Writing(ctx.deadline(),
                                   [&](SqlSession& session) { return RemoveAll(session, entries); });
  }

  Coroutine Forget(Context& ctx, uint64_t user) override {
    co_return co_await db_.Writing(ctx.deadline(), [&](SqlSession& session) {
      absl::Status status = session.Execute("DELETE FROM entries WHERE user = ?1", {user});
      return status.ok() ? session.Execute("DELETE FROM sizes WHERE user = ?1", {user}) : status;
    });
  }

  Coroutine Read(Context& ctx, const TimelinePage& page, std::vector<Entry>* entries) override {
    co_return co_await db_.Reading(ctx.deadline(), [&](SqlSession& session) {
      return session.Query(
          "SELECT post, author, mentioned FROM entries WHERE user = ?1 AND post < ?2 ORDER BY post DESC "
          "LIMIT ?3 OFFSET ?4",
          {page.user(), apps::BeforeOf(page.before()), uint64_t{apps::LimitOf(page.limit())},
           uint64_t{page.skip()}},
          [&](const SqlRow& row) {
            entries->push_back({.user = page.user(),
                                .post = row.Unsigned(0),
                                .author = row.Unsigned(1),
                                .mentioned = row.Integer(2) != 0});
          });
    });
  }

 private:
  absl::Status AddAll(SqlSession& session, const std::vector<Entry>& entries) const;
  static absl::Status RemoveAll(SqlSession& session, const std::vector<Entry>& entries);
  absl::Status Trim(SqlSession& session, uint64_t user) const;

  SqlDatabase& db_;
  const uint64_t length_, most_;
};

absl::Status SqlTimelines::AddAll(SqlSession& session, const std::vector<Entry>& entries) const {
  std::vector<SqlValue> values;
  for (const Entry& entry : entries) {
    values.insert(values.end(), {entry.user, entry.post, entry.author, entry.mentioned ? 1 : 0});
  }
  std::vector<bool> added(entries.size());
  absl::Status status = session.QueryEach(
      "INSERT INTO entries(user, post, author, mentioned) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING"
      " RETURNING 1",
      4, values, [&](size_t run, const SqlRow&) { added[run] = true; });
  if (!status.ok()) return status;
  std::vector<SqlValue> users, mentioned, too_long;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (added[i]) users.push_back(entry.user);
    if (!added[i] && entry.mentioned) mentioned.insert(mentioned.end(), {entry.user, entry.post});
  }
  if (length_ == 0) users.clear();
  status = session.QueryEach(
      "INSERT INTO sizes(user, size) VALUES (?1, 1) ON CONFLICT(user) DO UPDATE SET size = sizes.size + 1 "
      "RETURNING size",
      1, users, [&](size_t run, const SqlRow& row) {
        if (row.Unsigned(0) > most_) too_long.push_back(users[run]);
      });
  if (!status.ok()) return status;
  status = session.QueryEach("UPDATE entries SET mentioned = 1 WHERE user = ?1 AND post = ?2", 2, mentioned,
                             [](size_t, const SqlRow&) {});
  for (const SqlValue& user : too_long) status.Update(Trim(session, static_cast<uint64_t>(user.integer())));
  return status;
}

absl::Status SqlTimelines::Trim(SqlSession& session, uint64_t user) const {
  absl::Status status = session.Execute(
      "DELETE FROM entries WHERE user = ?1 AND post <="
      " (SELECT post FROM entries WHERE user = ?1 ORDER BY post DESC LIMIT 1 OFFSET ?2)",
      {user, length_});
  if (!status.ok()) return status;
  return session.Execute("UPDATE sizes SET size = size - ?2 WHERE user = ?1", {user, session.changes()});
}

absl::Status SqlTimelines::RemoveAll(SqlSession& session, const std::vector<Entry>& entries) {
  std::vector<SqlValue> values, users;
  for (const Entry& entry : entries) values.insert(values.end(), {entry.user, entry.post, entry.author});
  absl::Status status =
      session.QueryEach("DELETE FROM entries WHERE user = ?1 AND post = ?2 AND author = ?3 RETURNING 1", 3,
                        values, [&](size_t run, const SqlRow&) { users.push_back(entries[run].user); });
  if (!status.ok()) return status;
  return session.QueryEach("UPDATE sizes SET size = size - 1 WHERE user = ?1", 1, users,
                           [](size_t, const SqlRow&) {});
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
  return entries.size() < apps::LimitOf(page.limit()) ? 0 : entries.back().post;
}

}  // namespace curtail::social
