// SPDX-License-Identifier: Apache-2.0
//
// task_testing.h - a function as a Task.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "curtail/exec/task.h"

namespace curtail {

class FunctionTask final : public Task {
 public:
  explicit FunctionTask(std::function<void()> f) : f_(std::move(f)) {}
  void Run(const WaitHint&) override { f_(); }
  std::string_view name() const override { return "/test.Deep/Recurse"; }

 private:
  const std::function<void()> f_;
};

}  // namespace curtail
