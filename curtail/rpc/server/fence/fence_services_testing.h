// SPDX-License-Identifier: Apache-2.0
//
// fence_services_testing.h - a service that holds its replies, and one that calls it or another.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "curtail/rpc/continuation.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {

inline constexpr Method<StringValue, StringValue> kHold{"/test.Hold/Hold"};
inline constexpr Method<StringValue, StringValue> kSlow{"/test.Mid/Slow"};
// Makes kWideCalls at once of the same service as Slow.
inline constexpr Method<StringValue, StringValue> kWide{"/test.Mid/Wide"};
inline constexpr size_t kWideCalls = 3;
inline constexpr Method<StringValue, StringValue> kQuick{"/test.Mid/Quick"};
inline constexpr Method<StringValue, StringValue> kSneaky{"/test.Mid/Sneaky"};
inline constexpr Method<StringValue, StringValue> kLearned{"/test.Mid/Learned"};
inline constexpr Method<StringValue, StringValue> kEarly{"/test.Mid/Early"};

// Holds the answers until it is opened; counts the calls.
class Holder {
 public:
  void Answer(TypedResponder<StringValue> responder) {
    {
      std::lock_guard lock(mu_);
      ++calls_;
      if (!open_) {
        held_.push_back(std::move(responder));
        most_held_ = std::max(most_held_, held_.size());
        return;
      }
    }
    responder.Finish(Text("held"));
  }
  // Answers the call that it holds longest; false if it holds none.
  bool AnswerOne() {
    std::vector<TypedResponder<StringValue>> first;
    {
      std::lock_guard lock(mu_);
      if (held_.empty()) return false;
      first.push_back(std::move(held_.front()));
      held_.pop_front();
    }
    first[0].Finish(Text("held"));
    return true;
  }
  void Open() {
    std::deque<TypedResponder<StringValue>> held;
    {
      std::lock_guard lock(mu_);
      open_ = true;
      held.swap(held_);
    }
    for (auto& responder : held) responder.Finish(Text("held"));
  }
  size_t calls() {
    std::lock_guard lock(mu_);
    return calls_;
  }
  // The most calls that it held at a time.
  size_t most_held() {
    std::lock_guard lock(mu_);
    return most_held_;
  }

 private:
  std::mutex mu_;
  bool open_ = false;
  size_t calls_ = 0;
  size_t most_held_ = 0;
  std::deque<TypedResponder<StringValue>> held_;
};

class HoldService final : public Service {
 public:
  explicit HoldService(Holder* holder) : holder_(holder) {}
  std::string_view FullName() const override { return "test.Hold"; }
  std::vector<MethodHandler> Handlers() override {
    return {internal::ContinuationMethod<StringValue, StringValue>(
        "Hold", [this](Context&, const StringValue&, TypedResponder<StringValue> responder) {
          holder_->Answer(std::move(responder));
        })};
  }

 private:
  Holder* const holder_;
};

// Calls one of the two services by each method. Handlers are coroutines, which run under every model.
class FencedMid final : public Service {
 public:
  FencedMid(Channel* slow, Channel* quick, Gate* gate) : slow_(slow), quick_(quick), gate_(gate) {}
  std::string_view FullName() const override { return "test.Mid"; }
  std::vector<MethodHandler> Handlers() override {
    MethodHandler early{.name = "Early",
                        .handler = internal::UnaryHandler<StringValue, StringValue>(
                            [this](Context& ctx, const StringValue&, StringValue*) {
                              ctx.LeavePath();
                              gate_->Pass();
                              return absl::OkStatus();
                            })};
    early.continuation = [](Context&, std::string_view, Responder responder) {
      responder.Finish(absl::UnimplementedError("it blocks"));
    };
    return {To("Slow", slow_, kHold),    To("Wide", slow_, kHold, kWideCalls), To("Quick", quick_, kEcho),
            To("Sneaky", quick_, kEcho), To("Learned", quick_, kEcho),         std::move(early)};
  }
  std::vector<DeclaredPath> Paths() const override {
    return {{"Slow", {"test.Hold"}},
            {"Wide", {"test.Hold"}},
            {"Quick", {"test.Echo"}},
            {"Sneaky", {}},
            {"Early", {"test.Echo"}}};
  }

 private:
  static MethodHandler To(std::string name, Channel* channel, const Method<StringValue, StringValue>& method,
                          size_t width = 1) {
    return internal::CoroutineMethod<StringValue, StringValue>(
        std::move(name),
        [all = std::vector<Channel*>(width, channel), &method](Context& ctx, const StringValue& in,
                                                               StringValue* out) -> Coroutine {
          const std::vector<StringValue> requests(all.size(), in);
          const auto replies = co_await fan_out(ctx, std::span<Channel* const>(all), method, requests);
          for (const auto& reply : replies) {
            if (!reply.ok()) co_return reply.status();
          }
          *out = *replies[0];
          co_return absl::OkStatus();
        });
  }

  Channel* const slow_;
  Channel* const quick_;
  Gate* const gate_;
};

}  // namespace curtail
