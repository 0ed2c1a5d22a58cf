// SPDX-License-Identifier: Apache-2.0
//
// index_service.h - an index of texts as services: `search-index` has a part each, and the application's `search` has a SearchedIndex.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
  // Sets `*ids` to what `query` finds in all parts, best or newest first, without the first `skipped`, and at most `limit`. Sets `*more` if
  // there may be more that a search shows. Errors: INVALID_ARGUMENT: it shows less than `skipped`; others as SearchIndex.Find().
  Coroutine Find(Context& ctx, IndexQuery query, uint64_t skipped, uint32_t limit, std::vector<uint64_t>* ids,
                 bool* more);

 private:
  SearchedIndex(Env& env, std::unique_ptr<JobStore> jobs);
  void Deliver(std::span<Job> jobs);

  // Immutable after construction.
  const std::vector<Channel*> parts_;
  JobQueue queue_;
};

}  // namespace curtail::apps
