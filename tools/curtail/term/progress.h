// SPDX-License-Identifier: Apache-2.0
//
// progress.h - a live line about a running load, drawn by a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "curtail/base/clock.h"
#include "curtail/load/drive/live.h"
#include "curtail/term/console.h"

namespace curtail::tool {

// A ProgressLine draws until it is destroyed, a few times a second and only on a terminal. It reads `live`
// and touches nothing else of the run.
class ProgressLine {
 public:
  // `label` comes first; `total` is the planned length, 0 where there is none; `note` is asked for what comes last.
  // `console` and `live` outlive this, and the console is not used by others meanwhile.
  ProgressLine(Console* console, const Live* live, std::string label, Nanos total,
               std::function<std::string()> note = nullptr);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  void Draw();

  Console* const console_;
  const Live* const live_;
  const std::string label_;
  const Nanos total_;
  const std::function<std::string()> note_;

  std::mutex mu_;
  std::condition_variable changed_;
  bool done_ = false;  // guarded by mu_
  std::thread thread_;
};

}  // namespace curtail::tool
