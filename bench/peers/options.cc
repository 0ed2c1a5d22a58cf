// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <algorithm>
#include <functional>
#include <map>
#include <type_traits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "stack.h"

namespace curtail::bench {
namespace {

constexpr uint32_t kMaxOutstanding = 1024;
constexpr uint32_t kMaxRate = 1'000'000;

absl::Status Bad(absl::string_view flag, absl::string_view value, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " takes ", wanted, ", not \"", value, "\""));
}

absl::StatusOr<Cell> ParseCell(absl::string_view text) {
  absl::string_view number = text;
  const bool open = absl::ConsumePrefix(&number, "open-");
  if (!open && !absl::ConsumePrefix(&number, "closed-")) number = "";
  Cell cell{open, 0};
  const uint32_t most = open ? kMaxRate : kMaxOutstanding;
  if (!absl::SimpleAtoi(number, &cell.load) || cell.load == 0 || cell.load > most) {
    return Bad("--cells", text, "closed-1 to closed-1024 and open-QPS, separated by commas");
  }
  return cell;
}

absl::Status SetCells(absl::string_view text, Options* options) {
  options->cells.clear();
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    absl::StatusOr<Cell> cell = ParseCell(part);
    if (!cell.ok()) return cell.status();
    options->cells.push_back(*cell);
  }
  return absl::OkStatus();
}

absl::Status SetStacks(absl::string_view text, Options* options) {
  options->stacks = absl::StrSplit(text, ',');
  for (const std::string& stack : options->stacks) {
    if (absl::StatusOr<StackInfo> info = DescribeStack(stack); !info.ok()) return info.status();
  }
  return absl::OkStatus();
}

void SetQuick(Options* options) {
  options->rounds = 1;
  options->seconds = 0.2;
  options->check = true;
  options->cells = {{false, 1}, {false, 16}};
}

absl::Status SetWork(absl::string_view text, Options* options) {
  if (text != "fanout" && text != "echo") return Bad("--work", text, "fanout or echo");
  options->setup.leaves = text == "echo" ? 1 : Setup().leaves;
  return absl::OkStatus();
}

// One number of the setup, by the flag's name without its dashes.
absl::Status SetSetup(absl::string_view name, absl::string_view text, Setup* setup) {
  const auto read = [&](auto* field, uint32_t least, uint32_t most) {
    uint32_t value = 0;
    if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
      return Bad(absl::StrCat("--", name), text, absl::StrCat("a number from ", least, " to ", most));
    }
    *field = static_cast<std::remove_pointer_t<decltype(field)>>(value);
    return absl::OkStatus();
  };
  if (name == "fanout") return read(&setup->leaves, 1, kMaxLeaves);
  if (name == "payload") return read(&setup->payload, 0, kMaxPayloadBytes);
  if (name == "connections") return read(&setup->connections, 1, kMaxConnections);
  if (name == "idle") return read(&setup->idle, 0, kMaxConnections);
  return Bad("--vary", name, "fanout=LIST, payload=LIST, connections=LIST or idle=LIST");
}

