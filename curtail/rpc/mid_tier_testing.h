// SPDX-License-Identifier: Apache-2.0
//
// mid_tier_testing.h - a mid-tier whose one handler the test provides, before a leaf whose replies
// the test can hold back; what tests of coroutine and continuation handlers share.
#pragma once

#include <gmock/gmock.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "curtail/rpc/continuation.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {

inline constexpr Method<StringValue, StringValue> kRun{"/test.Mid/Run"};

// The events, in order.
class EventLog {
 public:
  void Add(std::string what) {
    std::lock_guard lock(mu_);
    entries_.push_back(std::move(what));
    cv_.notify_all();
  }
  // The entries when there are n, or after the longest wait.
  std::vector<std::string> Await(size_t n) {
    std::unique_lock lock(mu_);
    cv_.wait_for(lock, kMaxTestWait, [&] { return entries_.size() >= n; });
    return entries_;
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  std::vector<std::string> entries_;
};

// Calls a function when the last owner lets go.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> f) : f_(std::move(f)) {}
  AtEnd(AtEnd&& other) noexcept : f_(std::exchange(other.f_, nullptr)) {}
  AtEnd& operator=(AtEnd&&) = delete;
  ~AtEnd() {
    if (f_) f_();
  }

 private:
  std::function<void()> f_;
};

class OneMethod final : public Service {
 public:
  explicit OneMethod(MethodHandler method) : method_(std::move(method)) {}
  std::string_view FullName() const override { return "test.Mid"; }
  std::vector<MethodHandler> Handlers() override { return {method_}; }

 private:
  const MethodHandler method_;
};

using Results = std::vector<absl::StatusOr<StringValue>>;
using TextResponder = TypedResponder<StringValue>;

// "a;b;" when all leaves answered, else the first error.
inline absl::StatusOr<std::string> Joined(const Results& results) {
  std::string joined;
  for (const auto& result : results) {
    if (!result.ok()) return result.status();
    joined += result->value() + ";";
  }
  return joined;
}

inline std::string Codes(const Results& results) {
  std::string codes;
  for (const auto& result : results) codes += absl::StatusCodeToString(result.status().code()) + ";";
  return codes;
}

// A mid-tier, and a leaf on which it has two channels.
class MidTier : public RpcBase, public testing::TestWithParam<const char*> {
 protected:
  // A test that failed half way holds nothing back.
  ~MidTier() override { gate_.Open(); }
  void TearDown() override {
    gate_.Open();
    ExpectNothingInUse(mid_.get());
    ExpectNothingInUse(leaf_.get());
  }

  // Serves with `body(ctx, in, out)` -> Coroutine.
  template <class Body>
  void ServeCoroutine(Body body) {
    Serve(internal::CoroutineMethod<StringValue, StringValue>("Run", std::move(body)));
  }
  // Serves with `body(ctx, in, responder)`, and calls `returned` when it has returned or thrown.
  template <class Body>
  void ServeContinuation(Body body, std::function<void()> returned = nullptr) {
    MethodHandler method = internal::ContinuationMethod<StringValue, StringValue>("Run", std::move(body));
    method.continuation = [inner = std::move(method.continuation), returned = std::move(returned)](
                              Context& ctx, std::string_view request, Responder responder) {
      const AtEnd end(returned);
      inner(ctx, request, std::move(responder));
    };
    Serve(std::move(method));
  }
  absl::StatusOr<std::unique_ptr<Server>> TryServe(const std::string& config, MethodHandler method) {
    ServerOptions options;
    options.config = *Config::Parse(config);
    options.observers = observers_;
    options.interceptors = interceptors_;
    options.max_queue = max_queue_;
    options.forward_metadata = forward_metadata_;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<OneMethod>(std::move(method)));
    return Server::Start(std::move(options), std::move(services));
  }
  void Serve(MethodHandler method) {
    auto server = TryServe(GetParam(), std::move(method));
    ASSERT_TRUE(server.ok()) << server.status();
    mid_ = *std::move(server);
    channel_ = std::make_unique<Channel>(&front_, mid_->addresses()[0], channel_options_);
  }
  absl::Status Run(const std::string& text, std::string* answer = nullptr, Nanos timeout = kMaxTestWait) {
    return Call(*channel_, kRun, text, answer, timeout);
  }
  // That the mid-tier still answers, and stops without leaving anything behind.
  void ExpectHealthy() {
    gate_.Open();
    std::string answer;
    const absl::Status status = Run("x", &answer);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(answer, "x;x;");
    const absl::Status drained = mid_->Drain(Deadline::In(seconds(5)));
    EXPECT_TRUE(drained.ok()) << drained;
  }
  std::vector<StringValue> ToBoth(const StringValue& in) { return std::vector(leaves_.size(), in); }
  // Of the leaf; Hang is held at the gate until it opens.
  static const Method<StringValue, StringValue>& LeafMethod(const StringValue& in) {
    return in.value() == "hang" || in.value() == "late" ? kHang : kEcho;
  }

  Client client_;
  // Enough threads for what tests hold at the gate.
  const std::unique_ptr<Server> leaf_ = StartServer("SDB1-4");
  Channel leaf_channel_{&client_, leaf_->addresses()[0]};
  const std::vector<Channel*> leaves_{&leaf_channel_, &leaf_channel_};
  EventLog log_;
  // Of the mid-tier.
  std::vector<CallObserver*> observers_;
  std::vector<ServerInterceptor*> interceptors_;
  size_t max_queue_ = ServerOptions().max_queue;
  ChannelOptions channel_options_;  // of the channel to it
  std::unique_ptr<Server> mid_;     // stops before what its handlers use
  Client front_;
  std::unique_ptr<Channel> channel_;
};

inline std::string ModelName(const testing::TestParamInfo<const char*>& info) {
  return std::string(info.param).substr(0, 3);
}

}  // namespace curtail
