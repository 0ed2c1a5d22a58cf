// SPDX-License-Identifier: Apache-2.0
//
// Write home timeline: brings each new post to the timelines of its author's followers and of those it mentions, behind
// the caller's back.
//
// An acknowledged job is a row on disk. One thread takes the rows in their order, and deletes a row when home-timeline
// has acknowledged all its entries. So a job is done at least once, whatever dies in between, and home-timeline takes
// repetitions. A job that fails is tried again later; the others go on.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "apps/social/data.h"
#include "apps/social/page.h"
#include "curtail/exec/parker.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

constexpr uint64_t kMostWaitingJobs = 1'000'000;
constexpr int kJobsAtOnce = 64;
constexpr Nanos kDeliveryTime = std::chrono::seconds(5);
constexpr int64_t kFirstRetryMs = 50, kLastRetryMs = 10'000;

struct WriteHomeTimelineService final : WriteHomeTimeline::CoroutineService {
  WriteHomeTimelineService(SqlDatabase& d, Env& env)
      : db(d), graph(env.Stub<SocialGraph>("social-graph")), home(env.Stub<HomeTimeline>("home-timeline")) {}

  Coroutine Enqueue(Context& ctx, const FanOutJob& request, Nothing*) override {
    if (absl::Status few = CheckCount(request.mentioned_size(), kMostIds, "mentions"); !few.ok())
      co_return few;
    const std::string bytes = request.SerializeAsString();
    absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      // Rows are numbered in their order, so that the ends tell how many there may be.
      uint64_t span = 0;
      absl::Status counted = s.Query("SELECT coalesce(max(id) - min(id), 0) FROM jobs", {},
                                     [&](const SqlRow& row) { span = row.Unsigned(0); });
      if (!counted.ok()) return counted;
      if (span >= kMostWaitingJobs) return absl::ResourceExhaustedError("the queue is full");
      return s.Execute("INSERT INTO jobs(job, due_ms, attempts) VALUES (?1, 0, 0)", {SqlValue::Bytes(bytes)});
    });
    if (status.ok()) news.Notify();
    co_return status;
  }

  Coroutine Look(Context& ctx, const Nothing&, QueueState* reply) override {
    reply->set_delivered(delivered.load(std::memory_order_relaxed));
    reply->set_failed_attempts(failed.load(std::memory_order_relaxed));
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT count(*) FROM jobs", {},
                     [&](const SqlRow& row) { reply->set_waiting(row.Unsigned(0)); });
    });
  }

  struct Job {
    uint64_t id = 0;
    int64_t attempts = 0;
    FanOutJob what;
    bool done = false;
  };

  void Start() {
    worker = std::thread([this] { Work(); });
  }
  void Stop() {
    stopping.store(true, std::memory_order_release);
    news.Notify();
    worker.join();
  }

  void Work() {
    while (!stopping.load(std::memory_order_acquire)) {
      const uint32_t ticket = news.Ticket();
      std::vector<Job> jobs = TakeDue();
      for (Job& job : jobs) {
        if (stopping.load(std::memory_order_acquire)) break;
        job.done = Deliver(job.what).ok();
        ++job.attempts;
        (job.done ? delivered : failed).fetch_add(1, std::memory_order_relaxed);
      }
      if (!jobs.empty()) Settle(jobs);
      if (jobs.empty()) news.Wait(ticket, NextDue());
    }
  }

  static int64_t NowMs() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  }

  std::vector<Job> TakeDue() {
    std::vector<Job> jobs;
    absl::Status status = db.Read(Deadline::In(kDeliveryTime), [&](SqlSession& s) {
      return s.Query("SELECT id, attempts, job FROM jobs WHERE due_ms <= ?1 ORDER BY id LIMIT ?2",
                     {NowMs(), kJobsAtOnce}, [&](const SqlRow& row) {
                       Job& job = jobs.emplace_back();
                       job.id = row.Unsigned(0);
                       job.attempts = row.Integer(1);
                       job.what.ParseFromString(std::string(row.Text(2)));
                     });
    });
    if (!status.ok()) jobs.clear();  // tried again after the wait
    return jobs;
  }

  // When there will be a job without news.
  Deadline NextDue() {
    int64_t due_ms = -1;
    const absl::Status status = db.Read(Deadline::In(kDeliveryTime), [&](SqlSession& s) {
      return s.Query("SELECT coalesce(min(due_ms), -1) FROM jobs", {},
                     [&](const SqlRow& row) { due_ms = row.Integer(0); });
    });
    if (!status.ok()) return Deadline::In(std::chrono::milliseconds(kFirstRetryMs));
    if (due_ms < 0) return Deadline::Infinite();
    return Deadline::In(std::chrono::milliseconds(std::clamp<int64_t>(due_ms - NowMs(), 0, kLastRetryMs)));
  }

  // Rows that cannot be settled now are delivered again.
  void Settle(const std::vector<Job>& jobs) {
    absl::Status status = db.Write(Deadline::In(kDeliveryTime), [&](SqlSession& s) {
      absl::Status each;
      for (const Job& job : jobs) {
        if (job.done) {
          each.Update(s.Execute("DELETE FROM jobs WHERE id = ?1", {job.id}));
        } else {
          const int64_t pause = std::min(kLastRetryMs, kFirstRetryMs << std::min<int64_t>(job.attempts, 16));
          each.Update(s.Execute("UPDATE jobs SET due_ms = ?2, attempts = ?3 WHERE id = ?1",
                                {job.id, NowMs() + pause, job.attempts}));
        }
      }
      return each;
    });
    if (!status.ok()) failed.fetch_add(1, std::memory_order_relaxed);
  }

  absl::Status Deliver(const FanOutJob& job) {
    Context ctx(kDeliveryTime);
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

  SqlDatabase& db;
  const SocialGraph::Stub graph;
  const HomeTimeline::Stub home;
  Parker news;  // the worker waits; notified by Enqueue() and Stop()
  // Atomic: set by Stop() (release), read by the worker (acquire).
  std::atomic<bool> stopping{false};
  // Atomic; relaxed, statistics.
  std::atomic<uint64_t> delivered{0}, failed{0};
  std::thread worker;
};

HostedService HostedWriteHomeTimeline() {
  auto data = std::make_shared<DataOptions>();
  return {.name = "write-home-timeline",
          .calls = {"social-graph", "home-timeline"},
          .flags = [data](Flags& flags) { AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            auto db = OpenData(env, *data, "write-home-timeline",
                               {"CREATE TABLE jobs(id INTEGER PRIMARY KEY AUTOINCREMENT, job BLOB NOT NULL,"
                                " due_ms INTEGER NOT NULL, attempts INTEGER NOT NULL) STRICT"});
            if (!db.ok()) return db.status();
            auto service = std::make_unique<WriteHomeTimelineService>(**db, env);
            env.WhileServing([s = service.get()] { s->Start(); }, [s = service.get()] { s->Stop(); });
            return service;
          }};
}

}  // namespace curtail::social
