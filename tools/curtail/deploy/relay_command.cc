// SPDX-License-Identifier: Apache-2.0
//
// `curtail relay`: a server of any kind, seen through a slower network.
#include <poll.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/internal/address_form.h"
#include "curtail/deploy/link/relay.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/validators.h"

namespace curtail::tool {
namespace {

struct RelayFlags {
  std::string listen = "127.0.0.1:0";
  std::string to;
  std::string link;  // "delay=20ms,..."
  uint64_t seed = 1;
};

constexpr int kStopLookMs = 100;  // a signal may come just before poll()

// Relays until `stop`. Returns the exit code.
int RunRelay(const RelayFlags& flags, Console& console, const std::atomic<bool>& stop) {
  const auto fail = [&](const absl::Status& status, std::string_view flag = "") {
    console.Error(Join(flag, Message(status)), "see curtail relay --help");
    return kBadConfig;
  };
  absl::StatusOr<deploy::LinkShape> shape = deploy::LinkShape();
  if (!flags.link.empty()) shape = deploy::ParseLink(flags.link);
  if (!shape.ok()) return fail(shape.status(), "--link: ");
  for (const auto& [flag, address] : {std::pair("--to: ", &flags.to), {"--listen: ", &flags.listen}}) {
    if (absl::Status form = deploy::CheckAddress(*address); !form.ok()) return fail(form, flag);
  }
  const auto relay =
      deploy::Relay::Start({.listen = flags.listen, .to = flags.to, .shape = *shape, .seed = flags.seed});
  if (!relay.ok()) return fail(relay.status());
  console.Print(Join("ready ", (*relay)->address(), "\n"));
  fflush(stdout);
  while (!stop.load(std::memory_order_relaxed))
    poll(nullptr, 0, kStopLookMs);  // a signal ends it, mostly at once
  return kOk;
}

}  // namespace

Command AddRelay(CLI::App& app) {
  const auto f = std::make_shared<RelayFlags>();
  CLI::App* command = app.add_subcommand("relay", "Show a server through a slower network");
  command->add_option("--to", f->to, "The server: HOST:PORT or unix:PATH")->required();
  command->add_option("--listen", f->listen, "Where callers connect: HOST:PORT or unix:PATH")
      ->capture_default_str();
  command->add_option(
      "--link", f->link,
      "delay=20ms,jitter=5ms,loss=0.1%,rate=10mbit, of each direction; parts may be left out");
  command->add_option("--seed", f->seed, "Of jitter and loss")->check(NotNegative())->capture_default_str();
  command->footer(
      "It carries streams: a packet that is lost comes 200 ms later, and what is behind it too.\n"
      "Example:\n"
      "  curtail relay --listen 127.0.0.1:7001 --to 127.0.0.1:7000 --link delay=20ms,rate=10mbit");
  return {command, [f](const Invocation& given) { return RunRelay(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
