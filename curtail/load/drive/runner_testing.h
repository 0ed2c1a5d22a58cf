// SPDX-License-Identifier: Apache-2.0
//
// runner_testing.h - a server in this process, and requests that it answers.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/gate_testing.h"
#include "curtail/base/strings.h"
#include "curtail/load/drive/runner.h"
#include "curtail/rpc/server.h"
#include "gtest/gtest.h"

namespace curtail {

// Answers "ok:N" to the request "N". "refuse", "away" and "late" get errors. The first request of number `stall_at`
// or more waits at `gate`: a busy machine may leave `stall_at` itself unsent.
class Echo final : public Service {
 public:
  // Counts calls, and sums the numbers in their metadata.
  Echo(int stall_at, Gate* gate, std::atomic<int>* calls, std::atomic<int>* numbers)
      : stall_at_(stall_at), gate_(gate), calls_(calls), numbers_(numbers) {}

  std::string_view FullName() const override { return "test.Echo"; }

  std::vector<MethodHandler> Handlers() override {
    MethodHandler echo, shout;
    echo.name = "Echo";
    echo.handler = [this](Context& ctx, std::string_view request, std::string* reply) {
      if (const std::optional<std::string_view> number = ctx.metadata().Find("number"))
        numbers_->fetch_add(std::stoi(std::string(*number)), std::memory_order_relaxed);
      return Run(request, reply);
    };
    shout.name = "Shout";
    shout.handler = [](Context&, std::string_view request, std::string* reply) {
      *reply = absl::StrCat("OK:", std::string(request), "!");
      return absl::OkStatus();
    };
    return {echo, shout};
  }

 private:
  absl::Status Run(std::string_view request, std::string* reply) {
    calls_->fetch_add(1, std::memory_order_relaxed);
    if (request.starts_with("refuse")) return absl::ResourceExhaustedError("try later");
    if (request.starts_with("away")) return absl::UnavailableError("a leaf is away");
    if (request.starts_with("late")) return absl::DeadlineExceededError("a leaf is late");
    if (gate_ != nullptr && ParseNumber(request).value_or(-1) >= stall_at_ && !stalled_.exchange(true) &&
        !gate_->Pass()) {
      return absl::InternalError("the gate stayed shut");
    }
    *reply = "ok:";
    reply->append(request);
    return absl::OkStatus();
  }

  const int stall_at_;
  Gate* const gate_;
  std::atomic<int>* const calls_;
  std::atomic<int>* const numbers_;
  std::atomic<bool> stalled_{false};
};

// Numbered requests; building request `open_at` opens the gate.
class Numbers : public Workload {
 public:
  explicit Numbers(uint64_t open_at = 0, Gate* gate = nullptr) : open_at_(open_at), gate_(gate) {}

  std::string_view method() const override { return "/test.Echo/Echo"; }
  std::string Request(uint64_t index) const override {
    if (gate_ != nullptr && index >= open_at_) gate_->Open();
    return std::to_string(index);
  }
  double Score(uint64_t index, std::string_view reply) const override {
    return reply == absl::StrCat("ok:", index) ? 1 : 0;
  }
  std::string_view score_name() const override { return "echoed"; }

 private:
  const uint64_t open_at_;
  Gate* const gate_;
};

class RunnerTest : public testing::Test {
 protected:
  // Serves with one thread, so that one stalled handler stalls every later request.
  std::string Serve(int stall_at = -1, Gate* gate = nullptr, ServerOptions options = {}) {
    options.config = *Config::Parse("SIB1");
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<Echo>(stall_at, gate, &calls_, &numbers_));
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    if (!server.ok()) return {};
    server_ = *std::move(server);
    return server_->addresses().front();
  }

  static RunOptions Options(std::string target) {
    RunOptions options;
    options.targets = {std::move(target)};
    options.warmup = Nanos(0);
    options.timeout = kMaxTestWait;
    return options;
  }

  static Schedule Make(double rate, Nanos length, uint64_t seed = 1) {
    return *Schedule::Poisson(rate, length, seed);
  }

  static std::vector<Nanos> DueTimes(const Schedule& schedule) {
    std::vector<Nanos> due;
    Arrivals arrivals = schedule.arrivals();
    while (const std::optional<Nanos> next = arrivals.Next()) due.push_back(*next);
    return due;
  }

  std::atomic<int> calls_{0};
  std::atomic<int> numbers_{0};
  Gate gate_;  // a handler may still be leaving it when the test ends: it outlives the server

  std::unique_ptr<Server> server_;
};

}  // namespace curtail
