// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/index/index_service.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "apps/kit/data/folder.h"
#include "apps/kit/index/text_index.h"
#include "apps/kit/page.h"
#include "curtail/base/strings.h"
#include "curtail/exec/aside.h"
#include "curtail/rpc/when_all.h"

namespace curtail::apps {
namespace {

constexpr size_t kMostQueryBytes = 256;
constexpr uint32_t kMostHits = 1100;  // that a part finds at once, and a search shows page by page
constexpr uint64_t kMostSkipped = kMostHits - 100;

// The part of a text follows from its id, as indexes that are there have it: Fibonacci hashing.
size_t IndexPartOf(uint64_t id, size_t parts) { return (id * 0x9E3779B97F4A7C15u >> 32) % parts; }

struct SearchIndexService final : SearchIndex::CoroutineService {
  explicit SearchIndexService(std::unique_ptr<TextIndex> i) : index(std::move(i)) {}

  Coroutine Apply(Context&, const IndexJobs& request, Applied*) override {
    if (absl::Status status = CheckCount(request.jobs_size(), kMostIds, "jobs"); !status.ok())
      co_return status;
    std::vector<TextIndex::Change> changes;
    for (const IndexJob& job : request.jobs()) {
      changes.push_back({.id = job.id(),
                         .text = job.text(),
                         .remove = job.remove(),
                         .tags = {job.tags().begin(), job.tags().end()},
                         .number = job.number()});
    }
    co_return co_await Offloading([&] { return index->Apply(changes); });
  }

  Coroutine Find(Context&, const IndexQuery& request, IndexHits* reply) override {
    if (request.text().size() > kMostQueryBytes)
      co_return absl::InvalidArgumentError(Join("a query has at most ", kMostQueryBytes, " bytes"));
    if (request.limit() > kMostHits) co_return absl::InvalidArgumentError(Join("over ", kMostHits, " hits"));
    TextIndex::Query query{.text = request.text(),
                           .newest = request.newest(),
                           .before = request.before(),
                           .limit = request.limit(),
                           .tag = request.tag(),
                           .least = request.least()};
    if (request.greatest() != 0) query.greatest = request.greatest();
    std::vector<TextIndex::Hit> hits;
    absl::Status found = co_await Offloading([&] { return index->Find(query, &hits); });
    for (const TextIndex::Hit& hit : hits) {
      IndexHit* const one = reply->add_hits();
      one->set_id(hit.id);
      one->set_score(hit.score);
    }
    co_return found;
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Apply", {}}, {"Find", {}}}; }

  const std::unique_ptr<TextIndex> index;
};

}  // namespace

HostedService HostedSearchIndex(const std::string& application) {
  return HostedOnData(application, "search-index", [](Env& env, const DataOptions& data) -> MadeService {
    const absl::StatusOr<std::string> folder = DataFolder(data.application, data.folder);
    if (!folder.ok()) return folder.status();
    // Another number of shards would look for texts where they are not, so it has folders of its own.
    auto index = TextIndex::Open(
        Join(*folder, "/search-index-", env.shard().index, "-of-", env.shard().count), !data.no_sync);
    if (!index.ok()) return index.status();
    return std::make_unique<SearchIndexService>(*std::move(index));
  });
}

SearchedIndex::SearchedIndex(Env& env, std::unique_ptr<JobStore> jobs)
    : parts_(env.Channels("search-index")),
      queue_(std::move(jobs), /*group=*/64, [this](std::span<Job> all) { Deliver(all); }) {
  queue_.WorkWhileServing(env);
}

absl::StatusOr<std::unique_ptr<SearchedIndex>> SearchedIndex::Open(Env& env, const DataOptions& options) {
  auto jobs = OpenJobs(env, options, "search");
  if (!jobs.ok()) return jobs.status();
  return std::unique_ptr<SearchedIndex>(new SearchedIndex(env, *std::move(jobs)));
}

Coroutine SearchedIndex::Put(Context& ctx, const IndexJob& job) {
  return queue_.Put(ctx, job.SerializeAsString());
}

// Each part gets its jobs at once, and commits once.
void SearchedIndex::Deliver(std::span<Job> jobs) {
  std::vector<IndexJobs> requests(parts_.size());
  std::vector<size_t> part_of;
  for (const Job& job : jobs) {
    IndexJob change;
    change.ParseFromString(job.bytes);
    part_of.push_back(IndexPartOf(change.id(), parts_.size()));
    *requests[part_of.back()].add_jobs() = std::move(change);
  }
  std::vector<Channel*> channels;
  std::vector<IndexJobs> wanted;
  std::vector<size_t> place(parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (requests[i].jobs().empty()) continue;
    place[i] = channels.size();
    channels.push_back(parts_[i]);
    wanted.push_back(std::move(requests[i]));
  }
  Context ctx(kJobTime);
  const auto applied = ctx.FanOut(channels, SearchIndex::kApply, wanted);
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i].done = applied[place[part_of[i]]].ok();
}

Coroutine SearchedIndex::Find(Context& ctx, IndexQuery query, uint64_t skipped, uint32_t limit,
                              google::protobuf::RepeatedField<uint64_t>* ids, uint64_t* next) {
  if (skipped > kMostSkipped)
    co_return absl::InvalidArgumentError(Join("a search by score shows at most ", kMostHits, " results"));
  query.set_limit(static_cast<uint32_t>(skipped) + limit);
  auto found = co_await broadcast(ctx, parts_, SearchIndex::kFind, query);
  std::vector<IndexHit> hits;
  for (auto& part : found) {
    if (!part.ok()) co_return part.status();
    hits.insert(hits.end(), part->hits().begin(), part->hits().end());
  }
  // Of equal scores, as all are of the newest, the greater id is first.
  std::ranges::sort(hits, std::greater(),
                    [](const IndexHit& hit) { return std::tuple(hit.score(), hit.id()); });
  const uint64_t end = skipped + limit;
  for (size_t i = skipped; i < std::min<size_t>(hits.size(), end); ++i) ids->Add(hits[i].id());
  *next = 0;
  if (hits.size() >= end && (query.newest() || end <= kMostSkipped))
    *next = query.newest() ? hits[end - 1].id() : end;
  co_return absl::OkStatus();
}

}  // namespace curtail::apps
