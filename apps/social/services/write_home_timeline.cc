// SPDX-License-Identifier: Apache-2.0
//
// Write home timeline: brings each new post to the timelines of its author's followers and of those it mentions, behind
// the caller's back. A job is done at least once; home-timeline takes repetitions.
//
// Posts of authors with many followers take long, and have a queue and a thread of their own: the others do not wait for
// them. A job goes there once its author turns out to be one of those.
#include "apps/kit/jobs/job_queue.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

struct WriteHomeTimelineService final : WriteHomeTimeline::CoroutineService {
  WriteHomeTimelineService(std::unique_ptr<apps::JobStore> jobs, std::unique_ptr<apps::JobStore> long_jobs,
                           uint32_t many, Env& e)
      : many_followers(many),
        env(e),
        long_queue(std::move(long_jobs), /*group=*/1,
                   [this](std::span<apps::Job> some) { Attempt(some[0], /*puts_off=*/false); }),
        queue(std::move(jobs), /*group=*/1,
              [this](std::span<apps::Job> some) { Attempt(some[0], /*puts_off=*/true); }) {
    long_queue.WorkWhileServing(env);
    queue.WorkWhileServing(env);
  }

  Coroutine Enqueue(Context& ctx, const FanOutJob& request, Nothing*) override {
    if (absl::Status few = apps::CheckCount(request.mentioned_size(), apps::kMostIds, "mentions"); !few.ok())
      co_return few;
    co_return co_await queue.Put(ctx, request.SerializeAsString());
  }

  // A job is in one of the two until it is done. The one that it comes from is looked at first.
  Coroutine Look(Context& ctx, const Nothing&, QueueState* reply) override {
    QueueState of_long;
    absl::Status status = co_await queue.Look(ctx, reply);
    if (status.ok()) status = co_await long_queue.Look(ctx, &of_long);
    reply->set_waiting(reply->waiting() + of_long.waiting());
    reply->set_delivered(reply->delivered() + of_long.delivered());
    reply->set_failed_attempts(reply->failed_attempts() + of_long.failed_attempts());
    co_return status;
  }

  void Attempt(apps::Job& job, bool puts_off) {
    FanOutJob what;
    what.ParseFromString(job.bytes);
    job.done = Deliver(what, puts_off).ok();
  }

  // `puts_off`: a job for many followers goes to the other queue.
  absl::Status Deliver(const FanOutJob& job, bool puts_off) {
    Context ctx(apps::kJobTime);
    HomeEntries entries;
    entries.set_post(job.post());
    entries.set_author(job.author());
    EdgePage page;
    page.set_user(job.author());
    page.set_limit(puts_off ? many_followers : apps::kMostIds);
    Ids followers;
    do {
      followers.Clear();
      if (absl::Status status = graph.Followers(ctx, page, &followers); !status.ok()) return status;
      if (puts_off && followers.ids_size() == static_cast<int>(many_followers)) {
        return curtail::internal::RunToEnd(long_queue.Put(ctx, job.SerializeAsString()));
      }
      *entries.mutable_users() = followers.ids();
      if (absl::Status status = Tell(ctx, job, entries); !status.ok()) return status;
      if (!followers.ids().empty()) page.set_after(*followers.ids().rbegin());
    } while (followers.ids_size() == apps::kMostIds);
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

  const uint32_t many_followers;
  Env& env;
  const SocialGraph::Stub graph = env.Stub<SocialGraph>("social-graph");
  const HomeTimeline::Stub home = env.Stub<HomeTimeline>("home-timeline");
  apps::JobQueue long_queue, queue;  // of which the second puts jobs into the first
};

HostedService HostedWriteHomeTimeline() {
  struct Options {
    Data data;
    uint32_t many_followers = apps::kMostIds;
  };
  auto options = std::make_shared<Options>();
  return {.name = "write-home-timeline",
          .flags =
              [options](Flags& flags) {
                apps::AddDataFlags(flags, &options->data);
                flags.Add("--many-followers", &options->many_followers,
                          "Followers from which on an author's posts wait in a queue of their own",
                          {1, apps::kMostIds});
              },
          .make = [options](Env& env) -> MadeService {
            auto jobs = apps::OpenJobs(env, options->data, "write-home-timeline");
            if (!jobs.ok()) return jobs.status();
            auto long_jobs = apps::OpenJobs(env, options->data, "write-home-timeline-long");
            if (!long_jobs.ok()) return long_jobs.status();
            return std::make_unique<WriteHomeTimelineService>(*std::move(jobs), *std::move(long_jobs),
                                                              options->many_followers, env);
          }};
}

}  // namespace curtail::social
