// SPDX-License-Identifier: Apache-2.0
//
// Post storage: posts in SQLite, behind a memcached if there is one.
//
// The cache never shows a deleted post: Delete() first commits, then puts a mark in the post's place. A reader that
// missed adds what it read from SQLite only where nothing is, so it cannot replace the mark.
#include "apps/social/data.h"
#include "apps/social/page.h"
#include "content.curtail.h"
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
      return s.Execute("INSERT INTO posts(id, author, post) VALUES (?1, ?2, ?3)",
                       {request.id(), request.author().id(), SqlValue::Bytes(bytes)});
    });
  }

  Coroutine Read(Context& ctx, const Ids& request, Posts* reply) override {
    if (absl::Status status = CheckCount(request.ids_size(), kMostIds, "ids"); !status.ok()) co_return status;
    std::vector<std::string> found(static_cast<size_t>(request.ids_size()));
    std::vector<int> missed;
    for (int i = 0; i < request.ids_size(); ++i) {
      if (!Cached(ctx, request.ids(i), &found[static_cast<size_t>(i)])) missed.push_back(i);
    }
    if (!missed.empty()) {
      absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
        absl::Status status;
        for (const int i : missed) {
          status.Update(s.Query("SELECT post FROM posts WHERE id = ?1", {request.ids(i)},
                                [&](const SqlRow& row) { found[static_cast<size_t>(i)] = row.Text(0); }));
        }
        return status;
      });
      if (!read.ok()) co_return read;
    }
    for (const int i : missed) AddToCache(ctx, request.ids(i), found[static_cast<size_t>(i)]);
    for (const std::string& bytes : found) {
      if (bytes.empty() || bytes == kDeletedMark) continue;
      if (!reply->add_posts()->ParseFromString(bytes)) co_return absl::DataLossError("a post is damaged");
    }
    co_return absl::OkStatus();
  }

  Coroutine Delete(Context& ctx, const PostOfAuthor& request, Nothing*) override {
    absl::Status deleted = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("DELETE FROM posts WHERE id = ?1 AND author = ?2", {request.post(), request.author()});
    });
    if (!deleted.ok() || cache == nullptr) co_return deleted;
    bool stored = false;
    co_return cache->Set(KeyOf(request.post()), kDeletedMark, /*if_absent=*/false, ctx.deadline(), &stored);
  }

  Coroutine CountOf(Context& ctx, const UserId& request, CountReply* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT count(*) FROM posts WHERE author = ?1", {request.user()},
                     [&](const SqlRow& row) { reply->set_count(row.Unsigned(0)); });
    });
  }

  static std::string KeyOf(uint64_t post) { return Join("post", post); }

  // False without an answer of the cache: then SQLite knows.
  bool Cached(Context& ctx, uint64_t post, std::string* bytes) {
    bool found = false;
    return cache != nullptr && cache->Get(KeyOf(post), ctx.deadline(), &found, bytes).ok() && found;
  }

  void AddToCache(Context& ctx, uint64_t post, const std::string& bytes) {
    if (cache == nullptr || bytes.empty()) return;
    bool stored = false;
    cache->Set(KeyOf(post), bytes, /*if_absent=*/true, ctx.deadline(), &stored).IgnoreError();
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
                                "CREATE INDEX posts_of ON posts(author)"});
            if (!db.ok()) return db.status();
            return std::make_unique<PostStorageService>(**db, std::move(cache));
          }};
}

}  // namespace curtail::social
