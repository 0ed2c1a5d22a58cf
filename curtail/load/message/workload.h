// SPDX-License-Identifier: Apache-2.0
//
// workload.h - what a load generator sends, and how it judges the answers.
//
// An application implements one Workload; schedules, runners and reports then work for it unchanged.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "curtail/load/drive/choice.h"

namespace curtail {

// A Workload is a fixed, numbered sequence of requests to one service. Thread-compatible: const methods may
// run on many threads at once. The same index always gives the same request, so that a run can be repeated.
class Workload {
 public:
  virtual ~Workload() = default;

  // The full path, "/package.Service/Method". Lives as long as the workload.
  virtual std::string_view method() const = 0;
  // The method of request `index`, for workloads that mix several; method() then names what most of them call.
  virtual std::string_view MethodOf(uint64_t /*index*/) const { return method(); }

  // The serialized message of request `index` (0, 1, 2, ... without bound: wrap around inside). Called on the
  // sending thread ahead of the intended time; keep it to some microseconds.
  virtual std::string Request(uint64_t index) const = 0;

  // How many different requests there are before they repeat; 0 when there is no end of them.
  virtual uint64_t distinct() const { return 0; }

  // How good the serialized `reply` to request `index` is, from 0 to 1, or NaN when it cannot be judged.
  // Called on the sending thread for every OK reply after its latency was taken; keep it to some
  // microseconds.
  virtual double Score(uint64_t /*index*/, std::string_view /*reply*/) const {
    return std::numeric_limits<double>::quiet_NaN();
  }
  // What the score is called in reports ("recall@10"); empty when there is none.
  virtual std::string_view score_name() const { return {}; }
};

// A FixedWorkload sends the same bytes each time: null RPCs and calls given on the command line.
class FixedWorkload final : public Workload {
 public:
  FixedWorkload(std::string method, std::string message)
      : method_(std::move(method)), message_(std::move(message)) {}

  std::string_view method() const override { return method_; }
  std::string Request(uint64_t) const override { return message_; }

 private:
  // Immutable after construction.
  const std::string method_;
  const std::string message_;
};

// A ChosenWorkload sends another workload's requests, some more often than others.
class ChosenWorkload final : public Workload {
 public:
  // `choice` is among the distinct() requests of `workload`.
  ChosenWorkload(std::shared_ptr<const Workload> workload, ItemChoice choice)
      : workload_(std::move(workload)), choice_(std::move(choice)) {}

  std::string_view method() const override { return workload_->method(); }
  std::string_view MethodOf(uint64_t index) const override {
    return workload_->MethodOf(choice_.Index(index));
  }
  std::string Request(uint64_t index) const override { return workload_->Request(choice_.Index(index)); }
  double Score(uint64_t index, std::string_view reply) const override {
    return workload_->Score(choice_.Index(index), reply);
  }
  std::string_view score_name() const override { return workload_->score_name(); }

 private:
  // Immutable after construction.
  const std::shared_ptr<const Workload> workload_;
  const ItemChoice choice_;
};

}  // namespace curtail
