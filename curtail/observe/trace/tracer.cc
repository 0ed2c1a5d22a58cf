// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: each thread that hands over has a ring (span_ring.h), which it claims with its first span. The exporter's thread
// takes turns:
//
//  E1  It waits for its eventfd, the collector's socket, or a moment: the next batch, or the end of a POST's time.
//  E2  It empties every ring, as does a reader of the recent spans: whoever holds mu_ is the consumer (rule S1). Each span is added to the batch and becomes one of the recent ones. The oldest of these goes
//      back to the pool.
//  E3  If no POST is under way, the batch is old or large enough, and no failure was just now, it begins a POST.
//
//  E4  A batch that the collector asks for later is sent again, five times in all, each time after a longer pause.
//
// A batch that does not get through is dropped: a collector that is back wants the present, not the past. The first failure is said.
#include "curtail/observe/trace/tracer.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/base/boundary.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/base/log.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/exec/signals.h"
#include "curtail/observe/trace/span_ring.h"
#include "curtail/observe/trace/trace_json.h"
#include "curtail/observe/trace/trace_sender.h"

namespace curtail::observe {
namespace {

using curtail::internal::UniqueFd;

constexpr size_t kRingSize = 64;
constexpr size_t kLargeBatch = 256u << 10;
constexpr int kAttempts = 5;  // at a batch
constexpr Nanos kLongestRetry = std::chrono::seconds(30);
constexpr auto kRelaxed = std::memory_order_relaxed;

using Ring = SpanRing<Span, kRingSize>;

// The ring of this thread for the tracer that it last worked for.
struct Claim {
  uint64_t tracer = 0;
  Ring* ring = nullptr;
};
thread_local Claim claim;

uint64_t NextTracer() {
  static std::atomic<uint64_t> count{0};  // names tracers, so that no two of a process have one name
  return count.fetch_add(1, kRelaxed) + 1;
}

uint64_t Threshold(double share) {
  return share <= 0 ? 0 : static_cast<uint64_t>(std::ldexp(std::min(share, 0.999999), 64));
}

}  // namespace

namespace internal {

uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
    seed = static_cast<uint64_t>(Now().time_since_epoch().count()) ^ reinterpret_cast<uintptr_t>(&seed);
  }
  return seed | 1;
}

}  // namespace internal

class Tracer::Impl {
 public:
  Impl(TracerOptions options, SlowCalls* slow)
      : service_(std::move(options.service)),
        exporter_(std::move(options.target.exporter)),
        batch_time_(options.batch_time),
        retry_time_(options.retry_time),
        flush_time_(options.flush_time),
        slow_(slow),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        exemplars_(options.methods),
        sender_(std::move(options.target.url)) {}
  ~Impl();

  absl::Status Begin();
  Span* TakeSpan();
  void HandOver(Span* span);
  void CountErrors(const TraceErrors& errors);
  TracerStats stats() const;
  std::string RecentJson();
  std::vector<BucketExemplars> exemplars();

 private:
  // Null when there are too many threads.
  Ring* RingOfThread();
  void Wake();

  // The rest is the exporter's thread's.
  void Run();
  void Turn(TimePoint now);
  void Wait(TimePoint until);
  TimePoint NextTurn();
  void Drain() CURTAIL_REQUIRES(mu_);
  void Take(Span* span, const WallClock& clock) CURTAIL_REQUIRES(mu_);
  void Give(Span* span);
  void Send(TimePoint now);
  void OnSocket(TimePoint now);
  void Flush();

  // Immutable.
  const uint64_t name_ = NextTracer();
  const std::string service_;
  const std::unique_ptr<TraceExporter> exporter_;  // null: spans stay here
  const Nanos batch_time_, retry_time_, flush_time_;
  SlowCalls* const slow_;
  const UniqueFd wake_;

  // Thread-safe by itself; wakes the thread.
  SpanBell<> bell_;
  // Atomic, relaxed: spans taken from the pool and not given back.
  std::atomic<size_t> out_{0};
  // Atomic, relaxed: statistics.
  std::atomic<uint64_t> spans_{0}, delivered_{0}, full_{0}, backlog_{0}, refused_{0}, bad_context_{0},
      bad_state_{0};
  // Atomic: set once, release; the thread reads it, acquire.
  std::atomic<bool> stopping_{false};

  mutable Mutex rings_mu_;
  std::vector<std::unique_ptr<Ring>> rings_ CURTAIL_GUARDED_BY(rings_mu_);

  Mutex mu_;
  std::array<Span*, kRecent> recent_ CURTAIL_GUARDED_BY(mu_){};  // a ring; null: none yet
  size_t next_recent_ CURTAIL_GUARDED_BY(mu_) = 0;
  Exemplars exemplars_ CURTAIL_GUARDED_BY(mu_);
  std::string batch_ CURTAIL_GUARDED_BY(mu_);
  uint64_t batch_spans_ CURTAIL_GUARDED_BY(mu_) = 0;
  TimePoint batch_due_ CURTAIL_GUARDED_BY(mu_);

