// SPDX-License-Identifier: Apache-2.0
//
// A tracer before collectors that behave, and that misbehave in each way; rings, limits and formats.
#include "curtail/observe/trace/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "curtail/base/internal/unique_fd.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/exec/address.h"
#include "curtail/observe/trace/span_ring.h"
#include "curtail/observe/trace/trace_sender.h"

namespace curtail::observe {
namespace {

using curtail::internal::UniqueFd;
using nlohmann::json;
using testing::SizeIs;

enum class Behaviour {
  kTakes,
  kRefuses,
  kBusyTwice,
  kIsBusy,
  kNeverAnswers,
  kHangsUp,
  kSendsWithoutEnd,
  kBabbles
};

// A collector of which each connection meets the same fate.
class Collector {
 public:
  explicit Collector(Behaviour behaviour) : behaviour_(behaviour) {
    const absl::StatusOr<Address> any = Address::Resolve("127.0.0.1:0");
    listener_.Reset(socket(any->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener_.get(), any->raw(), any->size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    Address bound;
    bound.size = sizeof bound.storage;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.size);
    address_ = bound.ToString();
    thread_ = std::thread([this] { Run(); });
  }
  ~Collector() {
    stopping_ = true;
    thread_.join();
  }

  const std::string& address() const { return address_; }
  // The requests, once there are n.
  std::vector<std::string> Await(size_t n) {
    std::unique_lock lock(mu_);
    cv_.wait_for(lock, kMaxTestWait, [&] { return requests_.size() >= n; });
    return requests_;
  }

 private:
  static constexpr int kLookMs = 10;

  bool Readable(int fd) const {
    pollfd socket{fd, POLLIN, 0};
    while (!stopping_) {
      if (poll(&socket, 1, kLookMs) > 0) return true;
    }
    return false;
  }
  void Run() {
    while (Readable(listener_.get())) {
      UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd && behaviour_ != Behaviour::kHangsUp) Serve(fd.get());
    }
  }
  void Serve(int fd) {
    std::string in;
    size_t whole = SIZE_MAX;
    while (in.size() < whole && Readable(fd)) {
      char buffer[4096];
      const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      in.append(buffer, static_cast<size_t>(n));
      const size_t head = in.find("\r\n\r\n"), length = in.find("content-length: ");
      if (head != std::string::npos) whole = head + 4 + static_cast<size_t>(std::atoll(&in[length + 16]));
    }
    {
      std::lock_guard lock(mu_);
      requests_.push_back(std::move(in));
      cv_.notify_all();
    }
    Answer(fd, ++answered_);
  }
  void Answer(int fd, int number) const {
    const auto send_all = [fd](std::string_view text) {
      return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
    };
    if (behaviour_ == Behaviour::kIsBusy || (behaviour_ == Behaviour::kBusyTwice && number <= 2))
      return (void)send_all("HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n");
    if (behaviour_ == Behaviour::kTakes || behaviour_ == Behaviour::kBusyTwice)
      send_all("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
    if (behaviour_ == Behaviour::kRefuses) send_all("HTTP/1.1 500 No\r\ncontent-length: 3\r\n\r\nno\n");
    if (behaviour_ == Behaviour::kBabbles) send_all("220 mail.example ESMTP\r\n");
    if (behaviour_ == Behaviour::kNeverAnswers) Readable(fd);  // until it is given up
    if (behaviour_ != Behaviour::kSendsWithoutEnd) return;
    send_all("HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n");
    const std::string much(64u << 10, 'x');
    pollfd socket{fd, POLLOUT, 0};
    while (!stopping_ && (send(fd, much.data(), much.size(), MSG_NOSIGNAL) >= 0 || errno == EAGAIN)) {
      poll(&socket, 1, kLookMs);
    }
  }

  const Behaviour behaviour_;
  int answered_ = 0;  // by the thread
  UniqueFd listener_;
  std::string address_;
  std::atomic<bool> stopping_{false};
  std::mutex mu_;
  std::condition_variable cv_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

std::unique_ptr<Tracer> StartTracer(const std::string& to, Nanos flush_time = kMaxTestWait) {
  auto target = ParseTraceTarget(to);
  EXPECT_TRUE(target.ok()) << target.status();
  auto tracer = Tracer::Start({.methods = 1,
                               .service = "cart \"1\"",
                               .target = *std::move(target),
                               .batch_time = std::chrono::milliseconds(5),
                               .retry_time = std::chrono::milliseconds(5),
                               .flush_time = flush_time});
  EXPECT_TRUE(tracer.ok()) << tracer.status();
  return *std::move(tracer);
}

// False: it was dropped before it could be handed over.
bool HandOverOne(Tracer& tracer, int code = 0) {
  Span* const span = tracer.TakeSpan();
  if (span == nullptr) return false;
  span->trace = {1, 2};
  span->id = 3;
  span->method = 0;
  span->parent = 4;
  span->reason = SpanReason::kSampled;
  span->path.Assign("/shop.Cart/Add");
  span->peer.Assign("127.0.0.1:5000");
  span->arrived = Now();
  span->dequeued = span->arrived + std::chrono::microseconds(10);
  span->began = span->dequeued + std::chrono::microseconds(1);
  span->replied = span->began + std::chrono::microseconds(100);
  span->over = span->replied + std::chrono::microseconds(5);
  span->code = code;
  span->children_left_out = 0;
  span->child_count = 1;
  ChildSpan& child = span->children[0];
  child.path.Assign("/shop.Stock/Take");
  child.target.Assign("stock:80");
  child.id = 5;
  child.parent = 3;
  child.called = span->began;
  child.sent = child.called + std::chrono::microseconds(2);
  child.answered = child.called + std::chrono::microseconds(50);
  child.code = code;
  tracer.HandOver(span);
  return true;
}

TEST(Tracer, HasTheLatestSpanOfEachBucket) {
  const auto tracer = StartTracer("memory");
  const std::vector<BucketExemplars> before = tracer->exemplars();
  ASSERT_THAT(before, SizeIs(1));
  for (const Exemplar& none : before[0]) EXPECT_FALSE(none.valid());
  ASSERT_TRUE(HandOverOne(*tracer));
  const BucketExemplars buckets = tracer->exemplars()[0];
  for (size_t i = 0; i < buckets.size(); ++i) {
    const bool has_it = i == MetricsCalls::BucketOf(std::chrono::microseconds(111));
    EXPECT_EQ(buckets[i].valid(), has_it) << i;
    if (!has_it) continue;
    EXPECT_EQ(buckets[i].trace, (TraceId{1, 2}));
    EXPECT_EQ(buckets[i].duration, std::chrono::microseconds(111));
    EXPECT_GT(buckets[i].since_epoch, std::chrono::hours(24 * 365 * 50));
  }
}

uint64_t Dropped(const TracerStats& stats) { return stats.full + stats.backlog + stats.refused; }

template <class F>
TracerStats AwaitStats(const Tracer& tracer, F holds) {
  const Deadline end = Deadline::In(kMaxTestWait);
  TracerStats stats = tracer.stats();
  while (!holds(stats) && !end.Expired()) {
    BetweenLooks();
    stats = tracer.stats();
  }
  return stats;
}

std::string BodyOf(const std::string& request) { return request.substr(request.find("\r\n\r\n") + 4); }

TEST(Tracer, SendsZipkinItsSpans) {
  Collector collector(Behaviour::kTakes);
  const auto tracer = StartTracer("zipkin=http://" + collector.address());
  HandOverOne(*tracer, 5);
  const std::vector<std::string> requests = collector.Await(1);
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_THAT(requests[0], testing::StartsWith("POST /api/v2/spans HTTP/1.1\r\nhost: 127.0.0.1:"));
  const json spans = json::parse(BodyOf(requests[0]));
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_EQ(spans[0]["traceId"], "00000000000000010000000000000002");
  EXPECT_EQ(spans[0]["id"], "0000000000000003");
  EXPECT_EQ(spans[0]["parentId"], "0000000000000004");
  EXPECT_EQ(spans[0]["kind"], "SERVER");
  EXPECT_EQ(spans[0]["localEndpoint"]["serviceName"], "cart \"1\"");
  EXPECT_EQ(spans[0]["remoteEndpoint"]["port"], 5000);
  EXPECT_NEAR(spans[0]["duration"].get<double>(), 116, 1);
  EXPECT_THAT(spans[0]["annotations"], SizeIs(3));
  EXPECT_EQ(spans[0]["tags"]["error"], "NOT_FOUND");
  EXPECT_EQ(spans[1]["kind"], "CLIENT");
  EXPECT_EQ(spans[1]["parentId"], "0000000000000003");
  EXPECT_NEAR(spans[1]["duration"].get<double>(), 50, 1);
  EXPECT_EQ(AwaitStats(*tracer, [](const auto& s) { return s.delivered == 1; }).delivered, 1u);
}

TEST(Tracer, SendsOtlpItsSpans) {
  Collector collector(Behaviour::kTakes);
  const auto tracer = StartTracer("otlp=http://" + collector.address() + "/v1/own");
  HandOverOne(*tracer, 5);
  const std::vector<std::string> requests = collector.Await(1);
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_THAT(requests[0], testing::StartsWith("POST /v1/own HTTP/1.1\r\n"));
  const json resource = json::parse(BodyOf(requests[0]))["resourceSpans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0]["value"]["stringValue"], "cart \"1\"");
  const json spans = resource["scopeSpans"][0]["spans"];
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_EQ(spans[0]["name"], "shop.Cart/Add");
  EXPECT_EQ(spans[0]["kind"], 2);
  EXPECT_EQ(spans[0]["status"]["code"], 2);
  EXPECT_EQ(std::stoll(spans[0]["endTimeUnixNano"].get<std::string>()) -
                std::stoll(spans[0]["startTimeUnixNano"].get<std::string>()),
            116'000);
  EXPECT_EQ(spans[1]["parentSpanId"], "0000000000000003");
  EXPECT_EQ(spans[1]["kind"], 3);
}

// Property: a collector that misbehaves costs drops, which are counted; the threads that answer do not notice.
class MisbehavingTest : public testing::TestWithParam<Behaviour> {};
INSTANTIATE_TEST_SUITE_P(Ways, MisbehavingTest,
                         testing::Values(Behaviour::kRefuses, Behaviour::kNeverAnswers, Behaviour::kHangsUp,
                                         Behaviour::kSendsWithoutEnd, Behaviour::kBabbles));

TEST_P(MisbehavingTest, CostsDropsOnly) {
  constexpr size_t kSpans = 20'000;
  Collector collector(GetParam());
  auto tracer = StartTracer("zipkin=http://" + collector.address(), std::chrono::milliseconds(10));
  for (size_t i = 0; i < kSpans; ++i) HandOverOne(*tracer);
  const bool answers = GetParam() != Behaviour::kNeverAnswers;
  const TracerStats stats = AwaitStats(
      *tracer, [&](const auto& s) { return s.spans + s.full == kSpans && (s.refused > 0 || !answers); });
  EXPECT_EQ(stats.spans + stats.full, kSpans);
  EXPECT_EQ(stats.delivered, 0u);
  EXPECT_GT(Dropped(stats), 0u);
  EXPECT_LE(json::parse(tracer->RecentJson())["spans"].size(), Tracer::kRecent);
  const TimePoint before = Now();
  tracer.reset();
  EXPECT_LT(Now() - before, TraceSender::kMostTime);
}

TEST(Tracer, ABusyCollectorIsAskedAgain) {
  Collector collector(Behaviour::kBusyTwice);
  const auto tracer = StartTracer("otlp=http://" + collector.address());
  HandOverOne(*tracer);
  const std::vector<std::string> requests = collector.Await(3);
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_EQ(requests[1], requests[0]);
  EXPECT_EQ(requests[2], requests[0]);
  const TracerStats stats = AwaitStats(*tracer, [](const auto& s) { return s.delivered > 0; });
  EXPECT_EQ(stats.delivered, 1u);
  EXPECT_EQ(Dropped(stats), 0u);
}

TEST(Tracer, ACollectorThatStaysBusyIsAskedFiveTimes) {
  Collector collector(Behaviour::kIsBusy);
  const auto tracer = StartTracer("otlp=http://" + collector.address());
  HandOverOne(*tracer);
  EXPECT_EQ(AwaitStats(*tracer, [](const auto& s) { return s.refused > 0; }).refused, 1u);
  EXPECT_THAT(collector.Await(5), SizeIs(5));
}

TEST(Tracer, ACollectorThatIsAbsentCostsDropsOnly) {
  // Another test may take a port that was free a moment ago.
  const std::string address = "127.0.0.1:1";
  testing::internal::CaptureStderr();
  auto tracer = StartTracer("otlp=http://" + address);
  for (uint64_t lost = 1; lost <= 2; ++lost) {
    HandOverOne(*tracer);
    EXPECT_EQ(AwaitStats(*tracer, [&](const auto& s) { return s.refused >= lost; }).refused, lost);
  }
  tracer.reset();
  const std::string said = testing::internal::GetCapturedStderr(),
                    words = "warning: no collector at " + address + ", so spans are lost";
  ASSERT_NE(said.find(words), std::string::npos) << said;
  EXPECT_EQ(said.find(words, said.find(words) + 1), std::string::npos) << "once: " << said;
}

TEST(Tracer, MemoryHoldsTheLatest) {
  const auto tracer = StartTracer("memory");
  EXPECT_TRUE(HandOverOne(*tracer));
  const json page = json::parse(tracer->RecentJson());
  EXPECT_EQ(page["schema_version"], 1);
  EXPECT_EQ(page["service"], "cart \"1\"");
  ASSERT_THAT(page["spans"], SizeIs(1));
  EXPECT_EQ(page["spans"][0]["queue_ns"], 10'000);
  EXPECT_EQ(page["spans"][0]["calls"][0]["send_ns"], 2'000);
  EXPECT_EQ(tracer->stats().spans, 1u);
}

// Property: each span of any number of threads arrives, or is counted as dropped.
TEST(Tracer, ThreadsHandOverStress) {
  constexpr size_t kThreads = 4, kSpans = 5'000;
  const auto tracer = StartTracer("memory");
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (size_t n = 0; n < kSpans; ++n) HandOverOne(*tracer);
    });
  }
  for (std::thread& thread : threads) thread.join();
  tracer->RecentJson();  // takes what is left
  const TracerStats stats = tracer->stats();
  EXPECT_EQ(stats.spans + stats.full, kThreads * kSpans);
  EXPECT_GT(stats.spans, Tracer::kRecent);
}

TEST(Tracer, DrawsTheShare) {
  for (const double share : {0.0, 0.25, 1.0}) {
    constexpr int kDraws = 20'000;
    auto tracer = Tracer::Start({.sample = share, .methods = 1});
    ASSERT_TRUE(tracer.ok());
    int chosen = 0;
    for (int i = 0; i < kDraws; ++i) chosen += (*tracer)->Draw();
    EXPECT_NEAR(chosen, share * kDraws, share == 0.25 ? 500 : 0) << share;
  }
}

TEST(SpanRing, KeepsOrderAndRefusesWhenFull) {
  using Ring = SpanRing<int, 4>;
  Ring ring;
  int items[6] = {};
  EXPECT_EQ(ring.Pop(), nullptr);
  EXPECT_EQ(ring.Push(&items[0]), Ring::Pushed::kFine);
  EXPECT_EQ(ring.Push(&items[1]), Ring::Pushed::kHalfFull);
  EXPECT_EQ(ring.Push(&items[2]), Ring::Pushed::kHalfFull);
  EXPECT_EQ(ring.Push(&items[3]), Ring::Pushed::kHalfFull);
  EXPECT_EQ(ring.Push(&items[4]), Ring::Pushed::kFull);
  EXPECT_EQ(ring.Pop(), &items[0]);
  EXPECT_EQ(ring.Push(&items[5]), Ring::Pushed::kHalfFull);
  for (const int at : {1, 2, 3, 5}) EXPECT_EQ(ring.Pop(), &items[at]);
  EXPECT_EQ(ring.Pop(), nullptr);
  EXPECT_EQ(ring.Push(&items[0]), Ring::Pushed::kFine);
}

TEST(SlowCalls, BucketsAreAnEighthOfAPowerOfTwo) {
  for (size_t i = 0; i + 1 < SlowCalls::kBuckets; ++i) {
    const int64_t bound = SlowCalls::BoundOf(i);
    EXPECT_EQ(SlowCalls::BucketOf(Nanos(bound)), i);
    EXPECT_EQ(SlowCalls::BucketOf(Nanos(SlowCalls::BoundOf(i + 1) - 1)), i);
  }
  EXPECT_EQ(SlowCalls::BucketOf(Nanos(-1)), 0u);
  EXPECT_EQ(SlowCalls::BucketOf(Nanos::max()), SlowCalls::kBuckets - 1);
}

TEST(SlowCalls, FindsTheRunningP999) {
  Rng rng(7);
  SlowCalls slow(2, Nanos(0));
  EXPECT_FALSE(slow.IsSlow(0, std::chrono::hours(1)));
  for (const int64_t mean_us : {100, 1000, 100}) {
    for (uint64_t i = 0; i <= SlowCalls::kWindow; ++i) {
      slow.IsSlow(1, Nanos(static_cast<int64_t>(rng.Exponential(1000.0 * static_cast<double>(mean_us)))));
    }
    slow.Update();
    const double p999 = 6.9 * 1000.0 * static_cast<double>(mean_us);  // ln 1000 times the mean
    EXPECT_GT(static_cast<double>(slow.limit(1).count()), 0.8 * p999);
    EXPECT_LT(static_cast<double>(slow.limit(1).count()), 1.4 * p999);
  }
  EXPECT_EQ(slow.limit(0), Nanos::max());
  EXPECT_TRUE(slow.IsSlow(1, std::chrono::seconds(1)));
  SlowCalls fixed(1, std::chrono::milliseconds(5));
  EXPECT_TRUE(fixed.IsSlow(0, std::chrono::milliseconds(6)));
  EXPECT_FALSE(fixed.IsSlow(0, std::chrono::milliseconds(5)));
}

}  // namespace
}  // namespace curtail::observe
