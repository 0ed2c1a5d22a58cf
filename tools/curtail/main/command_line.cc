// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/main/command_line.h"

#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "apps/shipped/application.h"
#include "curtail/base/internal/flag_error.h"
#include "curtail/base/strings.h"
#include "curtail/base/terminal.h"
#include "curtail/deploy/topology.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/main/command_docs.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

constexpr char kExamples[] = R"(Examples:
  curtail up hdsearch --detach                                   # image search on this machine; curtail ps, logs, down
  curtail demo                     # under 3 minutes: learns which threading model suits which load, and adapts
  curtail train hdsearch --quick --out profile.json              # which config is best at which load?
  curtail compare hdsearch --profile profile.json --html compare.html
  curtail switch hdsearch SDB1-16                                # at once, while it serves; or its admin address
  curtail status hdsearch/leaf.0                                 # pools, queue, threads
  curtail load hdsearch --rps 500                                # about 12 s; the one that is up
  curtail render hdsearch --to kubernetes | kubectl apply -f -   # the same application on a cluster

Exit codes: 0 ok, 1 failed, 98 a load run is void, 99 a threshold does not hold, 104 bad configuration, 105 interrupted.)";

constexpr char kExitCodes[] = R"(CODE  MEANING
   0  ok; of up and other commands that go on: they ended as they were told to
   1  failed: no server, a process that ended, no disk space
  98  a load run is void: the generator was the limit
  99  a threshold does not hold: --fail-if, --fail-if-worse
 104  bad configuration: a flag, a file, a name, or a missing program
 105  interrupted
)";

// Commands about the commands: they are done when they are parsed.
struct DocCommands {
  CLI::App* version = nullptr;
  CLI::App* man = nullptr;
  CLI::App* completion = nullptr;
  std::string shell;
};

void AddDocs(CLI::App& app, DocCommands* docs) {
  app.set_version_flag("--version", "curtail " CURTAIL_VERSION, "Print the version");
  docs->version = app.add_subcommand("version", "Print the version");
  app.add_subcommand("help",
                     "Print this, the help of a command: curtail help load, or: curtail help exit-codes");
  docs->man = app.add_subcommand("man", "Print the man page: curtail man | man -l -");
  docs->completion = app.add_subcommand(
      "completion", "Print what completes command lines: source <(curtail completion bash)");
  docs->completion->add_option("SHELL", docs->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

// A flag whose value may be left out does not take the application for it: `up --scale social` starts social. Where no word
// is an application, the one behind the flag is meant as one, misspelt, unless it may be the value.
void LeaveApplications(std::vector<std::string>* words) {
  constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"--scale", deploy::kPaperScale},
                                                                         {"--dashboard", "0"}};
  const std::vector<std::string> names = absl::StrSplit(apps::ApplicationNames(), ", ");
  const auto application = [&](const std::string& word) {
    return std::find(names.begin(), names.end(), word) != names.end() || absl::EndsWith(word, ".yaml");
  };
  const bool named = std::any_of(words->begin(), words->end(), application);
  for (size_t i = 0; i + 1 < words->size(); ++i) {
    const std::string& next = (*words)[i + 1];
    const bool meant = !named && !next.starts_with('-') && next != deploy::kPaperScale &&
                       next.find_first_of("0123456789:") == std::string::npos;
    for (const auto& [flag, value] : kDefaults) {
      if ((meant || application(next)) && (*words)[i] == flag) (*words)[i] = Join(flag, "=", value);
    }
  }
}

// The variables of each application's topology, as --set takes them.
std::map<std::string, std::string> SettingNames() {
  std::map<std::string, std::string> names;
  for (const std::string& application :
       std::vector<std::string>(absl::StrSplit(apps::ApplicationNames(), ", "))) {
    const absl::StatusOr<deploy::Topology> topology = apps::LoadTopology(application);
    if (!topology.ok()) continue;
    for (const auto& [name, value] : topology->Settings()) absl::StrAppend(&names[application], name, "= ");
  }
  return names;
}

// The exit code when the words end with what they print: an error, help, the man page, a completion.
std::optional<int> Parse(CLI::App& app, const DocCommands& docs, std::vector<std::string> words,
                         Console& console) {
  if (words == std::vector<std::string>{"help", "exit-codes"}) {
    console.Print(kExitCodes);
    return kOk;
  }
  if (const std::string wrong = ResolveHelp(app, &words); !wrong.empty()) {
    console.Error(wrong, "curtail help lists the commands");
    return kBadConfig;
  }
  LeaveApplications(&words);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help
      std::ostringstream help, nothing;
      app.exit(error, help, nothing);
      console.Print(HelpForTerminal(help.str()));
      return kOk;
    }
    const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const std::string text = unknown ? UnknownWord(app) : internal::PlainFlagError(error.what());
    console.Error(LacksRunning(app, error.what()) ? Join(text, "; ", WhatIsUp()) : text, HelpHint(app));
    return kBadConfig;
  }
  if (*docs.version) {
    console.Print("curtail " CURTAIL_VERSION "\n");
  } else if (*docs.man) {
    console.Print(ManPage(app, CURTAIL_VERSION));
  } else if (*docs.completion) {
    console.Print(
        CompletionScript(app, docs.shell, absl::StrSplit(apps::ApplicationNames(), ", "), SettingNames()));
  } else {
    return std::nullopt;
  }
  return kOk;
}

}  // namespace

int RunCommandLine(std::span<AddCommand* const> commands, int argc, char** argv, Console& console,
                   const std::atomic<bool>& stop) {
  CLI::App app("curtail: microservices that choose their own threading, and the tools to measure them.",
               "curtail");
  app.footer(kExamples);
  app.require_subcommand(1);
  app.fallthrough();
  bool quiet = false;
  app.add_flag("--quiet", quiet, "Results only, no progress");
  std::vector<Command> declared;
  for (AddCommand* const add : commands) declared.push_back(add(app));
  DocCommands docs;
  AddDocs(app, &docs);
  if (const auto code = Parse(app, docs, {argv + std::min(argc, 1), argv + argc}, console)) return *code;
  console.set_quiet(quiet);
  for (const Command& command : declared) {
    if (!*command.words) continue;
    if (!command.keeps_log_format) unsetenv("CURTAIL_LOG_FORMAT");
    return command.run({console, stop, CommandText({argv, argv + argc})});
  }
  return kOk;
}

}  // namespace curtail::tool
