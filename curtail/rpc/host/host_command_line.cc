// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/host/host_command_line.h"

#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/internal/flag_error.h"
#include "curtail/base/internal/flag_units.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/base/terminal.h"

namespace curtail::internal {
namespace {

constexpr int kBadConfiguration = 104;

// Flags whose numbers are in these units. They take times with a unit, too.
constexpr const char* kMillisFlags[] = {"--slo",           "--trace-slow",       "--shed-target",
                                        "--shed-interval", "--admission-target", "--hedge-after"};
constexpr const char* kSecondsFlags[] = {"--drain", "--max-connection-idle", "--max-connection-age",
                                         "--max-connection-age-grace", "--resolve-interval"};

void TakeUnit(CLI::App& app, const char* flag, std::function<std::string(std::string&)> to_number) {
  CLI::Option* const option = app.get_option_no_throw(flag);
  if (option != nullptr) option->transform(CLI::Validator(std::move(to_number), ""));
}

void TakeUnits(CLI::App& app) {
  const auto in = [](Nanos unit) { return [unit](std::string& text) { return TimeToNumber(unit, &text); }; };
  for (const char* flag : kMillisFlags) TakeUnit(app, flag, in(std::chrono::milliseconds(1)));
  for (const char* flag : kSecondsFlags) TakeUnit(app, flag, in(std::chrono::seconds(1)));
  TakeUnit(app, "--max-message-bytes", [](std::string& text) { return SizeToNumber(&text); });
}

}  // namespace

int RefuseStart(std::string_view program, const absl::Status& status) {
  Log(Severity::kError, Message(status), {}, program);
  return kBadConfiguration;
}

HostCommandLine::HostCommandLine(const HostProgram& program)
    : program_(program), app_(program.title, program.name) {
  app_.footer(program.examples);
  app_.allow_extras();  // so that they are named one by one
}

void HostCommandLine::AddHostFlags(HostFlags* f, bool words) {
  Flags& flags = flags_.emplace_back(&app_);
  const bool choice = !(program_.services.size() == 1 && program_.services.front().name.empty());
  if (choice) {
    std::vector<std::string> names;
    for (const HostedService& service : program_.services) names.push_back(service.name);
    // The names are in the text, as CLI11 writes those of IsMember as one word that no terminal has room for.
    app_.add_option("--service", f->services,
                    Join("What to be; several, with commas, call each other in one process: ",
                         absl::StrJoin(names, ", ")))
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::IsMember(names).description(""));
    flags.Add("--monolith", &f->monolith, "Be all services in one process, which call each other there");
    flags.Add("--instances", &f->instances, "SERVICE=COUNT: with --monolith, how many of a service [1]");
    flags.Add("--outside", &f->outside,
              "SERVICE: of several in one process, one that callers outside it reach; others are called "
              "within [all]");
    flags.Add("--memory", &f->memory, "Print how many bytes this service will hold, and exit");
  }
  AddServingFlags(flags, f, program_.policies);
  if (choice || words) AddInstanceFlags(flags, f);
  if (choice) app_.get_option("--monolith")->excludes("--service");
  for (const char* detail : {"--trace-sample", "--trace-slow"}) app_.get_option(detail)->needs("--trace-to");
  TakeUnits(app_);
  for (const HostedService& service : program_.services) {
    if (service.flags) service.flags(flags);
  }
  if (words) app_.add_option("WORDS", f->words, "What the service itself is told");
}

void HostCommandLine::AddCommands() {
  for (const HostCommand& command : program_.commands) {
    CLI::App* const sub = app_.add_subcommand(command.name, command.help);
    sub->footer(command.examples);  // else it has the program's
    if (command.flags) command.flags(flags_.emplace_back(sub));
    sub->allow_extras();
    commands_.emplace_back(sub, &command);
  }
}

std::optional<int> HostCommandLine::Parse(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      return RefuseStart(program_.name, absl::InvalidArgumentError(PlainFlagError(error.what())));
    }
    std::ostringstream help, nothing;
    app_.exit(error, help, nothing);
    std::cout << HelpForTerminal(help.str());
    return 0;
  }
  const std::vector<std::string> unknown = app_.remaining(/*recurse=*/true);
  if (unknown.empty()) return std::nullopt;
  const std::string meant = FlagMeant(unknown.front());
  return RefuseStart(program_.name, absl::InvalidArgumentError(Join(unknown.front(), ": unknown flag or word",
                                                                    meant.empty() ? "; see --help" : meant)));
}

std::string HostCommandLine::FlagMeant(std::string_view word) const {
  for (const HostedService& service : program_.services) {
    if (service.name == word) return Join("; did you mean \"--service ", word, "\"?");
  }
  std::vector<std::string> names;
  if (!word.starts_with('-')) {
    for (const auto& [sub, command] : commands_) names.push_back(command->name);
    return DidYouMean(word, names);
  }
  if (!word.starts_with("--")) return "";  // all short ones are near each other
  std::vector<const CLI::App*> given = {&app_};
  for (const CLI::App* sub : app_.get_subcommands()) given.push_back(sub);
  for (const CLI::App* of : given) {
    for (const CLI::Option* option : of->get_options()) {
      if (option->nonpositional()) names.push_back(Join("--", option->get_single_name()));
    }
  }
  return DidYouMean(word.substr(0, word.find('=')), names);
}

const HostCommand* HostCommandLine::command() const {
  for (const auto& [sub, command] : commands_) {
    if (*sub) return command;
  }
  return nullptr;
}

}  // namespace curtail::internal
