// SPDX-License-Identifier: Apache-2.0
//
// Write home timeline: brings each new post to the timelines of its author's followers and of those it mentions, behind
// the caller's back. A job is done at least once; home-timeline takes repetitions.
#include "apps/social/data.h"
#include "apps/social/job_queue.h"
#include "apps/social/page.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

struct WriteHomeTimelineService final : WriteHomeTimeline::CoroutineService {
  WriteHomeTimelineService(std::unique_ptr<JobStore> jobs, Env& env)
      : graph(env.Stub<SocialGraph>("social-graph")),
        home(env.Stub<HomeTimeline>("home-timeline")),
        queue(std::move(jobs), /*group=*/1, [this](std::span<Job> jobs) {
          FanOutJob job;
          job.ParseFromString(jobs[0].bytes);
          jobs[0].done = Deliver(job).ok();
        }) {
    queue.WorkWhileServing(env);
  }

  Coroutine Enqueue(Context& ctx, const FanOutJob& request, Nothing*) override {
    if (absl::Status few = CheckCount(request.mentioned_size(), kMostIds, "mentions"); !few.ok())
      co_return few;
    co_return co_await queue.Put(ctx, request.SerializeAsString());
  }

  Coroutine Look(Context& ctx, const Nothing&, QueueState* reply) override { return queue.Look(ctx, reply); }

  absl::Status Deliver(const FanOutJob& job) {
    Context ctx(kJobTime);
    HomeEntries entries;
    entries.set_post(job.post());
    entries.set_author(job.author());
    EdgePage page;
    page.set_user(job.author());
    page.set_limit(kMostIds);
    Ids followers;
    do {
      followers.Clear();
      if (absl::Status status = graph.Followers(ctx, page, &followers); !status.ok()) return status;
      *entries.mutable_users() = followers.ids();
      if (absl::Status status = Tell(ctx, job, entries); !status.ok()) return status;
      if (!followers.ids().empty()) page.set_after(*followers.ids().rbegin());
    } while (followers.ids_size() == kMostIds);
    entries.clear_users();
    for (const uint64_t mentioned : job.mentioned()) {
      if (mentioned != job.author()) entries.add_users(mentioned);
    }
    entries.set_mentioned(true);
    return Tell(ctx, job, entries);
  }

  absl::Status Tell(Context& ctx, const FanOutJob& job, const HomeEntries& entries) {
    Nothing nothing;
    if (entries.users().empty()) return absl::OkStatus();
    return job.remove() ? home.Remove(ctx, entries, &nothing) : home.Add(ctx, entries, &nothing);
  }

  const SocialGraph::Stub graph;
  const HomeTimeline::Stub home;
  JobQueue queue;
};

HostedService HostedWriteHomeTimeline() {
  auto data = std::make_shared<DataOptions>();
  return {.name = "write-home-timeline",
          .calls = {"social-graph", "home-timeline"},
          .flags = [data](Flags& flags) { AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            auto jobs = OpenJobs(env, *data, "write-home-timeline");
            if (!jobs.ok()) return jobs.status();
            return std::make_unique<WriteHomeTimelineService>(*std::move(jobs), env);
          }};
}

}  // namespace curtail::social
