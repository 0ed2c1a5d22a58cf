// SPDX-License-Identifier: Apache-2.0
#include "apps/social/job_queue.h"

#include <algorithm>
#include <chrono>

namespace curtail::social {
namespace {

constexpr uint64_t kMostWaitingJobs = 1'000'000;
constexpr int kJobsAtOnce = 64;
constexpr int64_t kFirstRetryMs = 50, kLastRetryMs = 10'000;

int64_t NowMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

const char JobQueue::kSchema[] =
    "CREATE TABLE jobs(id INTEGER PRIMARY KEY AUTOINCREMENT, job BLOB NOT NULL, due_ms INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL) STRICT";

void JobQueue::WorkWhileServing(Env& env) {
  env.WhileServing([this] { thread_ = std::thread([this] { Work(); }); },
                   [this] {
                     stopping_.store(true, std::memory_order_release);
                     news_.Notify();
                     thread_.join();
                   });
}

Coroutine JobQueue::Put(Context& ctx, std::string bytes) {
  absl::Status status = co_await db_.Writing(ctx.deadline(), [&](SqlSession& s) {
    // Rows are numbered in their order, so that the ends tell how many there may be.
    uint64_t span = 0;
    absl::Status counted = s.Query("SELECT coalesce(max(id) - min(id), 0) FROM jobs", {},
                                   [&](const SqlRow& row) { span = row.Unsigned(0); });
    if (!counted.ok()) return counted;
    if (span >= kMostWaitingJobs) return absl::ResourceExhaustedError("the queue is full");
    return s.Execute("INSERT INTO jobs(job, due_ms, attempts) VALUES (?1, 0, 0)", {SqlValue::Bytes(bytes)});
  });
  if (status.ok()) news_.Notify();
  co_return status;
}

Coroutine JobQueue::Look(Context& ctx, QueueState* state) {
  state->set_delivered(delivered_.load(std::memory_order_relaxed));
  state->set_failed_attempts(failed_.load(std::memory_order_relaxed));
  co_return co_await db_.Reading(ctx.deadline(), [&](SqlSession& s) {
    return s.Query("SELECT count(*) FROM jobs", {},
                   [&](const SqlRow& row) { state->set_waiting(row.Unsigned(0)); });
  });
}

void JobQueue::Work() {
  while (!stopping_.load(std::memory_order_acquire)) {
    const uint32_t ticket = news_.Ticket();
    std::vector<Job> jobs = TakeDue();
    for (size_t begin = 0; begin < jobs.size(); begin += group_) {
      if (stopping_.load(std::memory_order_acquire)) break;
      const std::span<Job> group = std::span(jobs).subspan(begin, std::min(group_, jobs.size() - begin));
      attempt_(group);
      for (Job& job : group) {
        ++job.attempts;
        (job.done ? delivered_ : failed_).fetch_add(1, std::memory_order_relaxed);
      }
    }
    if (!jobs.empty()) Settle(jobs);
    if (jobs.empty()) news_.Wait(ticket, NextDue());
  }
}

std::vector<JobQueue::Job> JobQueue::TakeDue() {
  std::vector<Job> jobs;
  absl::Status status = db_.Read(Deadline::In(kJobTime), [&](SqlSession& s) {
    return s.Query("SELECT id, attempts, job FROM jobs WHERE due_ms <= ?1 ORDER BY id LIMIT ?2",
                   {NowMs(), kJobsAtOnce}, [&](const SqlRow& row) {
                     Job& job = jobs.emplace_back();
                     job.id = row.Unsigned(0);
                     job.attempts = row.Integer(1);
                     job.bytes = row.Text(2);
                   });
  });
  if (!status.ok()) jobs.clear();  // tried again after the wait
  return jobs;
}

Deadline JobQueue::NextDue() {
  int64_t due_ms = -1;
  const absl::Status status = db_.Read(Deadline::In(kJobTime), [&](SqlSession& s) {
    return s.Query("SELECT coalesce(min(due_ms), -1) FROM jobs", {},
                   [&](const SqlRow& row) { due_ms = row.Integer(0); });
  });
  if (!status.ok()) return Deadline::In(std::chrono::milliseconds(kFirstRetryMs));
  if (due_ms < 0) return Deadline::Infinite();
  return Deadline::In(std::chrono::milliseconds(std::clamp<int64_t>(due_ms - NowMs(), 0, kLastRetryMs)));
}

void JobQueue::Settle(const std::vector<Job>& jobs) {
  absl::Status status = db_.Write(Deadline::In(kJobTime), [&](SqlSession& s) {
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
  if (!status.ok()) failed_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace curtail::social
