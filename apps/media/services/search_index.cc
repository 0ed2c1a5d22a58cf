// SPDX-License-Identifier: Apache-2.0
//
// Search index: the words of a part of the movies, their genres and years.
#include "apps/kit/data/folder.h"
#include "apps/kit/index/text_index.h"
#include "apps/kit/page.h"
#include "apps/media/data.h"
#include "apps/media/search_bounds.h"
#include "curtail/exec/aside.h"

namespace curtail::media {

struct SearchIndexService final : SearchIndex::CoroutineService {
  explicit SearchIndexService(std::unique_ptr<apps::TextIndex> i) : index(std::move(i)) {}

  Coroutine Apply(Context&, const IndexJobs& request, apps::Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.jobs_size(), apps::kMostIds, "jobs"); !status.ok())
      co_return status;
    std::vector<apps::TextIndex::Change> changes;
    for (const IndexJob& job : request.jobs()) {
      changes.push_back({.id = job.movie(),
                         .text = job.text(),
                         .tags = {job.genres().begin(), job.genres().end()},
                         .number = job.year()});
    }
    co_return co_await Offloading([&] { return index->Apply(changes); });
  }

  Coroutine Find(Context&, const IndexQuery& request, Hits* reply) override {
    if (request.text().size() > kMostQueryBytes)
      co_return absl::InvalidArgumentError(Join("a query has at most ", kMostQueryBytes, " bytes"));
    if (request.limit() > kMostHits) co_return absl::InvalidArgumentError(Join("over ", kMostHits, " hits"));
    apps::TextIndex::Query query{.text = request.text(), .limit = request.limit(), .tag = request.genre()};
    query.least = request.first_year();
    if (request.last_year() != 0) query.greatest = request.last_year();
    std::vector<apps::TextIndex::Hit> hits;
    absl::Status found = co_await Offloading([&] { return index->Find(query, &hits); });
    for (const apps::TextIndex::Hit& hit : hits) {
      Hit* const one = reply->add_hits();
      one->set_movie(hit.id);
      one->set_score(hit.score);
    }
    co_return found;
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Apply", {}}, {"Find", {}}}; }

  const std::unique_ptr<apps::TextIndex> index;
};

HostedService HostedSearchIndex() {
  auto data = std::make_shared<Data>();
  return {.name = "search-index",
          .flags = [data](Flags& flags) { apps::AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data->folder);
            if (!folder.ok()) return folder.status();
            // Another number of shards would look for movies where they are not, so it has folders of its own.
            auto index = apps::TextIndex::Open(
                Join(*folder, "/search-index-", env.shard().index, "-of-", env.shard().count),
                !data->no_sync);
            if (!index.ok()) return index.status();
            return std::make_unique<SearchIndexService>(*std::move(index));
          }};
}

}  // namespace curtail::media