  // Owned by the exporter's thread.
  TraceSender sender_;
  uint64_t sent_spans_ = 0;
  TimePoint retry_at_, update_at_;
  int failures_ = 0;  // in a row
  int attempts_ = 0;  // that were made at a batch which is to be sent again; 0: there is none
  bool complained_ = false;

  std::thread thread_;
};

absl::Status Tracer::Impl::Begin() {
  if (!wake_) return absl::ResourceExhaustedError("no file descriptor is left for traces");
  for (size_t i = 0; i < kMostSpans; ++i) Recycler<Span>::Give(new Span);  // so that no call takes memory
  const SignalsKeptOut keep_out;
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "trace-export");
  return absl::OkStatus();
}

Tracer::Impl::~Impl() {
  if (thread_.joinable()) {
    stopping_.store(true, std::memory_order_release);
    eventfd_write(wake_.get(), 1);
    thread_.join();
  }
  MutexLock lock(mu_);
  for (Span* span : recent_) {
    if (span != nullptr) Recycler<Span>::Give(span);
  }
}

Ring* Tracer::Impl::RingOfThread() {
  if (claim.tracer == name_) [[likely]]
    return claim.ring;
  MutexLock lock(rings_mu_);
  if (rings_.size() == kMostThreads) return nullptr;
  claim = {name_, rings_.emplace_back(std::make_unique<Ring>()).get()};
  return claim.ring;
}

Span* Tracer::Impl::TakeSpan() {
  if (out_.fetch_add(1, kRelaxed) < kMostSpans) [[likely]]
    return Recycler<Span>::Take();
  out_.fetch_sub(1, kRelaxed);
  full_.fetch_add(1, kRelaxed);
  return nullptr;
}

void Tracer::Impl::Give(Span* span) {
  Recycler<Span>::Give(span);
  out_.fetch_sub(1, kRelaxed);
}

void Tracer::Impl::HandOver(Span* span) {
  Ring* const ring = RingOfThread();
  const Ring::Pushed pushed = ring == nullptr ? Ring::Pushed::kFull : ring->Push(span);
  if (pushed == Ring::Pushed::kFull) {
    full_.fetch_add(1, kRelaxed);
    Give(span);
  }
  if (pushed != Ring::Pushed::kFine) Wake();
}

void Tracer::Impl::Wake() {
  if (bell_.Ring()) eventfd_write(wake_.get(), 1);
}

void Tracer::Impl::CountErrors(const TraceErrors& errors) {
  if (errors.context) bad_context_.fetch_add(1, kRelaxed);
  if (errors.state) bad_state_.fetch_add(1, kRelaxed);
}

TracerStats Tracer::Impl::stats() const {
  return {spans_.load(kRelaxed),    delivered_.load(kRelaxed), full_.load(kRelaxed),
          backlog_.load(kRelaxed),  refused_.load(kRelaxed),   bad_context_.load(kRelaxed),
          bad_state_.load(kRelaxed)};
}

std::string Tracer::Impl::RecentJson() {
  TracesJson json(service_);
  const WallClock clock;
  MutexLock lock(mu_);
  Drain();
  for (size_t i = 1; i <= kRecent; ++i) {
    const Span* const span = recent_[(next_recent_ + kRecent - i) % kRecent];
    if (span != nullptr) json.Add(*span, clock);
  }
  return json.Finish();
}

std::vector<BucketExemplars> Tracer::Impl::exemplars() {
  MutexLock lock(mu_);
  Drain();
  return exemplars_.methods();
}

void Tracer::Impl::Run() {
  while (!stopping_.load(std::memory_order_acquire)) {
    Wait(NextTurn());  // E1
    if (!Contain("trace export", [this] { Turn(Now()); })) retry_at_ = Now() + retry_time_;
  }
  Contain("trace export", [this] { Flush(); });
}

void Tracer::Impl::Turn(TimePoint now) {
  {
    MutexLock lock(mu_);
    Drain();
  }
  if (now >= update_at_) {
    slow_->Update();
    update_at_ = now + std::chrono::seconds(1);
  }
  OnSocket(now);
  Send(now);
}

// Rings are looked into once in batch_time_ even if none is half full.
TimePoint Tracer::Impl::NextTurn() {
  const TimePoint next = Now() + batch_time_;
  if (!sender_.idle()) return std::min(next, sender_.due());
  MutexLock lock(mu_);
  return batch_spans_ > 0 ? std::min(next, std::max(batch_due_, retry_at_)) : next;
}

void Tracer::Impl::Wait(TimePoint until) {
  std::array<pollfd, 2> sockets = {{{wake_.get(), POLLIN, 0}, {sender_.idle() ? -1 : sender_.fd(), 0, 0}}};
  if (!sender_.idle()) sockets[1].events = sender_.events();
  const Nanos wait = std::max(until - Now(), Nanos::zero());
  const timespec timeout = {.tv_sec = static_cast<time_t>(wait / std::chrono::seconds(1)),
                            .tv_nsec = static_cast<long>((wait % std::chrono::seconds(1)).count())};
  ppoll(sockets.data(), sockets.size(), &timeout, nullptr);
  eventfd_t ignored;
  if (sockets[0].revents != 0) eventfd_read(wake_.get(), &ignored);
}

