// SPDX-License-Identifier: Apache-2.0
//
// Ads: what users want others to see, the likeliest to be clicked first. It counts what it shows and what is clicked,
// from which `social train` learns. Without a model the newest come first.
#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/clicks/shows.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/data/model_file.h"
#include "apps/kit/once.h"
#include "apps/social/common/page.h"
#include "apps/social/common/urls.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "models.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

constexpr int kMostAdsOfUser = 100;
// The newest of all ads, among which it chooses.
constexpr int kMostAds = 1000;
constexpr uint32_t kMostShown = 10;

const char kAdsSchema[] =
    "CREATE TABLE ads(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, title TEXT NOT NULL, url TEXT NOT NULL,"
    " topic TEXT NOT NULL) STRICT;"
    "CREATE INDEX ads_of ON ads(owner);";

struct AdsService final : Ads::CoroutineService {
  AdsService(SqlDatabase& d, std::string path, Env& e) : db(d), file(std::move(path)), env(e) {}

  static absl::Status CheckAd(const Ad& ad) {
    const auto fits = [](const std::string& text, size_t most) {
      return !text.empty() && text.size() <= most;
    };
    if (!fits(ad.title(), 256)) return absl::InvalidArgumentError("the title of an ad has 1 to 256 bytes");
    if (!fits(ad.topic(), 32)) return absl::InvalidArgumentError("the topic of an ad has 1 to 32 bytes");
    return CheckUrl(ad.url());
  }

