// SPDX-License-Identifier: Apache-2.0
//
// index_parts.h - an index of texts in parts, each served by an instance: which part has a text, and how jobs reach the parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "apps/kit/jobs/job_store.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/method.h"

namespace curtail::apps {

// The part of a text follows from its id, as indexes that are there have it: Fibonacci hashing.
inline size_t IndexPartOf(uint64_t id, size_t parts) { return (id * 0x9E3779B97F4A7C15u >> 32) % parts; }

// For the attempt of a JobQueue, whose jobs are messages of the field `jobs` of Jobs. Each part gets its jobs at once, and
// commits once. `id_of(message)` is the id of the text.
template <class Jobs, class Reply, class IdOf>
void DeliverToParts(const std::vector<Channel*>& parts, const Method<Jobs, Reply>& apply, std::span<Job> jobs,
                    IdOf id_of) {
  std::vector<Jobs> requests(parts.size());
  std::vector<size_t> part_of;
  for (const Job& job : jobs) {
    auto what = typename std::remove_cvref_t<decltype(requests[0].jobs(0))>();
    what.ParseFromString(job.bytes);
    part_of.push_back(IndexPartOf(id_of(what), parts.size()));
    *requests[part_of.back()].add_jobs() = std::move(what);
  }
  std::vector<Channel*> channels;
  std::vector<Jobs> wanted;
  std::vector<size_t> place(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (requests[i].jobs().empty()) continue;
    place[i] = channels.size();
    channels.push_back(parts[i]);
    wanted.push_back(std::move(requests[i]));
  }
  Context ctx(kJobTime);
  const auto applied = ctx.FanOut(channels, apply, wanted);
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i].done = applied[place[part_of[i]]].ok();
}

// The hits of all parts, best first, of equal scores the greater id; without the first `skipped`, and at most `limit`. Sets `*more`
// if there may be more.
template <class Hit, class IdOf>
std::vector<Hit> BestHits(std::vector<Hit> hits, size_t skipped, size_t limit, IdOf id_of, bool* more) {
  std::ranges::sort(hits, [&](const Hit& a, const Hit& b) {
    return a.score() != b.score() ? a.score() > b.score() : id_of(a) > id_of(b);
  });
  hits.erase(hits.begin(), hits.begin() + static_cast<ptrdiff_t>(std::min(skipped, hits.size())));
  *more = hits.size() >= limit;
  if (*more) hits.resize(limit);
  return hits;
}

}  // namespace curtail::apps
