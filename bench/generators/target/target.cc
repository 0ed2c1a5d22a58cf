// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: a handler sleeps until an absolute time, with a timer that has no slack, so that it takes no CPU from the
// generator that it is there to check. With one worker the network thread itself runs the handler (SIB1): a stalled
// server reads nothing either.
#include "target.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/base/mutex.h"
#include "curtail/base/rng.h"
#include "curtail/base/thread_annotations.h"
#include "curtail/rpc/server.h"
#include "load_target.curtail.h"

namespace curtail::bench {
namespace {

void SleepUntil(TimePoint when) {
  thread_local const int slack = prctl(PR_SET_TIMERSLACK, 1);
  (void)slack;
  const int64_t ns = when.time_since_epoch().count();
  const timespec until{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// The log of one run after the other. Thread-safe.
class Log {
 public:
  struct Ticket {
    uint64_t run;
    uint64_t number;
  };

  Ticket Begin() {
    MutexLock lock(mutex_);
    return {run_, next_++};
  }
  // A request of an earlier run, whose log was taken, is forgotten.
  void End(const Ticket& ticket, const ServedRequest& request) {
    MutexLock lock(mutex_);
    if (ticket.run == run_) requests_.push_back(request);
  }
  std::vector<ServedRequest> Take() {
    std::vector<ServedRequest> taken;
    {
      MutexLock lock(mutex_);
      taken.swap(requests_);
      ++run_;
      next_ = 0;
    }
    std::sort(taken.begin(), taken.end(),
              [](const ServedRequest& a, const ServedRequest& b) { return a.number < b.number; });
    return taken;
  }

 private:
  Mutex mutex_;
  uint64_t run_ CURTAIL_GUARDED_BY(mutex_) = 0;
  uint64_t next_ CURTAIL_GUARDED_BY(mutex_) = 0;
  std::vector<ServedRequest> requests_ CURTAIL_GUARDED_BY(mutex_);
};

class TargetService final : public LoadTarget::Service {
 public:
  TargetService(const TargetOptions& options, Log* log)
      : LoadTarget::Service(/*never_waits=*/true), options_(options), log_(log) {}

 private:
  absl::Status Call(Context&, const Nothing&, Nothing*) override {
    if (options_.service <= Nanos::zero()) return absl::OkStatus();
    const Log::Ticket ticket = log_->Begin();
    ServedRequest request;
    request.number = ticket.number;
    request.drawn = Draw(ticket.number);
    request.began = Now();
    SleepUntil(request.began + request.drawn);
    request.ended = Now();
    log_->End(ticket, request);
    return absl::OkStatus();
  }

  Nanos Draw(uint64_t number) const {
    Nanos time = options_.service;
    if (options_.exponential) {
      Rng rng(options_.seed + number);
      time = Nanos(static_cast<int64_t>(rng.Exponential(static_cast<double>(time.count()))));
    }
    return number == options_.stall_at ? time + options_.stall : time;
  }

  const TargetOptions options_;
  Log* const log_;
};

}  // namespace

class Target::Impl {
 public:
  absl::Status Start(const TargetOptions& options) {
    const std::string config = options.workers == 1 ? "SIB1" : absl::StrCat("SDB1-", options.workers);
    absl::StatusOr<Config> parsed = Config::Parse(config);
    if (!parsed.ok()) return parsed.status();
    ServerOptions server;
    server.listen = {options.listen};
    server.config = *parsed;
    server.max_threads = options.workers + 1;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<TargetService>(options, &log_));
    absl::StatusOr<std::unique_ptr<Server>> started = Server::Start(std::move(server), std::move(services));
    if (started.ok()) server_ = *std::move(started);
    return started.status();
  }
  const Server& server() const { return *server_; }
  Log& log() { return log_; }

 private:
  Log log_;
  std::unique_ptr<Server> server_;  // last, so that its handlers end before what they use
};

absl::StatusOr<std::unique_ptr<Target>> Target::Start(const TargetOptions& options) {
  auto impl = std::make_unique<Impl>();
  if (absl::Status started = impl->Start(options); !started.ok()) return started;
  return std::unique_ptr<Target>(new Target(std::move(impl)));
}

Target::Target(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Target::~Target() = default;
std::string Target::address() const { return impl_->server().addresses()[0]; }
std::vector<ServedRequest> Target::TakeLog() { return impl_->log().Take(); }

}  // namespace curtail::bench
