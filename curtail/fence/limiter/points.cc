// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/limiter/points.h"

namespace curtail {
namespace {

constexpr uint64_t kAnswers = 10;
constexpr double kTurns = 2;

}  // namespace

std::optional<PointMaker::Whole> PointMaker::Add(const LoadBin& bin) {
  if (bin.length > 2 * kLoadBin) {
    *this = {};
    return std::nullopt;
  }
  seconds_ += InSeconds(bin.length);
  area_ += bin.concurrency * InSeconds(bin.length);
  completed_ += bin.completed;
  limited_ |= bin.limited;
  const auto completed = static_cast<double>(completed_);
  const double concurrency = area_ / seconds_;
  if (completed_ < kAnswers || completed < kTurns * concurrency) return std::nullopt;
  const Whole whole{{concurrency, completed / seconds_}, seconds_, limited_};
  *this = {};
  return whole;
}

}  // namespace curtail
