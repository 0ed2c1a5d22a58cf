// SPDX-License-Identifier: Apache-2.0
//
// Search index: the words of a part of the posts.
#include "apps/kit/data/folder.h"
#include "apps/kit/index/text_index.h"
#include "apps/social/data.h"
#include "apps/social/page.h"
#include "curtail/exec/aside.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "search.curtail.h"

namespace curtail::social {

struct SearchIndexService final : SearchIndex::CoroutineService {
  explicit SearchIndexService(std::unique_ptr<apps::TextIndex> i) : index(std::move(i)) {}

  Coroutine Apply(Context&, const IndexJobs& request, Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.jobs_size(), apps::kMostIds, "jobs"); !status.ok())
      co_return status;
    std::vector<apps::TextIndex::Change> changes;
    for (const IndexJob& job : request.jobs()) changes.push_back({job.post(), job.text(), job.remove()});
    co_return co_await Offloading([&] { return index->Apply(changes); });
  }

  Coroutine Find(Context&, const IndexQuery& request, Hits* reply) override {
    if (request.text().size() > kMostQueryBytes)
      co_return absl::InvalidArgumentError("a query over 256 bytes");
    if (request.limit() > kMostHits) co_return absl::InvalidArgumentError(Join("over ", kMostHits, " hits"));
    std::vector<apps::TextIndex::Hit> hits;
    absl::Status found = co_await Offloading([&] {
      return index->Find({.text = request.text(),
                          .newest = request.newest(),
                          .before = request.before(),
                          .limit = request.limit()},
                         &hits);
    });
    for (const apps::TextIndex::Hit& hit : hits) {
      Hit* const one = reply->add_hits();
      one->set_post(hit.id);
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
            // Another number of shards would look for posts where they are not, so it has folders of its own.
            auto index = apps::TextIndex::Open(
                Join(*folder, "/search-index-", env.shard().index, "-of-", env.shard().count),
                !data->no_sync);
            if (!index.ok()) return index.status();
            return std::make_unique<SearchIndexService>(*std::move(index));
          }};
}

}  // namespace curtail::social