void Tracer::Impl::Drain() {
  bell_.Hear();
  std::array<Ring*, kMostThreads> rings;
  size_t count = 0;
  {
    MutexLock lock(rings_mu_);
    for (const auto& ring : rings_) rings[count++] = ring.get();
  }
  const WallClock clock;
  for (size_t i = 0; i < count; ++i) {
    while (Span* span = rings[i]->Pop()) Take(span, clock);  // E2
  }
}

void Tracer::Impl::Take(Span* span, const WallClock& clock) {
  spans_.fetch_add(1, kRelaxed);
  exemplars_.Note(span->method, {.trace = span->trace,
                                 .duration = span->replied - span->arrived,
                                 .since_epoch = clock.SinceEpoch(span->replied)});
  if (exporter_ != nullptr && batch_.size() >= kMostBytes) {
    backlog_.fetch_add(1, kRelaxed);
  } else if (exporter_ != nullptr) {
    if (batch_spans_ == 0) {
      exporter_->Begin(service_, &batch_);
      batch_due_ = Now() + batch_time_;
    }
    exporter_->Add(*span, clock, batch_spans_ == 0, &batch_);
    ++batch_spans_;
  }
  Span* const oldest = std::exchange(recent_[next_recent_], span);
  next_recent_ = (next_recent_ + 1) % kRecent;
  if (oldest != nullptr) Give(oldest);
}

void Tracer::Impl::Send(TimePoint now) {
  if (!sender_.idle() || now < retry_at_) return;
  if (attempts_ > 0) return sender_.SendAgain(now);
  std::string body;
  {
    MutexLock lock(mu_);
    if (batch_spans_ == 0 || (now < batch_due_ && batch_.size() < kLargeBatch)) return;
    exporter_->End(&batch_);
    sent_spans_ = std::exchange(batch_spans_, 0);
    body.swap(batch_);
  }
  sender_.Send(std::move(body), now);  // E3: outside of mu_, as it may look a name up
}

void Tracer::Impl::OnSocket(TimePoint now) {
  if (sender_.idle()) return;
  const std::optional<TraceSender::Outcome> outcome = sender_.OnReady(now);
  if (!outcome) return;
  const bool delivered = outcome == TraceSender::Outcome::kDelivered;
  attempts_ = outcome == TraceSender::Outcome::kLater && attempts_ + 1 < kAttempts ? attempts_ + 1 : 0;
  if (attempts_ == 0) (delivered ? delivered_ : refused_).fetch_add(std::exchange(sent_spans_, 0), kRelaxed);
  if (!delivered && !std::exchange(complained_, true)) {
    Log(Severity::kWarning,
        Join("warning: ", sender_.problem(), ", so spans are lost; curtail_trace_dropped_total counts them"),
        {{"collector", sender_.authority()}});
  }
  failures_ = delivered ? 0 : failures_ + 1;
  retry_at_ = now;
  if (failures_ > 0) retry_at_ += std::min(kLongestRetry, retry_time_ * (1 << std::min(failures_ - 1, 10)));
}

void Tracer::Impl::Flush() {
  const TimePoint end = Now() + flush_time_;
  retry_at_ = TimePoint();
  bool left = true;
  while (left && Now() < end) {
    {
      MutexLock lock(mu_);
      Drain();
      batch_due_ = TimePoint();
    }
    Send(Now());
    left = !sender_.idle();
    if (!left) break;
    Wait(std::min(end, sender_.due()));
    OnSocket(Now());
    if (failures_ > 0 && sender_.idle()) break;
  }
  MutexLock lock(mu_);
  Drain();
  refused_.fetch_add(batch_spans_ + sent_spans_, kRelaxed);
}

Tracer::Tracer(TracerOptions options)
    : threshold_(Threshold(options.sample)),
      all_(options.sample >= 1),
      slow_(options.methods, options.slow),
      impl_(std::make_unique<Impl>(std::move(options), &slow_)) {}

Tracer::~Tracer() = default;

absl::StatusOr<std::unique_ptr<Tracer>> Tracer::Start(TracerOptions options) {
  std::unique_ptr<Tracer> tracer(new Tracer(std::move(options)));
  if (absl::Status begun = tracer->impl_->Begin(); !begun.ok()) return begun;
  return tracer;
}

void Tracer::CountErrors(const TraceErrors& errors) { impl_->CountErrors(errors); }
Span* Tracer::TakeSpan() { return impl_->TakeSpan(); }
void Tracer::HandOver(Span* span) { impl_->HandOver(span); }
TracerStats Tracer::stats() const { return impl_->stats(); }
std::string Tracer::RecentJson() const { return impl_->RecentJson(); }
std::vector<BucketExemplars> Tracer::exemplars() const { return impl_->exemplars(); }

}  // namespace curtail::observe
