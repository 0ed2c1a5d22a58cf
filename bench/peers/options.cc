// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <type_traits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "stack.h"

namespace curtail::bench {
namespace {

constexpr LoadLimits kLoadLimits{.closed = 1024, .open = 1'000'000};

constexpr char kAbout[] =
    R"(peers - the same null fan-out on curtail and on what one would take instead, measured side by side

A load generator calls a mid-tier, which calls four leaves at once and answers with the last reply: unary
calls, 64 bytes each way, six processes, loopback TCP. The stacks take turns, round after round, so that what
disturbs the machine disturbs all of them; printed are medians over the rounds, with the smallest and largest.
A stack that was not built is named with the reason.)";

constexpr char kFooter[] =
    R"(Stacks: raw-threads, raw-epoll, curtail-CONFIG, grpc-sync, grpc-callback, grpc-cq-inline, grpc-cq-dispatch,
grpc-go, grpc-java, tonic-multi, tonic-current, volo-multi, volo-current, thrift-async, thrift-fiber, capnp.
curtail-CONFIG+POLICY has a policy watch the mid-tier, with a made-up profile by which that config is always the
best: what the watching costs. In place of POLICY, trace=SHARE records that share of requests in memory, metrics
writes metrics, and fence=LIMIT has fences that are on, whose limits are fixed, or follow sct, aimd, vegas or
gradient2.
Loads: closed-N keeps N requests in flight; open-QPS sends at random intervals whatever the answers do, and
latency counts from the moment a request was due.

Examples:
  peers --quick
  peers --stacks raw-epoll,curtail-SIP1,grpc-callback --cells closed-1 --rounds 9
  peers --stacks curtail-SIB1,tonic-current --cells closed-16 --vary payload=0,64,4096,65536,1048576
  peers --instructions --rounds 5 --stacks curtail-SDB1-16,curtail-SDB1-16+mutune,curtail-SDB1-16+online
  peers --json peers.json --markdown peers.md

Exit codes: 0 ok, 1 something could not be measured or written, 104 bad flags, 105 interrupted (what was measured
is reported).)";

// One number of the setup, by the flag's name without its dashes.
absl::Status SetSetup(absl::string_view name, absl::string_view text, Setup* setup) {
  const auto read = [&](auto* field, uint32_t least, uint32_t most) {
    uint32_t value = 0;
    if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is a number from ", least, " to ", most, ", not \"", text, "\""));
    }
    *field = static_cast<std::remove_pointer_t<decltype(field)>>(value);
    return absl::OkStatus();
  };
  if (name == "fanout") return read(&setup->leaves, 1, kMaxLeaves);
  if (name == "payload") return read(&setup->payload, 0, kMaxPayloadBytes);
  if (name == "connections") return read(&setup->connections, 1, kMaxConnections);
  if (name == "idle") return read(&setup->idle, 0, kMaxConnections);
  return absl::InvalidArgumentError(
      absl::StrCat("--vary takes fanout=LIST, payload=LIST, connections=LIST or idle=LIST, not ", name));
}

void AddSetupFlags(CLI::App& app, Setup* setup) {
  app.add_option_function<std::string>(
         "--work", [setup](const std::string& work) { setup->leaves = work == "echo" ? 1 : Setup().leaves; },
         "fanout: four leaves; echo: one [fanout]")
      ->check(CLI::IsMember({"fanout", "echo"}));
  const auto add = [&](const std::string& name, const char* text) {
    app.add_option_function<std::string>(
        "--" + name,
        [setup, name](const std::string& value) {
          if (absl::Status set = SetSetup(name, value, setup); !set.ok())
            throw CLI::ValidationError("--" + name, std::string(set.message()));
        },
        text);
  };
  add("fanout", "Leaves, 1 to 64 [4]");
  add("payload", "Bytes each way and on every hop, 0 to 1048576 [64]");
  add("connections",
      "Of the generator, used in turn; raw-threads and Thrift have one request at a time on each, so no more "
      "than this "
      "in flight [one, and for those as many as the largest closed loop]");
  add("idle", "Connections to the mid-tier besides, on which nothing happens [0]");
}

