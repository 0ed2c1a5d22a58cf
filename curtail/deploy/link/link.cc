// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/link/link.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace curtail::deploy {
namespace {

constexpr absl::Duration kMostDelay = absl::Seconds(60);

bool ReadTime(std::string_view text, Nanos* time) {
  absl::Duration read;
  if (!absl::ParseDuration(std::string(text), &read) || read < absl::ZeroDuration() || read > kMostDelay)
    return false;
  *time = absl::ToChronoNanoseconds(read);
  return true;
}

// A number with one of the units, which multiply it.
bool ReadNumber(std::string_view text, std::initializer_list<std::pair<std::string_view, double>> units,
                double* out) {
  for (const auto& [unit, factor] : units) {
    double number = 0;
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    if (!absl::SimpleAtod(std::string(text), &number) || !(number >= 0) || number * factor > 1e12)
      return false;
    *out = number * factor;
    return true;
  }
  return false;
}

bool ReadPart(std::string_view key, std::string_view value, LinkShape* shape) {
  if (key == "delay") return ReadTime(value, &shape->delay);
  if (key == "jitter") return ReadTime(value, &shape->jitter);
  if (key == "loss") return ReadNumber(value, {{"%", 0.01}}, &shape->loss) && shape->loss < 1;
  if (key != "rate") return false;
  return ReadNumber(value, {{"kbit", 1e3 / 8}, {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8}}, &shape->bytes_per_s) &&
         shape->bytes_per_s > 0;
}

}  // namespace

absl::StatusOr<LinkShape> ParseLink(std::string_view text) {
  LinkShape shape;
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  for (const std::string& part : parts) {
    const std::vector<std::string> words = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (words.size() == 2 && ReadPart(words[0], words[1], &shape)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "link: '", part, "' is not a part of one; write delay=20ms, jitter=5ms, loss=0.1% or rate=10mbit"));
  }
  if (shape.jitter > shape.delay)
    return absl::InvalidArgumentError("link: the jitter is longer than the delay");
  return shape;
}

void LinkQueue::Put(TimePoint now, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view packet = bytes.substr(0, kPacketBytes);
    bytes.remove_prefix(packet.size());
    free_ = std::max(free_, now);
    if (shape_.bytes_per_s > 0)
      free_ += Nanos(static_cast<int64_t>(1e9 * static_cast<double>(packet.size()) / shape_.bytes_per_s));
    TimePoint leaves = free_ + shape_.delay;
    if (shape_.jitter > Nanos::zero())
      leaves += Nanos(
          static_cast<int64_t>((2 * rng_.Uniform01() - 1) * static_cast<double>(shape_.jitter.count())));
    if (shape_.loss > 0 && rng_.Uniform01() < shape_.loss) leaves += std::max(kResend, 2 * shape_.delay);
    last_ = std::max(last_, leaves);  // it is a stream
    if (!parts_.empty() && parts_.back().leaves == last_) {
      parts_.back().bytes += packet;
    } else {
      parts_.push_back({last_, std::string(packet)});
    }
    size_ += packet.size();
  }
}

std::string_view LinkQueue::Ready(TimePoint now) const {
  if (next() > now) return {};
  return std::string_view(parts_.front().bytes).substr(taken_);
}

void LinkQueue::Take(size_t bytes) {
  size_ -= bytes;
  taken_ += bytes;
  if (taken_ < parts_.front().bytes.size()) return;
  parts_.pop_front();
  taken_ = 0;
}

}  // namespace curtail::deploy