// The setups that --vary asks for, or the one that is.
absl::Status MakeSetups(Options* options) {
  for (const Cell& cell : options->cells) {
    if (!cell.open) options->setup.outstanding = std::max(options->setup.outstanding, cell.load);
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

using Setter = std::function<absl::Status(absl::string_view value, Options*)>;

// A flag with a number between `least` and `most`.
template <class Number>
Setter SetNumber(absl::string_view flag, Number Options::* field, double least, double most) {
  return [=](absl::string_view value, Options* options) {
    double number = 0;
    if (!absl::SimpleAtod(value, &number) || !(number >= least && number <= most)) {
      return Bad(flag, value, absl::StrCat("a number from ", least, " to ", most));
    }
    options->*field = static_cast<Number>(number);
    return absl::OkStatus();
  };
}

Setter SetText(std::string Options::* field) {
  return [=](absl::string_view value, Options* options) {
    options->*field = std::string(value);
    return absl::OkStatus();
  };
}

// A flag of the setup.
Setter SetSetupFlag(absl::string_view name) {
  return [name](absl::string_view value, Options* options) { return SetSetup(name, value, &options->setup); };
}

std::map<absl::string_view, Setter> ValueFlags() {
  return {
      {"--stacks", SetStacks},
      {"--cells", SetCells},
      {"--rounds", SetNumber("--rounds", &Options::rounds, 1, 1000)},
      {"--seconds", SetNumber("--seconds", &Options::seconds, 0.05, 3600)},
      {"--seed", SetNumber("--seed", &Options::seed, 0, 1e9)},
      {"--json", SetText(&Options::json)},
      {"--markdown", SetText(&Options::markdown)},
      {"--markdown-short", SetText(&Options::markdown_short)},
      {"--work", SetWork},
      {"--fanout", SetSetupFlag("fanout")},
      {"--payload", SetSetupFlag("payload")},
      {"--connections", SetSetupFlag("connections")},
      {"--idle", SetSetupFlag("idle")},
      {"--vary", SetText(&Options::vary)},
      {"--leaf-config", SetText(&Options::leaf_config)},
      {"--role", SetText(&Options::role)},
      {"--stack", SetText(&Options::stack)},
      {"--leaf",
       [](absl::string_view value, Options* options) {
         options->leaves.emplace_back(value);
         return absl::OkStatus();
       }},
  };
}

absl::Status Check(const Options& options) {
  if (options.role.empty()) return absl::OkStatus();
  if (options.role != "leaf" && options.role != "mid") return Bad("--role", options.role, "leaf or mid");
  if (options.role == "mid" && options.leaves.empty())
    return absl::InvalidArgumentError("--role mid needs --leaf");
  return absl::OkStatus();
}

// The flags without a value; false when the word is none of them.
bool SetSwitch(absl::string_view word, Options* options) {
  if (word == "--help" || word == "-h") {
    options->help = true;
  } else if (word == "--quick") {
    SetQuick(options);
  } else if (word == "--quiet") {
    options->quiet = true;
  } else if (word == "--check") {
    options->check = true;
  } else if (word == "--instructions") {
    options->instructions = true;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string Cell::Name() const { return absl::StrCat(open ? "open-" : "closed-", load); }

double CellSeconds(const Options& options, const Cell& cell) {
  return cell.open && cell.load < 100 ? 2 * options.seconds : options.seconds;
}

absl::StatusOr<Options> ParseOptions(int argc, char** argv) {
  Options options;
  options.stacks = DefaultStacks();
  options.cells = {{false, 1}, {true, 50}, {true, 500}, {true, 2000}, {true, 5000}, {false, 16}, {false, 64}};
  const std::map<absl::string_view, Setter> flags = ValueFlags();
  for (int i = 1; i < argc; ++i) {
    const std::pair<absl::string_view, absl::string_view> word =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    if (SetSwitch(argv[i], &options)) continue;
    const auto flag = flags.find(word.first);
    if (flag == flags.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no flag ", argv[i], "; --help lists what there is"));
    }
    const bool joined = absl::StrContains(argv[i], '=');
    if (!joined && i + 1 == argc)
      return absl::InvalidArgumentError(absl::StrCat(word.first, " needs a value"));
    absl::Status set = flag->second(joined ? word.second : absl::string_view(argv[++i]), &options);
    if (!set.ok()) return set;
  }
  if (options.rounds == 0) options.rounds = options.instructions ? 1 : 5;
  if (absl::Status made = MakeSetups(&options); !made.ok()) return made;
  if (absl::Status checked = Check(options); !checked.ok()) return checked;
  return options;
}

std::string HelpText() {
  return absl::StrCat(
      R"(peers - the same null fan-out on curtail and on what one would take instead, measured side by side

A load generator calls a mid-tier, which calls four leaves at once and answers with the last reply: unary
calls, 64 bytes each way, six processes, loopback TCP. The stacks take turns, round after round, so that what
disturbs the machine disturbs all of them; printed are medians over the rounds, with the smallest and largest.
A stack that was not built is named with the reason.

  --stacks LIST     of raw-threads, raw-epoll, curtail-CONFIG, grpc-sync, grpc-callback, grpc-cq-inline,
                    grpc-cq-dispatch, grpc-go, tonic-multi, tonic-current, thrift-async, thrift-fiber;
                    curtail-CONFIG+POLICY has a policy watch the mid-tier, with a made-up profile by which
                    that config is always the best: what the watching costs
                    [)",
      absl::StrJoin(DefaultStacks(), ",\n                     "), R"(]
  --cells LIST      of closed-N (N requests under way) and open-QPS (sent at random intervals whatever the
                    answers do; latency counts from the moment a request was due)
                    [closed-1,open-50,open-500,open-2000,open-5000,closed-16,closed-64]
  --work W          fanout: four leaves; echo: one [fanout]
  --fanout N        leaves, 1 to 64 [4]
  --payload BYTES   each way and on every hop, 0 to 1048576 [64]
  --connections N   of the generator, used in turn; raw-threads and Thrift have one request at a time on each,
                    so no more than N under way [one, and for those as many as the largest closed loop]
  --idle N          connections to the mid-tier besides, on which nothing happens [0]
  --vary NAME=LIST  compare values of fanout, payload, connections or idle: --vary fanout=1,4,16,64
  --rounds N        [5, and 1 for instructions]
  --seconds S       a cell; twice that below 100 requests a second [0.9]
  --leaf-config C   threading model of curtail's leaves [SIB1]
  --seed N          of the random intervals [1]
  --instructions    no times: user-level instructions of the mid-tier for each request, by valgrind's callgrind
  --check           first: does every mid-tier wait for each of its leaves?
  --json FILE       results for machines
  --markdown FILE   results for people; --markdown-short FILE: three numbers a stack
  --quick           --check, 1 round of closed-1 and closed-16, 0.2 s each: that it works, not how fast
  --quiet           no progress

Examples:
  peers --quick
  peers --stacks raw-epoll,curtail-SIP1,grpc-callback --cells closed-1 --rounds 9
  peers --stacks curtail-SIB1,tonic-current --cells closed-16 --vary payload=0,64,4096,65536,1048576
  peers --instructions --rounds 5 --stacks curtail-SDB1-16,curtail-SDB1-16+mutune,curtail-SDB1-16+online
  peers --json peers.json --markdown peers.md
)");
}

}  // namespace curtail::bench
