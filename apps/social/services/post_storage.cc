// SPDX-License-Identifier: Apache-2.0
//
// Post storage: posts in SQLite, behind a memcached if there is one.
//
//  D1  One transaction moves the row of a deleted post to the list of deleted posts, and so those that repeat it without a
//      text, some at once. All that is shown is read here, so it is hidden now.
//  D2  A mark takes the post's place in the cache. A reader that missed adds what it read from SQLite only where nothing is,
//      so it cannot replace the mark. Until then the deletion is not acknowledged.
//  D3  Whoever has removed what belongs to the post elsewhere calls Settle(). That does D2 again, as D2 may have failed, and
//      takes the post from the list.
//
// After D1 of a post the store takes no repost of it without a text, and counts none, moved or not. A counter holds the number of an
// author's rows: it changes in the transaction that adds or moves one.
#include "apps/kit/accounts/gone.h"
#include "apps/kit/once.h"
#include "apps/social/common/page.h"
#include "apps/social/common/posts.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/base/log.h"
#include "curtail/exec/aside.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/store/memcached.h"

namespace curtail::social {

// In the place of a deleted post.
constexpr std::string_view kDeletedMark = "-";
// Posts that one transaction deletes, beside the one that it is about.
constexpr int kDeletedAtOnce = 250;

// Leaves the ids and codes, by which other services keep what belongs to a deleted post.
void Strip(Post* post) {
  post->clear_text();
  post->clear_original();
  for (Url& url : *post->mutable_urls()) url.clear_url();
}

const char kDeletedSchema[] =
    "DELETE FROM posts WHERE length(post) = 1;"  // marks, which deletions left here until this version
    "CREATE TABLE deleted(post INTEGER PRIMARY KEY, author INTEGER NOT NULL, decider INTEGER NOT NULL,"
    " rest BLOB NOT NULL) STRICT";
const char kRepeatsSchema[] =
    "ALTER TABLE posts ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;"
    "DROP INDEX posts_of;"
    "CREATE INDEX posts_of ON posts(author, repeats);"
    "CREATE INDEX repeated ON posts(repeats) WHERE repeats <> 0";
// `more`: reposts were left for Settle(). Whatever was deleted before this version may have some.
const char kPostCountersSchema[] =
    "CREATE TABLE counters(author INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT;"
    "INSERT INTO counters(author, size) SELECT author, count(*) FROM posts GROUP BY author;"
    "ALTER TABLE deleted ADD COLUMN more INTEGER NOT NULL DEFAULT 1;"
    "CREATE INDEX deleted_more ON deleted(post) WHERE more = 1";

struct PostStorageService final : PostStorage::CoroutineService {
  PostStorageService(SqlDatabase& d, std::unique_ptr<Memcached> c) : db(d), cache(std::move(c)) {}

