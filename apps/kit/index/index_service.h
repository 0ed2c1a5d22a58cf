// SPDX-License-Identifier: Apache-2.0
//
// index_service.h - an index of texts as services: `search-index` has a part each, and the application's `search` has a SearchedIndex.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/kit/data/data.h"
#include "apps/kit/jobs/job_queue.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "index.curtail.h"

namespace curtail::apps {

// `search-index`: a part of the index on disk (SearchIndex of index.proto).
HostedService HostedSearchIndex(const std::string& application);

// A SearchedIndex asks all parts of the index at once. Changes reach the parts behind the caller's back, many with one commit, through a
// queue. Changes of a text may overtake each other. Thread-safe.
class SearchedIndex {
 public:
  // Opens the queue of the service `search`. Errors: as OpenJobs().
  static absl::StatusOr<std::unique_ptr<SearchedIndex>> Open(Env& env, const DataOptions& options);

  // A change that it has acknowledged reaches the index, at least once.
  Coroutine Put(Context& ctx, const IndexJob& job);
  // As JobQueue::Look().
  template <class State>
  Coroutine Look(Context& ctx, State* state) {
    return queue_.Look(ctx, state);
  }
  // Adds to `*ids` what `query` finds in all parts, best or newest first, without the first `skipped`, and at most `limit`. Sets `*next`
  // to where the next page begins: what it skips, or by time the `before` of its query; 0: there is none. Errors: INVALID_ARGUMENT: a
  // search shows less than `skipped`; others as SearchIndex.Find().
  Coroutine Find(Context& ctx, IndexQuery query, uint64_t skipped, uint32_t limit,
                 google::protobuf::RepeatedField<uint64_t>* ids, uint64_t* next);

 private:
  SearchedIndex(Env& env, std::unique_ptr<JobStore> jobs);
  void Deliver(std::span<Job> jobs);

  // Immutable after construction.
  const std::vector<Channel*> parts_;
  JobQueue queue_;
};

// `search` of an application, which makes `Made` of its index and of the Env.
template <class Made>
HostedService HostedOnIndex(const std::string& application) {
  return HostedOnData(application, "search", [](Env& env, const DataOptions& data) -> MadeService {
    auto index = SearchedIndex::Open(env, data);
    if (!index.ok()) return index.status();
    return std::make_unique<Made>(*std::move(index), env);
  });
}

}  // namespace curtail::apps
