// SPDX-License-Identifier: Apache-2.0
//
// Search index: the words of a part of the posts.
#include "apps/social/data.h"
#include "apps/social/folder.h"
#include "apps/social/page.h"
#include "apps/social/post_index.h"
#include "curtail/exec/aside.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "search.curtail.h"

namespace curtail::social {

struct SearchIndexService final : SearchIndex::CoroutineService {
  explicit SearchIndexService(std::unique_ptr<PostIndex> i) : index(std::move(i)) {}

  Coroutine Apply(Context&, const IndexJobs& request, Nothing*) override {
    if (absl::Status status = CheckCount(request.jobs_size(), kMostIds, "jobs"); !status.ok())
      co_return status;
    std::vector<PostIndex::Change> changes;
    for (const IndexJob& job : request.jobs()) changes.push_back({job.post(), job.text(), job.remove()});
    co_return co_await Offloading([&] { return index->Apply(changes); });
  }

  Coroutine Find(Context&, const IndexQuery& request, Hits* reply) override {
    if (request.text().size() > kMostQueryBytes)
      co_return absl::InvalidArgumentError("a query over 256 bytes");
    if (request.limit() > kMostHits) co_return absl::InvalidArgumentError(Join("over ", kMostHits, " hits"));
    std::vector<PostIndex::Hit> hits;
    absl::Status found = co_await Offloading([&] {
      return index->Find({.text = request.text(),
                          .newest = request.newest(),
                          .before = request.before(),
                          .limit = request.limit()},
                         &hits);
    });
    for (const PostIndex::Hit& hit : hits) {
      Hit* const one = reply->add_hits();
      one->set_post(hit.post);
      one->set_score(hit.score);
    }
    co_return found;
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Apply", {}}, {"Find", {}}}; }

  const std::unique_ptr<PostIndex> index;
};

HostedService HostedSearchIndex() {
  auto data = std::make_shared<DataOptions>();
  return {.name = "search-index",
          .flags = [data](Flags& flags) { AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            const absl::StatusOr<std::string> folder = DataFolder(data->folder);
            if (!folder.ok()) return folder.status();
            // Another number of shards would look for posts where they are not, so it has folders of its own.
            auto index =
                PostIndex::Open(Join(*folder, "/search-index-", env.shard().index, "-of-", env.shard().count),
                                !data->no_sync);
            if (!index.ok()) return index.status();
            return std::make_unique<SearchIndexService>(*std::move(index));
          }};
}

}  // namespace curtail::social
