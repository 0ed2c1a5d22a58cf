// SPDX-License-Identifier: Apache-2.0
//
// fence_services_testing.h - a service that holds its replies, and one that calls it or another.
#pragma once

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
      if (!open_) return held_.push_back(std::move(responder));
    }
    responder.Finish(Text("held"));
  }
  void Open() {
    std::vector<TypedResponder<StringValue>> held;
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

 private:
  std::mutex mu_;
  bool open_ = false;
  size_t calls_ = 0;
  std::vector<TypedResponder<StringValue>> held_;
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
    return {To("Slow", slow_, kHold), To("Quick", quick_, kEcho), To("Sneaky", quick_, kEcho),
            To("Learned", quick_, kEcho), std::move(early)};
  }
  std::vector<DeclaredPath> Paths() const override {
    return {{"Slow", {"test.Hold"}}, {"Quick", {"test.Echo"}}, {"Sneaky", {}}, {"Early", {"test.Echo"}}};
  }

 private:
  static MethodHandler To(std::string name, Channel* channel,
                          const Method<StringValue, StringValue>& method) {
    return internal::CoroutineMethod<StringValue, StringValue>(
        std::move(name),
        [one = std::vector<Channel*>(1, channel), &method](Context& ctx, const StringValue& in,
                                                           StringValue* out) -> Coroutine {
          const std::vector<StringValue> requests(1, in);
          const auto replies = co_await fan_out(ctx, std::span<Channel* const>(one), method, requests);
          if (!replies[0].ok()) co_return replies[0].status();
          *out = *replies[0];
          co_return absl::OkStatus();
        });
  }

  Channel* const slow_;
  Channel* const quick_;
  Gate* const gate_;
};

}  // namespace curtail
