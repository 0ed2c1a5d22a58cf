// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/config_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/base/boundary.h"
#include "curtail/deploy/admin_client.h"

namespace curtail::tool {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(200);
constexpr size_t kMaxChanges = 100'000;

}  // namespace

ConfigWatch::ConfigWatch(std::string admin, const Live* live) : admin_(std::move(admin)), live_(live) {
  if (!admin_.empty()) thread_ = std::thread([this] { Ask(); });
}

ConfigWatch::~ConfigWatch() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mu_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ConfigWatch::Ask() {
  deploy::AdminClient admin(admin_);
  std::unique_lock lock(mu_);
  while (!done_) {
    lock.unlock();
    absl::StatusOr<std::string> config = absl::InternalError("an exception");
    Contain("config watch", [&] { config = admin.GetConfig(kPeriod); });
    const Nanos at(live_->elapsed_ns.load(std::memory_order_relaxed));
    lock.lock();
    error_ = config.ok() ? "" : std::string(config.status().message());
    const bool changed = config.ok() && (changes_.empty() || changes_.back().config != *config);
    if (changed && changes_.size() < kMaxChanges) changes_.push_back({at, *std::move(config)});
    changed_.wait_for(lock, kPeriod, [this] { return done_; });
  }
}

std::string ConfigWatch::Text() {
  if (admin_.empty()) return {};
  std::lock_guard lock(mu_);
  if (!error_.empty()) return absl::StrCat("config not known: ", error_);
  if (changes_.empty()) return {};
  const size_t switches = changes_.size() - 1;
  return absl::StrCat(changes_.back().config, ", ", switches, switches == 1 ? " switch" : " switches");
}

void ConfigWatch::Fill(std::vector<LoadInterval>& series) {
  std::lock_guard lock(mu_);
  for (LoadInterval& interval : series) {
    const auto later = std::upper_bound(changes_.begin(), changes_.end(), interval.end,
                                        [](Nanos at, const Change& change) { return at < change.at; });
    if (later != changes_.begin()) interval.config = std::prev(later)->config;
  }
}

}  // namespace curtail::tool
