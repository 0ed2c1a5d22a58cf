// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/services.h"

#include <atomic>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "fences.curtail.h"

namespace curtail::fences {
namespace {

// Each request takes a thread of the pool for the service time, as a computation or a disk would.
template <class Rpc>
class LeafService final : public Rpc::Service {
 public:
  explicit LeafService(Nanos service_time) : service_time_(service_time) {}

  absl::Status Work(Context&, const Request&, Reply*) override {
    const int64_t now = Now().time_since_epoch().count();
    const bool slow = now >= slow_from_.load(std::memory_order_relaxed) &&
                      now < slow_until_.load(std::memory_order_relaxed);
    std::this_thread::sleep_for(slow ? service_time_ * kSlowFactor : service_time_);
    return absl::OkStatus();
  }
  absl::Status SlowDown(Context&, const Stall& stall, Reply*) override {
    slow_from_.store(stall.from_ns(), std::memory_order_relaxed);
    slow_until_.store(stall.until_ns(), std::memory_order_relaxed);
    return absl::OkStatus();
  }

 private:
  const Nanos service_time_;
  // Atomic, relaxed: a request that begins meanwhile may see the old period.
  std::atomic<int64_t> slow_from_{0};
  std::atomic<int64_t> slow_until_{0};
};

using Next = Method<Request, Reply>;

// Where A, B and C go. Upper levels name their calls by the leaf at the end: the service that they call is the same.
struct Routes {
  explicit Routes(const NextHops& next)
      : a_channel(next.a),
        b_channel(next.b),
        a(next.upper ? Shared::kA : LeafA::kWork),
        b(next.upper ? Shared::kB : LeafB::kWork),
        c(next.upper ? Shared::kC : LeafB::kWork),
        upper(next.upper) {}

  std::vector<DeclaredPath> Paths() const {
    const auto calls = [this](std::string_view leaf) {
      std::vector<PathCall> names = {leaf};
      if (upper) names.emplace_back(Shared::kServiceName);
      return names;
    };
    return {{"A", calls(LeafA::kServiceName)},
            {"B", calls(LeafB::kServiceName)},
            {"C", calls(LeafB::kServiceName)},
            {"Local", {}}};
  }

  Channel* a_channel;
  Channel* b_channel;
  Next a, b, c;
  bool upper;
};

class SharedService final : public Shared::Service {
 public:
  explicit SharedService(const NextHops& next) : routes_(next) {}
  absl::Status A(Context& ctx, const Request& in, Reply* out) override {
    return routes_.a_channel->Call(ctx, routes_.a.path, in, out);
  }
  absl::Status B(Context& ctx, const Request& in, Reply* out) override {
    return routes_.b_channel->Call(ctx, routes_.b.path, in, out);
  }
  absl::Status C(Context& ctx, const Request& in, Reply* out) override {
    return routes_.b_channel->Call(ctx, routes_.c.path, in, out);
  }
  absl::Status Local(Context&, const Request&, Reply*) override { return absl::OkStatus(); }
  std::vector<DeclaredPath> Paths() const override { return routes_.Paths(); }

 private:
  const Routes routes_;
};

class SharedContinuations final : public Shared::ContinuationService {
 public:
  using Answer = TypedResponder<Reply>;
  explicit SharedContinuations(const NextHops& next) : routes_(next) {}
  void ProcessA(Context& ctx, const Request& in, Answer answer) override {
    Pass(ctx, &routes_.a_channel, routes_.a, in, std::move(answer));
  }
  void ProcessB(Context& ctx, const Request& in, Answer answer) override {
    Pass(ctx, &routes_.b_channel, routes_.b, in, std::move(answer));
  }
  void ProcessC(Context& ctx, const Request& in, Answer answer) override {
    Pass(ctx, &routes_.b_channel, routes_.c, in, std::move(answer));
  }
  void ProcessLocal(Context&, const Request&, Answer answer) override { answer.Finish(Reply()); }
  std::vector<DeclaredPath> Paths() const override { return routes_.Paths(); }

 private:
  static void Pass(Context& ctx, Channel* const* channel, const Next& method, const Request& in,
                   Answer answer) {
    InvokeLeafAsync(ctx, std::span<Channel* const>(channel, 1), method, in, std::move(answer),
                    [](Answer to, Replies<Reply> replies) {
                      if (!replies[0].ok()) return to.Fail(replies[0].status());
                      to.Finish(*replies[0]);
                    });
  }

  const Routes routes_;
};

}  // namespace

std::unique_ptr<Service> MakeLeaf(bool b, Nanos service_time) {
  if (b) return std::make_unique<LeafService<LeafB>>(service_time);
  return std::make_unique<LeafService<LeafA>>(service_time);
}

std::vector<std::unique_ptr<Service>> MakeShared(const NextHops& next) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<SharedService>(next));
  services.push_back(std::make_unique<SharedContinuations>(next));
  return services;
}

}  // namespace curtail::fences
