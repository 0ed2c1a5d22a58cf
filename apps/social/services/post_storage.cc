// SPDX-License-Identifier: Apache-2.0
//
// Post storage: posts in SQLite, behind a memcached if there is one.
//
// The cache never shows a deleted post: Delete() puts a mark in the post's place, first in its row, then in the cache. A
// reader that missed adds what it read from SQLite only where nothing is, so it cannot replace the mark. The row goes
// last. So Retire() lists whatever the cache may still show, and a deletion that stopped half way is found again.
#include "apps/social/data.h"
#include "apps/social/gone.h"
#include "apps/social/page.h"
#include "content.curtail.h"
#include "curtail/exec/aside.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/store/memcached.h"

namespace curtail::social {

// In the place of a deleted post.
constexpr std::string_view kDeletedMark = "-";

struct PostStorageService final : PostStorage::CoroutineService {
  PostStorageService(SqlDatabase& d, std::unique_ptr<Memcached> c) : db(d), cache(std::move(c)) {}

  Coroutine Store(Context& ctx, const Post& request, Nothing*) override {
    const std::string bytes = request.SerializeAsString();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = s.Execute(
          "INSERT INTO posts(id, author, post) SELECT ?1, ?2, ?3"
          " WHERE NOT EXISTS (SELECT 1 FROM gone WHERE user = ?2)",
          {request.id(), request.author().id(), SqlValue::Bytes(bytes)});
      return status.ok() && s.changes() == 0 ? GoneError() : status;
    });
  }

  Coroutine Read(Context& ctx, const Ids& request, Posts* reply) override {
    if (absl::Status status = CheckCount(request.ids_size(), kMostIds, "ids"); !status.ok()) co_return status;
    std::vector<std::optional<std::string>> found;
    if (cache == nullptr) {
      found.resize(static_cast<size_t>(request.ids_size()));
    } else {
      const std::vector<std::string> keys = KeysOf(request);
      // Those without an answer of the cache SQLite knows.
      (co_await Aside([&] { return cache->GetAll(keys, EndOfCache(ctx), &found); })).IgnoreError();
    }
    std::vector<size_t> missed;
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) missed.push_back(i);
    }
    if (!missed.empty()) {
      absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
        std::vector<SqlValue> ids;
        for (const size_t i : missed) ids.push_back(request.ids(static_cast<int>(i)));
        return s.QueryEach("SELECT post FROM posts WHERE id = ?1", 1, ids,
                           [&](size_t run, const SqlRow& row) { found[missed[run]] = row.Text(0); });
      });
      if (!read.ok()) co_return read;
      if (cache != nullptr) {
        co_await Aside([&] {
          for (const size_t i : missed) AddToCache(ctx, request.ids(static_cast<int>(i)), found[i]);
          return true;
        });
      }
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i] || *found[i] == kDeletedMark) continue;
      const uint64_t id = request.ids(static_cast<int>(i));
      Post* const post = reply->add_posts();
      if (!post->ParseFromString(*found[i]) || post->id() != id) {
        co_return absl::DataLossError(Join("post ", id, " is damaged"));
      }
    }
    co_return absl::OkStatus();
  }

  Coroutine Delete(Context& ctx, const PostOfAuthor& request, Nothing*) override {
    if (cache != nullptr) {
      absl::Status marked = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
        return s.Execute("UPDATE posts SET post = ?3 WHERE id = ?1 AND author = ?2",
                         {request.post(), request.author(), SqlValue::Bytes(kDeletedMark)});
      });
      if (!marked.ok()) co_return marked;
      bool stored = false;
      marked = co_await Aside([&] {
        return cache->Set(KeyOf(request.post()), kDeletedMark, /*if_absent=*/false, ctx.deadline(), &stored);
      });
      if (!marked.ok()) co_return marked;
    }
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("DELETE FROM posts WHERE id = ?1 AND author = ?2", {request.post(), request.author()});
    });
  }

  Coroutine CountOf(Context& ctx, const UserId& request, CountReply* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT count(*) FROM posts WHERE author = ?1", {request.user()},
                     [&](const SqlRow& row) { reply->set_count(row.Unsigned(0)); });
    });
  }

  Coroutine Retire(Context& ctx, const PostsOfAuthor& request, Ids* reply) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = NoteGone(s, request.author());
      if (!status.ok()) return status;
      return s.Query("SELECT id FROM posts WHERE author = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
                     {request.author(), request.after(), uint64_t{EdgeLimitOf(request.limit())}},
                     [&](const SqlRow& row) { reply->add_ids(row.Unsigned(0)); });
    });
  }

  static std::string KeyOf(uint64_t post) { return Join("post", post); }

  static std::vector<std::string> KeysOf(const Ids& request) {
    std::vector<std::string> keys;
    for (const uint64_t id : request.ids()) keys.push_back(KeyOf(id));
    return keys;
  }

  void AddToCache(Context& ctx, uint64_t post, const std::optional<std::string>& bytes) {
    if (!bytes) return;
    bool stored = false;
    cache->Set(KeyOf(post), *bytes, /*if_absent=*/true, EndOfCache(ctx), &stored).IgnoreError();
  }

  // A cache that hangs leaves the database its time.
  static Deadline EndOfCache(const Context& ctx) {
    return std::min(ctx.deadline(), Deadline::In(std::chrono::milliseconds(50)));
  }

  SqlDatabase& db;
  const std::unique_ptr<Memcached> cache;  // may be null
};

HostedService HostedPostStorage() {
  auto data = std::make_shared<DataOptions>();
  return {.name = "post-storage",
          .flags = [data](Flags& flags) { AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            std::unique_ptr<Memcached> cache;
            if (!env.Store("post-cache").empty()) {
              auto address = StoreAddress::Parse(env.Store("post-cache").front());
              if (!address.ok()) return address.status();
              cache = std::make_unique<Memcached>(*std::move(address));
            }
            auto db = OpenData(env, *data, "post-storage",
                               {"CREATE TABLE posts(id INTEGER PRIMARY KEY, author INTEGER NOT NULL,"
                                " post BLOB NOT NULL) STRICT",
                                "CREATE INDEX posts_of ON posts(author)", kGoneSchema,
                                "DROP INDEX posts_of; CREATE INDEX posts_of ON posts(author, id)"});
            if (!db.ok()) return db.status();
            return std::make_unique<PostStorageService>(**db, std::move(cache));
          }};
}

}  // namespace curtail::social
