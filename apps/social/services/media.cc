// SPDX-License-Identifier: Apache-2.0
//
// Media: what is known of images and videos. Of uploaded ones media-frontend has the bytes.
//
// An upload that no post takes expires, also if compose-post took it for one and died before Keep(). Each new one tells of
// some that did. From then on no post can have them, so that media-frontend may remove the bytes first and the row last. The
// time is that of the ids.
#include <algorithm>
#include <array>
#include <chrono>

#include "apps/kit/accounts/id_source.h"
#include "apps/kit/once.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"

namespace curtail::social {

constexpr int kMostMedia = 16;
constexpr uint64_t kMostMediaBytes = uint64_t{1} << 32;
// Of a user that no post has yet.
constexpr int64_t kMostUploads = 64;
constexpr uint64_t kMostUploadBytes = uint64_t{128} << 20;
// That one call removes.
constexpr int kMostExpired = 16;

struct MediaOptions {
  Data data;
  double upload_h = 24;
};

// Of a row `linked` says: 0, it waits for a post; 1, a post has it; 2, it has expired; 3, bytes of it are missing; 4, a draft
// has it, whose post may not come about: only the owner sees it until Keep(), which is before the post is stored.
struct MediaService final : Media::CoroutineService {
  MediaService(const MediaOptions& o, SqlDatabase& d, Env& e)
      : patience(static_cast<int64_t>(o.upload_h * 3'600'000)), db(d), env(e) {}

  static absl::Status Check(const MediaItems& items) {
    static constexpr std::array<std::string_view, 6> kTypes = {"image/png",  "image/jpeg", "image/gif",
                                                               "image/webp", "video/mp4",  "video/webm"};
    for (const MediaItem& item : items.media()) {
      if (item.id() != 0) continue;  // was uploaded
      if (std::ranges::find(kTypes, item.type()) == kTypes.end()) {
        return absl::InvalidArgumentError("a type of media other than png, jpeg, gif, webp, mp4 and webm");
      }
      if (item.bytes() > kMostMediaBytes) return absl::InvalidArgumentError("media over 4 GiB");
    }
    return apps::CheckCount(items.media_size(), kMostMedia, "media");
  }