  Coroutine Create(Context& ctx, const AdOfUser& request, Ad* reply) override {
    if (absl::Status status = CheckAd(request.ad()); !status.ok()) co_return status;
    IdCount one;
    one.set_count(1);
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, UniqueId::kNext, one));
    if (!ids.ok()) co_return ids.status();
    *reply = request.ad();
    reply->set_id(ids->ids(0));
    co_return co_await apps::WriteOnce(db, ctx, request.user(), reply, [&](SqlSession& s) {
      int64_t have = 0;
      absl::Status status = apps::CheckThere(s, request.user());
      status.Update(s.Query("SELECT count(*) FROM ads WHERE owner = ?1", {request.user()},
                            [&](const SqlRow& row) { have = row.Integer(0); }));
      if (!status.ok()) return status;
      if (have >= kMostAdsOfUser) return absl::ResourceExhaustedError("a user has a hundred ads at most");
      return s.Execute("INSERT INTO ads(id, owner, title, url, topic) VALUES (?1, ?2, ?3, ?4, ?5)",
                       {reply->id(), request.user(), reply->title(), reply->url(), reply->topic()});
    });
  }

  Coroutine Delete(Context& ctx, const AdOfUser& request, Nothing* reply) override {
    const uint64_t ad = request.ad().id();
    co_return co_await apps::WriteOnce(db, ctx, request.user(), reply, [&](SqlSession& s) {
      uint64_t owner = 0;
      absl::Status status = s.Query("SELECT owner FROM ads WHERE id = ?1", {ad},
                                    [&](const SqlRow& row) { owner = row.Unsigned(0); });
      if (!status.ok()) return status;
      if (owner == 0) return absl::NotFoundError("there is no such ad");
      if (owner != request.user()) return absl::PermissionDeniedError("the ad is another's");
      status.Update(s.Execute("DELETE FROM shows WHERE ad = ?1", {ad}));
      status.Update(s.Execute("DELETE FROM ads WHERE id = ?1", {ad}));
      return status;
    });
  }

  Coroutine ListOwn(Context& ctx, const UserId& request, AdList* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id, title, url, topic FROM ads WHERE owner = ?1 ORDER BY id DESC",
                     {request.user()}, [&](const SqlRow& row) { Put(row, reply->add_ads()); });
    });
  }

  Coroutine Show(Context& ctx, const RecommendQuery& request, AdList* reply) override {
    std::vector<Candidate> all;
    std::unordered_set<uint64_t> owners;
    absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id, title, url, topic, owner FROM ads ORDER BY id DESC LIMIT ?1", {kMostAds},
                     [&](const SqlRow& row) {
                       Put(row, &all.emplace_back().ad);
                       all.back().id = row.Unsigned(0);
                       all.back().owner = row.Unsigned(4);
                       owners.insert(all.back().owner);
                     });
    });
    if (!read.ok() || all.empty()) co_return read;
    LookRequest look;
    look.set_viewer(request.user());
    look.mutable_authors()->Assign(owners.begin(), owners.end());
    auto [looked] = co_await WhenAll(ctx, Ask(block_user, BlockUser::kHidden, look));
    if (!looked.ok()) co_return looked.status();
    const std::unordered_set<uint64_t> hidden(looked->ids().begin(), looked->ids().end());
    std::erase_if(all, [&](const Candidate& one) { return hidden.contains(one.owner); });
    Choose(request.user(), std::clamp<uint32_t>(request.limit(), 1, kMostShown), &all);
    for (Candidate& one : all) reply->add_ads()->Swap(&one.ad);
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      if (absl::Status gone = apps::CheckThere(s, request.user()); !gone.ok()) return gone;
      std::vector<uint64_t> ids;
      for (const Ad& ad : reply->ads()) ids.push_back(ad.id());
      return apps::CountShown(s, request.user(), ids);
    });
  }

  Coroutine Click(Context& ctx, const AdOfUser& request, Ad* reply) override {
    co_return co_await apps::WriteOnce(db, ctx, request.user(), reply, [&](SqlSession& s) {
      absl::Status status = apps::CountClick(s, request.user(), request.ad().id());
      if (absl::IsFailedPrecondition(status)) {
        if (absl::Status gone = apps::CheckThere(s, request.user()); !gone.ok()) return gone;
      }
      if (!status.ok()) return status;
      return s.Query("SELECT id, title, url, topic FROM ads WHERE id = ?1", {request.ad().id()},
                     [&](const SqlRow& row) { Put(row, reply); });
    });
  }

  Coroutine ForgetUser(Context& ctx, const UserId& request, Nothing*) override {
    return apps::Forgetting(
        db, ctx.deadline(), request.user(), [user = request.user()](SqlSession& s, bool* more) {
          absl::Status status = apps::DeleteSome(
              s, user,
              {"DELETE FROM shows WHERE user = ?1 AND ad IN (SELECT ad FROM shows WHERE user = ?1 LIMIT ?2)",
               "DELETE FROM shows WHERE (user, ad) IN"
               " (SELECT shows.user, ad FROM ads JOIN shows ON ad = ads.id WHERE owner = ?1 LIMIT ?2)"},
              more);
          return *more || !status.ok() ? status : s.Execute("DELETE FROM ads WHERE owner = ?1", {user});
        });
  }

  struct Candidate {
    Ad ad;
    uint64_t id = 0, owner = 0;
    double probability = 0.5;
  };

  void Choose(uint64_t viewer, size_t limit, std::vector<Candidate>* all) {
    if (const auto model = file.Get(); model.ok()) {
      for (Candidate& one : *all)
        one.probability =
            apps::ClickProbability(**model, apps::ClickFeaturesOf(viewer, one.id, one.ad.topic()));
    }
    apps::ChooseAds(limit, draws.fetch_add(1, std::memory_order_relaxed), all);
  }

  static void Put(const SqlRow& row, Ad* ad) {
    ad->set_id(row.Unsigned(0));
    ad->set_title(std::string(row.Text(1)));
    ad->set_url(std::string(row.Text(2)));
    ad->set_topic(std::string(row.Text(3)));
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Create", {unique_id}}, {"Delete", {}},         {"ForgetUser", {}},
            {"ListOwn", {}},         {"Show", {block_user}}, {"Click", {}}};
  }

  SqlDatabase& db;
  apps::ModelFile<apps::ClickModel> file;
  Env& env;
  const UniqueId::Stub unique_id = env.Stub<UniqueId>("unique-id");
  const BlockUser::Stub block_user = env.Stub<BlockUser>("block-user");
  // Atomic; relaxed, a seed for each draw.
  std::atomic<uint64_t> draws{1};
};

HostedService HostedAds() {
  return apps::HostedOnData(kApplication, "ads", [](Env& env, const apps::DataOptions& data) -> MadeService {
    const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data.folder);
    if (!folder.ok()) return folder.status();
    auto db =
        apps::OpenData(env, data, "ads",
                       {std::string(kAdsSchema) + apps::kShowsSchema, apps::kGoneSchema, apps::kOnceSchema});
    if (!db.ok()) return db.status();
    return std::make_unique<AdsService>(**db, Join(*folder, "/", apps::kClickModelFile), env);
  });
}

}  // namespace curtail::social
