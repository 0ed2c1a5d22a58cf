// SPDX-License-Identifier: Apache-2.0
//
// Media: what is known of pictures and videos.
#include <algorithm>
#include <array>

#include "apps/social/data.h"
#include "apps/social/page.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"

namespace curtail::social {

constexpr int kMostMedia = 16;
constexpr uint64_t kMostMediaBytes = uint64_t{1} << 32;

struct MediaService final : Media::CoroutineService {
  MediaService(SqlDatabase& d, UniqueId::Stub u) : db(d), unique_id(u) {}

  static absl::Status Check(const MediaItems& items) {
    static constexpr std::array<std::string_view, 5> kTypes = {"image/png", "image/jpeg", "image/gif",
                                                               "image/webp", "video/mp4"};
    for (const MediaItem& item : items.media()) {
      if (std::ranges::find(kTypes, item.type()) == kTypes.end()) {
        return absl::InvalidArgumentError("a type of media other than png, jpeg, gif, webp and mp4");
      }
      if (item.bytes() > kMostMediaBytes) return absl::InvalidArgumentError("media over 4 GiB");
    }
    return CheckCount(items.media_size(), kMostMedia, "media");
  }

  Coroutine Create(Context& ctx, const MediaItems& request, MediaItems* reply) override {
    if (absl::Status status = Check(request); !status.ok()) co_return status;
    if (request.media().empty()) co_return absl::OkStatus();
    IdCount each;
    each.set_count(static_cast<uint32_t>(request.media_size()));
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, UniqueId::kNext, each));
    if (!ids.ok()) co_return ids.status();
    *reply = request;
    for (int i = 0; i < reply->media_size(); ++i) reply->mutable_media(i)->set_id(ids->ids(i));
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const MediaItem& item : reply->media()) {
        status.Update(s.Execute("INSERT INTO media(id, type, bytes) VALUES (?1, ?2, ?3)",
                                {item.id(), item.type(), item.bytes()}));
      }
      return status;
    });
  }

  Coroutine Read(Context& ctx, const Ids& request, MediaItems* reply) override {
    if (absl::Status status = CheckCount(request.ids_size(), kMostIds, "ids"); !status.ok()) co_return status;
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const uint64_t id : request.ids()) {
        status.Update(s.Query("SELECT type, bytes FROM media WHERE id = ?1", {id}, [&](const SqlRow& row) {
          MediaItem* const item = reply->add_media();
          item->set_id(id);
          item->set_type(std::string(row.Text(0)));
          item->set_bytes(row.Unsigned(1));
        }));
      }
      return status;
    });
  }

  Coroutine Delete(Context& ctx, const Ids& request, Nothing*) override {
    if (absl::Status status = CheckCount(request.ids_size(), kMostIds, "ids"); !status.ok()) co_return status;
    if (request.ids().empty()) co_return absl::OkStatus();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const uint64_t id : request.ids()) {
        status.Update(s.Execute("DELETE FROM media WHERE id = ?1", {id}));
      }
      return status;
    });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Create", {std::string(UniqueId::kServiceName)}}, {"Read", {}}, {"Delete", {}}};
  }

  SqlDatabase& db;
  const UniqueId::Stub unique_id;
};

HostedService HostedMedia() {
  auto data = std::make_shared<DataOptions>();
  return {.name = "media",
          .calls = {"unique-id"},
          .flags = [data](Flags& flags) { AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            auto db = OpenData(env, *data, "media",
                               {"CREATE TABLE media(id INTEGER PRIMARY KEY, type TEXT NOT NULL,"
                                " bytes INTEGER NOT NULL) STRICT"});
            if (!db.ok()) return db.status();
            return std::make_unique<MediaService>(**db, env.Stub<UniqueId>("unique-id"));
          }};
}

}  // namespace curtail::social