// The setups that --vary asks for, or the one that is.
absl::Status MakeSetups(Options* options) {
  for (const Load& cell : options->cells) {
    if (!cell.open()) options->setup.outstanding = std::max(options->setup.outstanding, cell.number);
  }
  options->setups = {options->setup};
  if (options->vary.empty()) return absl::OkStatus();
  options->setups.clear();
  const std::pair<std::string, std::string> parts = absl::StrSplit(options->vary, absl::MaxSplits('=', 1));
  for (absl::string_view value : absl::StrSplit(parts.second, ',')) {
    Setup setup = options->setup;
    setup.label = absl::StrCat(parts.first, "=", value);
    if (absl::Status set = SetSetup(parts.first, value, &setup); !set.ok()) return set;
    options->setups.push_back(std::move(setup));
  }
  return absl::OkStatus();
}

void AddFlags(CLI::App& app, Options* o, std::vector<std::string>* cells) {
  app.add_option("--stacks", o->stacks, "Which, in this order")->delimiter(',')->capture_default_str();
  app.add_option("--cells", *cells, "Loads")->delimiter(',')->capture_default_str();
  AddSetupFlags(app, &o->setup);
  app.add_option(
      "--vary", o->vary,
      "NAME=LIST: compare values of fanout, payload, connections or idle: --vary fanout=1,4,16,64");
  app.add_option("--seconds", o->seconds, "A cell; twice that below 100 requests a second")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  app.add_option("--leaf-config", o->leaf_config, "Threading model of curtail's leaves")
      ->capture_default_str();
  app.add_flag("--instructions", o->instructions,
               "No times: user-level instructions of the mid-tier for each request, by valgrind's callgrind; "
               "one round "
               "by default");
  app.add_flag("--check", o->check, "First: does every mid-tier wait for each of its leaves?");
  app.add_option("--markdown-short", o->markdown_short, "Write three numbers a stack here");
  AddCommonFlags(
      app, o,
      {.quick = "--check, 1 round of closed-1 and closed-16, 0.2 s each: that it works, not how fast",
       .seed = "Of the random intervals"});
  // How the program starts its servers; not for users.
  app.add_option("--role", o->role)->check(CLI::IsMember({"leaf", "mid"}))->group("");
  app.add_option("--stack", o->stack)->group("");
  app.add_option("--leaf", o->leaves)->group("");
}

absl::Status Check(const CLI::App& app, std::vector<std::string> cells, Options* options) {
  if (options->quick) {
    options->check = true;
    if (app.count("--rounds") == 0) options->rounds = 1;
    if (app.count("--seconds") == 0) options->seconds = 0.2;
    if (app.count("--cells") == 0) cells = {"closed-1", "closed-16"};
  }
  if (options->instructions && app.count("--rounds") == 0) options->rounds = 1;
  for (const std::string& stack : options->stacks) {
    if (absl::StatusOr<StackInfo> info = DescribeStack(stack); !info.ok()) return info.status();
  }
  absl::StatusOr<std::vector<Load>> loads = ParseLoads(cells, kLoadLimits);
  if (!loads.ok()) return loads.status();
  options->cells = *std::move(loads);
  if (options->role == "mid" && options->leaves.empty())
    return absl::InvalidArgumentError("--role mid needs --leaf");
  return MakeSetups(options);
}

}  // namespace

double CellSeconds(const Options& options, const Load& cell) {
  return cell.open() && cell.number < 100 ? 2 * options.seconds : options.seconds;
}

std::optional<int> ParseOptions(int argc, char** argv, Options* options) {
  options->stacks = DefaultStacks();
  std::vector<std::string> cells = {"closed-1",  "open-50",   "open-500", "open-2000",
                                    "open-5000", "closed-16", "closed-64"};
  CLI::App app(kAbout, "peers");
  app.footer(kFooter);
  AddFlags(app, options, &cells);
  if (std::optional<int> code = ParseFlags(app, argc, argv, options)) return code;
  if (absl::Status checked = Check(app, std::move(cells), options); !checked.ok())
    return Fail("peers", checked);
  return std::nullopt;
}

}  // namespace curtail::bench
