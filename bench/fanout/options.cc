// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "child.h"
#include "stack.h"

namespace curtail::bench {
namespace {

constexpr uint32_t kMaxOutstanding = 64;
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
    return Bad("--cells", text, "closed-1 to closed-64 and open-QPS, separated by commas");
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
  options->cells = {{false, 1}, {false, 16}};
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

std::map<absl::string_view, Setter> ValueFlags() {
  return {
      {"--stacks", SetStacks},
      {"--cells", SetCells},
      {"--rounds", SetNumber("--rounds", &Options::rounds, 1, 1000)},
      {"--seconds", SetNumber("--seconds", &Options::seconds, 0.05, 3600)},
      {"--seed", SetNumber("--seed", &Options::seed, 0, 1e9)},
      {"--json", SetText(&Options::json)},
      {"--markdown", SetText(&Options::markdown)},
      {"--leaf-config", SetText(&Options::leaf_config)},
      {"--role", SetText(&Options::role)},
      {"--stack", SetText(&Options::stack)},
      {kReadyFdFlag, SetNumber(kReadyFdFlag, &Options::ready_fd, 0, 1 << 20)},
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

}  // namespace

std::string Cell::Name() const { return absl::StrCat(open ? "open-" : "closed-", load); }

absl::StatusOr<Options> ParseOptions(int argc, char** argv) {
  Options options;
  options.stacks = DefaultStacks();
  options.cells = {{false, 1}, {false, 16}, {false, 64}, {true, 50}, {true, 500}, {true, 2000}};
  const std::map<absl::string_view, Setter> flags = ValueFlags();
  for (int i = 1; i < argc; ++i) {
    const std::pair<absl::string_view, absl::string_view> word =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    if (word.first == "--help" || word.first == "-h") {
      options.help = true;
    } else if (word.first == "--quick") {
      SetQuick(&options);
    } else if (word.first == "--quiet") {
      options.quiet = true;
    } else if (const auto flag = flags.find(word.first); flag != flags.end()) {
      const bool joined = absl::StrContains(argv[i], '=');
      if (!joined && i + 1 == argc)
        return absl::InvalidArgumentError(absl::StrCat(word.first, " needs a value"));
      absl::Status set = flag->second(joined ? word.second : absl::string_view(argv[++i]), &options);
      if (!set.ok()) return set;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no flag ", argv[i], "; --help lists what there is"));
    }
  }
  if (absl::Status checked = Check(options); !checked.ok()) return checked;
  return options;
}

std::string HelpText() {
  return absl::StrCat(
      R"(fanout - the same null fan-out over raw sockets, curtail and grpc++, measured side by side

A load generator calls a mid-tier, which calls four leaves at once and answers with the last reply: unary
calls, 64 bytes each way, six processes, loopback TCP. The stacks take turns, round after round, so that what
disturbs the machine disturbs all of them; printed are medians over the rounds, with the smallest and largest.

  --stacks LIST     of raw-threads, raw-epoll, curtail-CONFIG, grpc-sync, grpc-callback, grpc-cq-inline,
                    grpc-cq-dispatch
                    [)",
      absl::StrJoin(DefaultStacks(), ",\n                     "), R"(]
  --cells LIST      of closed-N (N requests under way, at most 64) and open-QPS (sent at random intervals
                    whatever the answers do; latency counts from the moment a request was due)
                    [closed-1,closed-16,closed-64,open-50,open-500,open-2000]
  --rounds N        [5]
  --seconds S       a cell; p99 needs some hundred requests [2]
  --leaf-config C   threading model of curtail's leaves [SIB1]
  --seed N          of the random intervals [1]
  --json FILE       results for machines
  --markdown FILE   results for people
  --quick           1 round of closed-1 and closed-16, 0.2 s each: that it works, not how fast
  --quiet           no progress

Examples:
  fanout --quick
  fanout --stacks raw-epoll,curtail-SIP1,grpc-callback --cells closed-1 --rounds 9
  fanout --json fanout.json --markdown fanout.md
)");
}

}  // namespace curtail::bench
