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
#include "curtail/base/internal/closest.h"

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

// Returns why the part is wrong; empty if it is right.
std::string ReadPart(const std::string& part, LinkShape* shape) {
  const std::vector<std::string> words = absl::StrSplit(part, absl::MaxSplits('=', 1));
  const std::string& key = words.front();
  const std::string value = words.size() == 2 ? words[1] : "";
  double number = 0;
  if (key == "delay" || key == "jitter") {
    if (absl::SimpleAtod(value, &number) && number != 0)
      return absl::StrCat(part, " has no unit; write ", value, "ms");
    if (ReadTime(value, key == "delay" ? &shape->delay : &shape->jitter)) return "";
    return absl::StrCat(key, " must be from 0 to 60s, as in ", key, "=20ms, not '", value, "'");
  }
  if (key == "loss") {
    if (absl::SimpleAtod(value, &number)) return absl::StrCat(part, " has no unit; write ", value, "%");
    if (!ReadNumber(value, {{"%", 0.01}}, &shape->loss))
      return absl::StrCat("loss must be a percentage, as in loss=0.1%, not '", value, "'");
    return shape->loss < 1 ? "" : "loss must be below 100%";
  }
  if (key == "rate") {
    if (absl::SimpleAtod(value, &number)) return absl::StrCat(part, " has no unit; write ", value, "mbit");
    const bool read =
        ReadNumber(value, {{"kbit", 1e3 / 8}, {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8}}, &shape->bytes_per_s);
    return read && shape->bytes_per_s > 0
               ? ""
               : absl::StrCat("rate must be above 0, as in rate=10mbit, not '", value, "'");
  }
  return absl::StrCat("there is no '", key, "'",
                      curtail::internal::NamesHint(key, {"delay", "jitter", "loss", "rate"}),
                      "; write delay=20ms,jitter=5ms,loss=0.1%,rate=10mbit");
}

}  // namespace

absl::StatusOr<LinkShape> ParseLink(std::string_view text) {
  LinkShape shape;
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  for (const std::string& part : parts) {
    if (const std::string wrong = ReadPart(part, &shape); !wrong.empty())
      return absl::InvalidArgumentError(wrong);
  }
  if (shape.jitter > shape.delay) return absl::InvalidArgumentError("the jitter is longer than the delay");
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
