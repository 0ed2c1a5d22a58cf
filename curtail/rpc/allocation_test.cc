// SPDX-License-Identifier: Apache-2.0
//
// That requests in a steady stream allocate nothing: a client, a mid-tier and
// its four leaves run in this process, whose malloc is counted. Property: after
// some warm-up there is a round of kRequests requests in which no thread
// allocates. The rounds before may allocate, for queues and pools that grow to
// the size they need; a regression that allocates for each request, or for one
// in hundreds, leaves no round clean.
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "curtail/adapt/profile_testing.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/server.h"
#include "google/protobuf/wrappers.pb.h"

namespace curtail {
namespace {

// The first allocations of a round, and where they came from.
class Offenders {
 public:
  void Start() {
    void* warm_up[1];
    backtrace(warm_up, 1);  // loads what it needs
    count_ = 0;
    on_ = true;
  }
  // The allocations since Start().
  size_t Stop() {
    on_ = false;
    return count_;
  }
  void Note() {
    if (!on_.load(std::memory_order_relaxed) || inside_) return;
    inside_ = true;
    const size_t i = count_.fetch_add(1);
    if (i < kKept) places_[i].depth = backtrace(places_[i].frames, kDepth);
    inside_ = false;
  }
  void Print() const {
    for (size_t i = 0; i < std::min<size_t>(count_, kKept); ++i) {
      std::fprintf(stderr, "allocation %zu:\n", i + 1);
      backtrace_symbols_fd(places_[i].frames, places_[i].depth, 2);
    }
  }

 private:
  static constexpr size_t kKept = 6;
  static constexpr int kDepth = 24;
  struct Place {
    void* frames[kDepth] = {};
    int depth = 0;
  };
  std::atomic<bool> on_{false};
  std::atomic<size_t> count_{0};
  Place places_[kKept] = {};
  static inline thread_local bool inside_ = false;
};

constinit Offenders offenders;

}  // namespace
}  // namespace curtail

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  curtail::offenders.Note();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  curtail::offenders.Note();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  curtail::offenders.Note();
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  curtail::offenders.Note();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block == nullptr ? 12 : 0;  // ENOMEM
}
}  // extern "C"

namespace curtail {
namespace {

using google::protobuf::StringValue;
using std::chrono::seconds;

constexpr Nanos kTimeout = seconds(20);
const int kRequests = Repeats(300, 1000);
constexpr size_t kLeaves = 4;
constexpr int kOpenAtOnce = 8;
constexpr Method<StringValue, StringValue> kNull{"/test.Leaf/Null"};
constexpr Method<StringValue, StringValue> kQuery{"/test.Mid/Query"};

class LeafService final : public Service {
 public:
  std::string_view FullName() const override { return "test.Leaf"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Null",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [](Context&, const StringValue& in, StringValue* out) {
                   out->set_value(in.value());
                   return absl::OkStatus();
                 })}};
  }
};

// Asks all leaves, and answers what the last one says: in a coroutine, or straight on in the models that can.
class MidService final : public Service {
 public:
  MidService(std::vector<Channel*> leaves, bool coroutine)
      : leaves_(std::move(leaves)), coroutine_(coroutine) {}
  std::string_view FullName() const override { return "test.Mid"; }
  std::vector<MethodHandler> Handlers() override {
    MethodHandler query = internal::CoroutineMethod<StringValue, StringValue>(
        "Query",
        [this](Context& ctx, const StringValue& in, StringValue* out) { return Query(ctx, in, out); });
    if (!coroutine_) {
      query.handler = internal::UnaryHandler<StringValue, StringValue>(
          [this](Context& ctx, const StringValue& in, StringValue* out) {
            return Merge(ctx.Broadcast(leaves(), kNull, in), out);
          });
    }
    return {std::move(query)};
  }

 private:
  Coroutine Query(Context& ctx, const StringValue& in, StringValue* out) {
    co_return Merge(co_await broadcast(ctx, leaves(), kNull, in), out);
  }
  static absl::Status Merge(Replies<StringValue> replies, StringValue* out) {
    for (const auto& reply : replies) {
      if (!reply.ok()) return reply.status();
      out->set_value(reply->value());
    }
    return absl::OkStatus();
  }
  std::span<Channel* const> leaves() const { return leaves_; }

  const std::vector<Channel*> leaves_;
  const bool coroutine_;
};