  Coroutine Store(Context& ctx, const Post& request, Named* reply) override {
    apps::Once once(ctx, request.author().id());
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = Find(s, &once, reply);
      if (!status.ok() || once.repeated()) return status;
      status = Insert(s, request);
      return status.ok() ? once.Keep(s, request, apps::Once::Seen::kBegun) : status;
    });
  }

  static absl::Status Insert(SqlSession& s, const Post& post) {
    const std::string bytes = post.SerializeAsString();
    const uint64_t repeats = IsBareRepost(post) ? post.original().id() : 0;
    absl::Status status = s.Execute(
        "INSERT INTO posts(id, author, post, repeats) SELECT ?1, ?2, ?3, ?4"
        " WHERE NOT EXISTS (SELECT 1 FROM gone WHERE user = ?2)"
        " AND (?4 = 0 OR EXISTS (SELECT 1 FROM posts WHERE id = ?4))",
        {post.id(), post.author().id(), SqlValue::Bytes(bytes), repeats});
    if (!status.ok()) return status;
    if (s.changes() > 0) {
      return s.Execute(
          "INSERT INTO counters(author, size) VALUES (?1, 1)"
          " ON CONFLICT(author) DO UPDATE SET size = counters.size + 1",
          {post.author().id()});
    }
    status = apps::CheckThere(s, post.author().id());
    return status.ok() ? absl::NotFoundError("there is no such post to refer to") : status;
  }

  // The post that the request's name was kept with.
  static absl::Status Find(SqlSession& s, apps::Once* once, Named* named) {
    named->Clear();
    absl::Status status = once->Look(s, named->mutable_post());
    named->set_acknowledged(once->seen() == apps::Once::Seen::kDone);
    return status;
  }

  Coroutine FindNamed(Context& ctx, const UserId& request, Named* reply) override {
    apps::Once once(ctx, request.user());
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) { return Find(s, &once, reply); });
  }

  Coroutine Acknowledge(Context& ctx, const PostOfAuthor& request, Nothing*) override {
    apps::Once once(ctx, request.author());
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      Named named;
      bool there = false;
      absl::Status status = Find(s, &once, &named);
      status.Update(s.Query("SELECT 1 FROM posts WHERE id = ?1 AND author = ?2",
                            {request.post(), request.author()},
                            [&](const SqlRow&) { there = named.post().id() == request.post(); }));
      if (!status.ok()) return status;
      if (!there) return absl::AbortedError("the post was taken back; try again");
      return once.Keep(s, named.post(), apps::Once::Seen::kDone);
    });
  }

  Coroutine Read(Context& ctx, const Ids& request, Posts* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
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

  Coroutine Delete(Context& ctx, const PostOfAuthor& request, Posts* reply) override {
    apps::Once once(ctx, request.author());
    absl::Status decided = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {  // D1
      Nothing nothing;
      reply->Clear();
      if (request.refused()) return TakeBack(s, &once, request, reply);
      absl::Status status = once.Write(s, &nothing, [&] { return Decide(s, request, reply); });
      return status.ok() && once.repeated() ? AddDeleted(s, request.post(), reply) : status;
    });
    if (decided.ok()) decided = co_await Mark(ctx, IdsOf(*reply));  // D2
    co_return decided;
  }

  // The name of its request goes, too, unless a repetition was acknowledged meanwhile.
  static absl::Status TakeBack(SqlSession& s, apps::Once* once, const PostOfAuthor& request, Posts* reply) {
    Named named;
    absl::Status status = Find(s, once, &named);
    const bool own = named.post().id() == request.post();
    if (own && named.acknowledged()) return absl::PermissionDeniedError("the post is acknowledged");
    if (status.ok()) status = Decide(s, request, reply);
    return status.ok() && own ? once->Forget(s) : status;
  }

  static absl::Status Decide(SqlSession& s, const PostOfAuthor& request, Posts* reply) {
    uint64_t author = 0;
    absl::Status status =
        s.Query("SELECT author FROM posts WHERE id = ?1 UNION SELECT author FROM deleted WHERE post = ?1",
                {request.post()}, [&](const SqlRow& row) { author = row.Unsigned(0); });
    if (!status.ok()) return status;
    if (author == 0) return absl::NotFoundError("there is no such post");
    if (author != request.author()) return absl::PermissionDeniedError("the post is another's");
    const Mover mover{s, author, request.refused()};
    status =
        mover.Move("DELETE FROM posts WHERE id = ?1 RETURNING id, author, post", {request.post()}, reply);
    if (status.ok() && reply->posts().empty()) status = AddDeleted(s, request.post(), reply);
    return status.ok() ? mover.MoveReposts(request.post(), reply) : status;
  }

  // A post that is not settled, if it is one.
  static absl::Status AddDeleted(SqlSession& s, uint64_t post, Posts* reply) {
    return s.Query("SELECT rest FROM deleted WHERE post = ?1", {post},
                   [&](const SqlRow& row) { Parse(row.Text(0), reply->add_posts()); });
  }

  // Moves rows to the list of deleted posts, as `by` has decided.
  struct Mover {
    // Moves what `sql` deletes. Of a damaged post only the ids are known.
    absl::Status Move(std::string_view sql, std::initializer_list<SqlValue> values, Posts* moved) const {
      const int before = moved->posts_size();
      absl::Status status = s.Query(sql, values, [&](const SqlRow& row) {
        Post* const post = moved->add_posts();
        if (!Parse(row.Text(2), post) || post->id() != row.Unsigned(0)) {
          Log(Severity::kWarning,
              Join("post-storage: post ", row.Unsigned(0), " is damaged; its URLs and media stay"));
          post->Clear();
          post->set_id(row.Unsigned(0));
        }
        post->mutable_author()->set_id(row.Unsigned(1));
        Strip(post);
        if (refused) post->clear_media();
      });
      std::vector<SqlValue> authors;
      for (int i = before; status.ok() && i < moved->posts_size(); ++i) {
        const Post& post = moved->posts(i);
        const std::string rest = post.SerializeAsString();
        authors.push_back(post.author().id());
        status =
            s.Execute("INSERT INTO deleted(post, author, decider, rest, more) VALUES (?1, ?2, ?3, ?4, 0)",
                      {post.id(), post.author().id(), by, SqlValue::Bytes(rest)});
      }
      if (!status.ok()) return status;
      return s.QueryEach("UPDATE counters SET size = size - 1 WHERE author = ?1", 1, authors,
                         [](size_t, const SqlRow&) {});
    }
    absl::Status MoveReposts(uint64_t original, Posts* moved) const {
      const int before = moved->posts_size();
      absl::Status status = Move(
          "DELETE FROM posts WHERE id IN (SELECT id FROM posts WHERE repeats = ?1 LIMIT ?2)"
          " RETURNING id, author, post",
          {original, kDeletedAtOnce}, moved);
      if (!status.ok() || moved->posts_size() - before < kDeletedAtOnce) return status;
      return s.Execute("UPDATE deleted SET more = 1 WHERE post = ?1", {original});
    }

    SqlSession& s;
    const uint64_t by;
    const bool refused = false;
  };

  static bool Parse(std::string_view bytes, Post* post) {
    return post->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  }

  // In the cache.
  Coroutine Mark(Context& ctx, const Ids& posts) {
    if (cache == nullptr || posts.ids().empty()) co_return absl::OkStatus();
    co_return co_await Aside([&] {
      absl::Status status;
      bool stored = false;
      for (const std::string& key : KeysOf(posts))
        status.Update(cache->Set(key, kDeletedMark, /*if_absent=*/false, ctx.deadline(), &stored));
      return status;
    });
  }

  Coroutine ListDeleted(Context& ctx, const PostsOfAuthor& request, Posts* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT rest FROM deleted WHERE post > ?1 AND (?2 = 0 OR author = ?2 OR decider = ?2)"
          " ORDER BY post LIMIT ?3",
          {request.after(), request.author(), uint64_t{apps::EdgeLimitOf(request.limit())}},
          [&](const SqlRow& row) { Parse(row.Text(0), reply->add_posts()); });
    });
  }

  Coroutine Settle(Context& ctx, const Ids& request, Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    if (absl::Status marked = co_await Mark(ctx, request); !marked.ok()) co_return marked;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {  // D3
      absl::Status status;
      for (const uint64_t post : request.ids()) {
        uint64_t by = 0;
        status.Update(s.Query("SELECT decider FROM deleted WHERE post = ?1", {post},
                              [&](const SqlRow& row) { by = row.Unsigned(0); }));
        Posts more;  // of which D1 has left some
        status.Update(Mover{s, by}.MoveReposts(post, &more));
        if (!status.ok()) return status;
        if (more.posts().empty()) status = s.Execute("DELETE FROM deleted WHERE post = ?1", {post});
      }
      return status;
    });
  }

  Coroutine CountOf(Context& ctx, const UserId& request, CountReply* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT size - (SELECT count(*) FROM deleted CROSS JOIN posts AS own"
          "                WHERE more = 1 AND own.author = ?1 AND own.repeats = deleted.post)"
          " FROM counters WHERE author = ?1",
          {request.user()}, [&](const SqlRow& row) { reply->set_count(row.Unsigned(0)); });
    });
  }

  Coroutine Retire(Context& ctx, const UserId& request, CountReply* reply) override {
    Posts moved;
    absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {  // D1
      moved.Clear();
      const Mover mover{s, request.user()};
      absl::Status noted = apps::NoteGone(s, request.user());
      if (noted.ok())
        noted = mover.Move(
            "DELETE FROM posts WHERE id IN (SELECT id FROM posts WHERE author = ?1 LIMIT ?2)"
            " RETURNING id, author, post",
            {request.user(), kDeletedAtOnce}, &moved);
      const int own = moved.posts_size();
      for (int i = 0; noted.ok() && i < own; ++i) noted = mover.MoveReposts(moved.posts(i).id(), &moved);
      if (!noted.ok() || own > 0) return noted;
      return s.Execute("DELETE FROM counters WHERE author = ?1", {request.user()});
    });
    reply->set_count(static_cast<uint64_t>(moved.posts_size()));
    if (status.ok()) status = co_await Mark(ctx, IdsOf(moved));  // D2
    co_return status;
  }

  static Ids IdsOf(const Posts& posts) {
    Ids ids;
    for (const Post& post : posts.posts()) ids.add_ids(post.id());
    return ids;
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
  return apps::HostedOnData(
      kApplication, "post-storage", [](Env& env, const apps::DataOptions& data) -> MadeService {
        std::unique_ptr<Memcached> cache;
        if (!env.Store("post-cache").empty()) {
          auto address = StoreAddress::Parse(env.Store("post-cache").front());
          if (!address.ok()) return address.status();
          cache = std::make_unique<Memcached>(*std::move(address));
        }
        auto db = apps::OpenData(env, data, "post-storage",
                                 {"CREATE TABLE posts(id INTEGER PRIMARY KEY, author INTEGER NOT NULL,"
                                  " post BLOB NOT NULL) STRICT",
                                  "CREATE INDEX posts_of ON posts(author)", apps::kGoneSchema,
                                  "DROP INDEX posts_of; CREATE INDEX posts_of ON posts(author, id)",
                                  kDeletedSchema, kRepeatsSchema, apps::kOnceSchema, kPostCountersSchema});
        if (!db.ok()) return db.status();
        return std::make_unique<PostStorageService>(**db, std::move(cache));
      });
}

}  // namespace curtail::social
