// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/relay_command.h"

#include <poll.h>

#include <memory>

#include "absl/status/statusor.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/link/relay.h"
#include "curtail/term/exit_code.h"

namespace curtail::tool {
namespace {

constexpr int kStopLookMs = 100;  // a signal may come just before poll()

}  // namespace

int RunRelay(const RelayFlags& flags, Console& console, const std::atomic<bool>& stop) {
  const auto fail = [&](const absl::Status& status) {
    console.Error(std::string(Message(status)), "see curtail relay --help");
    return kBadConfig;
  };
  absl::StatusOr<deploy::LinkShape> shape = deploy::LinkShape();
  if (!flags.link.empty()) shape = deploy::ParseLink(flags.link);
  if (!shape.ok()) return fail(shape.status());
  const auto relay =
      deploy::Relay::Start({.listen = flags.listen, .to = flags.to, .shape = *shape, .seed = flags.seed});
  if (!relay.ok()) return fail(relay.status());
  console.Print(Join("ready ", (*relay)->address(), "\n"));
  fflush(stdout);
  while (!stop.load(std::memory_order_relaxed))
    poll(nullptr, 0, kStopLookMs);  // a signal ends it, mostly at once
  return kOk;
}

}  // namespace curtail::tool