  Coroutine Create(Context& ctx, const MediaItems& request, MediaItems* reply) override {
    if (absl::Status status = Check(request); !status.ok()) co_return status;
    if (request.media().empty()) co_return absl::OkStatus();
    *reply = request;
    IdCount fresh;
    for (const MediaItem& item : request.media()) fresh.set_count(fresh.count() + (item.id() == 0 ? 1 : 0));
    Ids ids;
    if (fresh.count() > 0) {
      auto [next] = co_await WhenAll(ctx, Ask(unique_id, UniqueId::kNext, fresh));
      if (!next.ok()) co_return next.status();
      ids = *std::move(next);
    }
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      // Whoever asked may take it back at once.
      if (ctx.cancelled()) return absl::CancelledError("the caller has gone");
      absl::Status status;
      int used = 0;
      for (MediaItem& item : *reply->mutable_media()) {
        if (item.id() != 0) {
          status.Update(Link(s, request, &item));
          continue;
        }
        item.set_id(ids.ids(used++));
        status.Update(
            s.Execute("INSERT INTO media(id, type, bytes, owner, linked) VALUES (?1, ?2, ?3, ?4, 1)",
                      {item.id(), item.type(), item.bytes(), request.owner()}));
      }
      return status;
    });
  }

  // Has an upload belong to a draft of its owner, and completes what is known of it.
  static absl::Status Link(SqlSession& s, const MediaItems& of, MediaItem* item) {
    absl::Status status =
        s.Execute("UPDATE media SET linked = ?4, draft = ?3 WHERE id = ?1 AND owner = ?2 AND linked = 0",
                  {item->id(), of.owner(), of.draft(), of.keeps() ? 4 : 1});
    if (!status.ok()) return status;
    if (s.changes() == 0)
      return absl::InvalidArgumentError("no media that its author uploaded whole for a post");
    return s.Query("SELECT type, bytes FROM media WHERE id = ?1", {item->id()}, [&](const SqlRow& row) {
      item->set_type(std::string(row.Text(0)));
      item->set_bytes(row.Unsigned(1));
    });
  }

  Coroutine Keep(Context& ctx, const MediaItems& request, Nothing*) override {
    co_return co_await Move(ctx, request, 1, /*all=*/true);
  }

  Coroutine Release(Context& ctx, const MediaItems& request, Nothing*) override {
    co_return co_await Move(ctx, request, 0, /*all=*/false);
  }

  // Sets `linked` of the uploads that the draft has. INVALID_ARGUMENT: it has not `all` of them.
  Coroutine Move(Context& ctx, const MediaItems& request, int linked, bool all) {
    if (absl::Status status = apps::CheckCount(request.media_size(), kMostMedia, "media"); !status.ok())
      co_return status;
    if (request.media().empty()) co_return absl::OkStatus();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const MediaItem& item : request.media()) {
        status.Update(
            s.Execute("UPDATE media SET linked = ?3 WHERE id = ?1 AND draft = ?2 AND linked IN (1, 4)",
                      {item.id(), request.draft(), linked}));
        if (all && s.changes() == 0)
          status.Update(absl::InvalidArgumentError("an upload of the post has expired"));
      }
      return status;
    });
  }

  Coroutine Register(Context& ctx, const OwnedMedia& request, Registered* reply) override {
    IdCount one;
    one.set_count(1);
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, UniqueId::kNext, one));
    if (!ids.ok()) co_return ids.status();
    MediaItem item = request.item();
    item.set_id(ids->ids(0));
    const uint64_t oldest = apps::IdBefore(item.id(), patience);
    apps::Once once(ctx, request.owner());
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      reply->Clear();
      absl::Status status = once.Look(s, reply->mutable_item());
      // A file that was not kept, or has expired, is uploaded again.
      if (status.ok() && once.repeated() && IsThere(s, reply->item().id())) return status;
      if (status.ok()) status = Expire(s, oldest, reply);
      if (status.ok()) status = CheckRoom(s, request, oldest);
      if (!status.ok()) return status;
      *reply->mutable_item() = item;
      status = s.Execute("INSERT INTO media(id, type, bytes, owner, linked) VALUES (?1, ?2, ?3, ?4, ?5)",
                         {item.id(), item.type(), item.bytes(), request.owner(), request.partial() ? 3 : 0});
      return status.ok() ? once.Keep(s, item, apps::Once::Seen::kDone) : status;
    });
  }

  static bool IsThere(SqlSession& s, uint64_t id) {
    bool there = false;
    absl::Status status = s.Query("SELECT 1 FROM media WHERE id = ?1 AND linked <> 2", {id},
                                  [&](const SqlRow&) { there = true; });
    return status.ok() && there;
  }

  static absl::Status CheckRoom(SqlSession& s, const OwnedMedia& upload, uint64_t oldest) {
    int64_t waiting = 0;
    uint64_t bytes = upload.item().bytes();
    absl::Status status =
        s.Query("SELECT bytes FROM media WHERE owner = ?1 AND linked <> 1 AND id >= ?2 LIMIT ?3",
                {upload.owner(), oldest, kMostUploads}, [&](const SqlRow& row) {
                  ++waiting;
                  bytes += row.Unsigned(0);
                });
    if (!status.ok()) return status;
    if (waiting >= kMostUploads) return absl::ResourceExhaustedError("64 uploads wait for a post");
    if (bytes > kMostUploadBytes) return absl::ResourceExhaustedError("128 MiB of uploads wait for a post");
    return absl::OkStatus();
  }

  Coroutine Complete(Context& ctx, const OwnedMedia& request, Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      // That it is whole already is as good.
      absl::Status status =
          s.Execute("UPDATE media SET linked = 0 WHERE id = ?1 AND owner = ?2 AND linked IN (0, 3)",
                    {request.item().id(), request.owner()});
      if (status.ok() && s.changes() == 0) status = absl::NotFoundError("there is no such upload");
      return status;
    });
  }

  // Takes some uploads of before `oldest` away from posts.
  static absl::Status Expire(SqlSession& s, uint64_t oldest, Registered* reply) {
    absl::Status status =
        s.Query("SELECT id FROM media WHERE linked <> 1 AND id < ?1 ORDER BY id LIMIT ?2",
                {oldest, kMostExpired}, [&](const SqlRow& row) { reply->add_expired(row.Unsigned(0)); });
    if (!status.ok() || reply->expired().empty()) return status;
    return s.QueryEach("UPDATE media SET linked = 2 WHERE id = ?1", 1, apps::Each(reply->expired()),
                       [](size_t, const SqlRow&) {});
  }

  Coroutine Find(Context& ctx, const MediaId& request, OwnedMedia* reply) override {
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT type, bytes, owner, linked FROM media WHERE id = ?1 AND linked <> 2",
                     {request.id()}, [&](const SqlRow& row) {
                       reply->mutable_item()->set_id(request.id());
                       reply->mutable_item()->set_type(std::string(row.Text(0)));
                       reply->mutable_item()->set_bytes(row.Unsigned(1));
                       reply->set_owner(row.Unsigned(2));
                       reply->set_linked(row.Integer(3) == 1);
                       reply->set_partial(row.Integer(3) == 3);
                     });
    });
    if (status.ok() && !reply->has_item()) status = absl::NotFoundError("there is no such media");
    co_return status;
  }

  Coroutine Read(Context& ctx, const Ids& request, MediaItems* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach("SELECT id, type, bytes FROM media WHERE id = ?1", 1, apps::Each(request.ids()),
                         [&](size_t, const SqlRow& row) {
                           MediaItem* const item = reply->add_media();
                           item->set_id(row.Unsigned(0));
                           item->set_type(std::string(row.Text(1)));
                           item->set_bytes(row.Unsigned(2));
                         });
    });
  }

  Coroutine Delete(Context& ctx, const Ids& request, Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    if (request.ids().empty()) co_return absl::OkStatus();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach("DELETE FROM media WHERE id = ?1", 1, apps::Each(request.ids()),
                         [](size_t, const SqlRow&) {});
    });
  }

  std::vector<DeclaredPath> Paths() const override {
    const std::vector<PathCall> ids = {unique_id};
    return {{"Create", ids},  {"Keep", {}}, {"Release", {}}, {"Register", ids},
            {"Complete", {}}, {"Find", {}}, {"Read", {}},    {"Delete", {}}};
  }

  const std::chrono::milliseconds patience;
  SqlDatabase& db;
  Env& env;
  const UniqueId::Stub unique_id = env.Stub<UniqueId>("unique-id");
};