// A profile by which `mutune` has a choice at each load.
std::string WriteProfile() {
  Profile profile = MakeProfile({100, 1000, 10'000, 100'000}, {{"FIB1", 50'000, [](double) { return 100; }},
                                                               {"SDB1-4", 1e18, [](double) { return 500; }}});
  profile.service = "test.Mid";
  std::string path = Join(testing::TempDir(), "allocation-", getpid());
  std::ofstream(path) << ProfileJson(profile).value();
  return path;
}

// `how` is a config, or a policy that begins with FIB1, or "fence", which is SDB1-4 with fences.
std::unique_ptr<Server> Serve(std::string_view how, std::unique_ptr<Service> service) {
  ServerOptions options;
  const bool policy = how == "mutune" || how == "online";
  const bool fence = how == "fence";
  const bool trace = how == "trace";
  options.config = *Config::Parse(policy ? "FIB1" : fence || trace ? "SDB1-4" : how);
  if (trace) options.trace = {.to = "memory", .sample = 1};
  if (fence) options.fence.mode = FenceMode::kOn;
  options.max_threads = 8;
  if (policy) options.policy = how;
  options.any_machine = true;
  if (how == "mutune") options.profile = WriteProfile();
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  const std::string profile = options.profile;
  auto server = Server::Start(std::move(options), std::move(services));
  if (!profile.empty()) unlink(profile.c_str());
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

// How the mid-tier waits, and if its handler is a coroutine.
class AllocationTest : public testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  AllocationTest() {
    const auto [how, coroutine] = GetParam();
    request_.set_value(std::string(62, 'x'));
    std::vector<Channel*> leaves;
    for (size_t i = 0; i < kLeaves; ++i) {
      leaves_.push_back(Serve("SIB1", std::make_unique<LeafService>()));
      channels_.push_back(std::make_unique<Channel>(&client_, leaves_[i]->addresses()[0]));
      leaves.push_back(channels_[i].get());
    }
    mid_ = Serve(how, std::make_unique<MidService>(std::move(leaves), coroutine));
    channel_ = std::make_unique<Channel>(&front_, mid_->addresses()[0]);
  }

  // Runs rounds until one allocates nothing; fails the test if none does in kMaxTestWait. `round` makes kRequests requests and
  // returns how many succeeded. Early rounds allocate, and those in which `online` tries a config for the first time.
  template <class Round>
  void ExpectACleanRound(Round round) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    size_t allocations = 0;
    do {
      offenders.Start();
      const int succeeded = round();
      allocations = offenders.Stop();
      ASSERT_EQ(succeeded, kRequests);
      if (allocations == 0) return;
    } while (!deadline.Expired());
    offenders.Print();
    ADD_FAILURE() << allocations << " allocations in the last round of " << kRequests << " requests";
  }

  StringValue request_;
  Client client_;
  std::vector<std::unique_ptr<Server>> leaves_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Server> mid_;
  Client front_;
  std::unique_ptr<Channel> channel_;
};

TEST_P(AllocationTest, BlockingCallsAllocateNothing) {
  StringValue reply;
  ExpectACleanRound([&] {
    int succeeded = 0;
    for (int i = 0; i < kRequests; ++i) {
      Context ctx(kTimeout);
      succeeded +=
          channel_->Call(ctx, kQuery.path, request_, &reply).ok() && reply.value() == request_.value();
    }
    return succeeded;
  });
}

// Keeps some calls open until all were made.
class Caller final : public Completion {
 public:
  Caller(Channel* channel, std::string request) : channel_(channel), request_(std::move(request)) {}
  int Run(Client& client) {
    left_ = kRequests;
    succeeded_ = 0;
    for (int i = 0; i < kOpenAtOnce; ++i) Start();
    while (open_ > 0) client.Poll(Deadline::In(kTimeout));
    return succeeded_;
  }

 private:
  void Start() {
    --left_;
    ++open_;
    channel_->Start(kQuery.path, Deadline::In(kTimeout), {}, request_, this);
  }
  void Done(absl::Status&& status, std::string&& reply) override {
    --open_;
    succeeded_ += status.ok() && reply == request_;
    if (left_ > 0) Start();
  }
  Channel* const channel_;
  const std::string request_;
  int left_ = 0;
  int open_ = 0;
  int succeeded_ = 0;
};

TEST_P(AllocationTest, EventDrivenCallsAllocateNothing) {
  Caller caller(channel_.get(), request_.SerializeAsString());
  ExpectACleanRound([&] { return caller.Run(front_); });
}

std::string NameOf(const testing::TestParamInfo<std::tuple<const char*, bool>>& info) {
  const auto [how, coroutine] = info.param;
  const std::string name = how;
  return (name == "mutune" || name == "online" || name == "fence" ? name : name.substr(0, 3)) +
         (coroutine ? "Coroutine" : "");
}
INSTANTIATE_TEST_SUITE_P(StraightLine, AllocationTest,
                         testing::Combine(testing::Values("SIB1", "SIP1", "SDB1-4", "FIB1", "auto", "FIP1",
                                                          "FDB1-4", "mutune", "online", "fence", "trace"),
                                          testing::Values(false)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Coroutine, AllocationTest,
                         testing::Combine(testing::Values("SIB1", "SIP1", "SDB1-4", "FIB1", "auto", "FIP1",
                                                          "FDB1-4", "ADB1-2-2", "mutune", "online", "fence",
                                                          "trace"),
                                          testing::Values(true)),
                         NameOf);

// That the test above can fail.
TEST(AllocationCounter, SeesNewAndMalloc) {
  offenders.Start();
  void* volatile block = std::malloc(64);
  auto* volatile object = new std::string(100, 'x');
  const size_t allocations = offenders.Stop();
  std::free(block);
  delete object;
  EXPECT_EQ(allocations, 3u);
}

}  // namespace
}  // namespace curtail
