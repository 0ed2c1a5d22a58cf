// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the requests of a load generator, and its judgement of the answers.
//
// An application implements one Workload; schedules, runners and reports then work for it
// unchanged.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "curtail/load/message/choice.h"

namespace curtail {

class Journey;  // journey.h

// A Workload is a fixed, numbered sequence of requests to one service. Thread-compatible: const
// methods may run on many threads at once. The same index always gives the same request, so that a
// run can be repeated.
class Workload {
 public:
  virtual ~Workload() = default;

  // The steps of each request, where a request is a journey; else null.
  virtual const Journey* journey() const { return nullptr; }

  // The full path, "/package.Service/Method". Lives as long as the workload.
  virtual std::string_view method() const = 0;
  // The method of request `index`, for workloads that mix several; method() then names the most
  // frequent one.
  virtual std::string_view MethodOf(uint64_t /*index*/) const { return method(); }

  // The serialized message of request `index` (0, 1, 2, ... without bound: wrap around inside). The
  // sending thread calls it ahead of the intended time; keep it to some microseconds.
  virtual std::string Request(uint64_t index) const = 0;

  // The number of different requests before they repeat; 0 when they never do.
  virtual uint64_t distinct() const { return 0; }

  // The quality of the serialized `reply` to request `index`, from 0 to 1, or NaN when it cannot be
  // judged. The sending thread calls it for every OK reply after it has taken the latency; keep it
  // to some microseconds.
  virtual double Score(uint64_t /*index*/, std::string_view /*reply*/) const {
    return std::numeric_limits<double>::quiet_NaN();
  }
  // The score's name in reports ("recall@10"); empty when there is none.
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
  // `choice` chooses among the distinct() requests of `workload`.
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