HostedService HostedMedia() {
  auto options = std::make_shared<MediaOptions>();
  return {.name = "media",
          .flags =
              [options](Flags& flags) {
                apps::AddDataFlags(flags, &options->data);
                flags.Add("--upload", &options->upload_h, "media: hours that an upload waits for a post",
                          {0, 8760});
              },
          .make = [options](Env& env) -> MadeService {
            auto db = apps::OpenData(
                env, options->data, "media",
                {"CREATE TABLE media(id INTEGER PRIMARY KEY, type TEXT NOT NULL,"
                 " bytes INTEGER NOT NULL) STRICT",
                 "ALTER TABLE media ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;"
                 "ALTER TABLE media ADD COLUMN linked INTEGER NOT NULL DEFAULT 1;"
                 "CREATE INDEX uploads ON media(owner) WHERE linked = 0",
                 "CREATE INDEX unposted ON media(id) WHERE linked <> 1",
                 "DROP INDEX uploads;"
                 "CREATE INDEX waiting ON media(owner) WHERE linked <> 1",
                 "ALTER TABLE media ADD COLUMN draft INTEGER NOT NULL DEFAULT 0", apps::kOnceSchema});
            if (!db.ok()) return db.status();
            return std::make_unique<MediaService>(*options, **db, env);
          }};
}

}  // namespace curtail::social
