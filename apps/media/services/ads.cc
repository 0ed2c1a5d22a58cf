// SPDX-License-Identifier: Apache-2.0
//
// Ads: movies that users want others to see, the likeliest to be clicked first. It counts what it shows and what is clicked, from which
// `media train` learns. Without a model the newest come first.
#include <algorithm>
#include <atomic>

#include "apps/kit/clicks/shows.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/data/model_file.h"
#include "apps/media/data.h"
#include "curtail/base/strings.h"
#include "movie_ads.curtail.h"

namespace curtail::media {

constexpr int kMostAdsOfUser = 100;
constexpr int kMostAds = 1000;  // the newest, among which it chooses
constexpr uint32_t kMostShown = 10;

// The topic is the first genre of the movie.
const char kAdsSchema[] =
    "CREATE TABLE ads(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, topic TEXT NOT NULL, movie BLOB NOT "
    "NULL)"
    " STRICT;"
    "CREATE INDEX ads_of ON ads(owner);";

struct AdsService final : Ads::CoroutineService {
  AdsService(SqlDatabase& d, std::string path, Env& e) : db(d), file(std::move(path)), env(e) {}

  Coroutine Place(Context& ctx, const AdOrder& request, Ad* reply) override {
    apps::Ids movie;
    movie.add_ids(request.movie());
    auto found = co_await WhenAllOk(ctx, Ask(info, MovieInfo::kRead, std::move(movie)),
                                    Ask(unique_id, apps::UniqueId::kNext, apps::OneId()));
    if (!found.ok()) co_return found.status();
    auto& [movies, ids] = *found;
    if (movies.movies().empty()) co_return absl::NotFoundError("there is no such movie");
    reply->set_id(ids.ids(0));
    reply->mutable_movie()->Swap(movies.mutable_movies(0));
    co_return co_await apps::WriteOnce(db, ctx, request.user(), reply, [&](SqlSession& s) {
      int64_t have = 0;
      absl::Status status = s.Query("SELECT count(*) FROM ads WHERE owner = ?1", {request.user()},
                                    [&](const SqlRow& row) { have = row.Integer(0); });
      if (!status.ok()) return status;
      if (have >= kMostAdsOfUser) return absl::ResourceExhaustedError("a user has a hundred ads at most");
      const std::string bytes = reply->movie().SerializeAsString();
      const std::string topic = reply->movie().genres().empty() ? "" : reply->movie().genres(0);
      return s.Execute("INSERT INTO ads(id, owner, topic, movie) VALUES (?1, ?2, ?3, ?4)",
                       {reply->id(), request.user(), topic, SqlValue::Bytes(bytes)});
    });
  }

  Coroutine Stop(Context& ctx, const AdOf& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status =
          s.Execute("DELETE FROM ads WHERE id = ?1 AND owner = ?2", {request.ad(), request.user()});
      if (!status.ok()) return status;
      if (s.changes() == 0) return absl::NotFoundError("the caller has no such ad");
      return s.Execute("DELETE FROM shows WHERE ad = ?1", {request.ad()});
    });
  }

  Coroutine Show(Context& ctx, const AdQuery& request, AdList* reply) override {
    std::vector<Candidate> all;
    absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id, topic, movie FROM ads WHERE owner <> ?1 ORDER BY id DESC LIMIT ?2",
                     {request.user(), kMostAds}, [&](const SqlRow& row) {
                       all.push_back({row.Unsigned(0), std::string(row.Text(1)), std::string(row.Text(2))});
                     });
    });
    if (!read.ok() || all.empty()) co_return read;
    if (const auto model = file.Get(); model.ok()) {
      for (Candidate& one : all)
        one.probability =
            apps::ClickProbability(**model, apps::ClickFeaturesOf(request.user(), one.id, one.topic));
    }
    apps::ChooseAds(std::clamp<uint32_t>(request.limit(), 1, kMostShown),
                    draws.fetch_add(1, std::memory_order_relaxed), &all);
    std::vector<uint64_t> ids;
    for (const Candidate& one : all) {
      Ad* const ad = reply->add_ads();
      ad->set_id(one.id);
      ad->mutable_movie()->ParseFromString(one.movie);
      ids.push_back(one.id);
    }
    co_return co_await db.Writing(ctx.deadline(),
                                  [&](SqlSession& s) { return apps::CountShown(s, request.user(), ids); });
  }

  Coroutine Click(Context& ctx, const AdOf& request, Ad* reply) override {
    co_return co_await apps::WriteOnce(db, ctx, request.user(), reply, [&](SqlSession& s) {
      absl::Status status = apps::CountClick(s, request.user(), request.ad());
      if (!status.ok()) return status;
      return s.Query("SELECT movie FROM ads WHERE id = ?1", {request.ad()}, [&](const SqlRow& row) {
        const std::string_view bytes = row.Text(0);
        reply->set_id(request.ad());
        reply->mutable_movie()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
      });
    });
  }

  struct Candidate {
    uint64_t id = 0;
    std::string topic, movie;
    double probability = 0.5;
  };

  std::vector<DeclaredPath> Paths() const override {
    return {{"Place", {info, unique_id}}, {"Stop", {}}, {"Show", {}}, {"Click", {}}};
  }

  SqlDatabase& db;
  apps::ModelFile<apps::ClickModel> file;
  Env& env;
  const MovieInfo::Stub info = env.Stub<MovieInfo>("movie-info");
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  // Atomic; relaxed, a seed for each draw.
  std::atomic<uint64_t> draws{1};
};

HostedService HostedAds() {
  return apps::HostedOnData(kApplication, "ads", [](Env& env, const apps::DataOptions& data) -> MadeService {
    const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data.folder);
    if (!folder.ok()) return folder.status();
    auto db = apps::OpenData(env, data, "ads", {Join(kAdsSchema, apps::kShowsSchema), apps::kOnceSchema});
    if (!db.ok()) return db.status();
    return std::make_unique<AdsService>(**db, Join(*folder, "/", apps::kClickModelFile), env);
  });
}

}  // namespace curtail::media
