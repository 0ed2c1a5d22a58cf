// SPDX-License-Identifier: Apache-2.0
//
// program_docs.h - the man page and the shell completions of a program, made of its flags.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace curtail::tool {

// Those with dashes; the words that follow a command are not among them.
std::vector<const CLI::Option*> FlagsOf(const CLI::App& app);
// "-d", "--detach".
std::vector<std::string> NamesOf(const CLI::Option& option);
bool TakesValue(const CLI::Option& option);
// The values of a flag that takes few; nothing for others.
std::string ValuesOf(const CLI::Option& option);

// Of the words that none of `apps`, a program and the commands given to it, knows: "--rpm: unknown flag or word; did you mean
// \"--rps\"?".
std::string UnknownWord(const std::vector<std::string>& words, const std::vector<const CLI::App*>& apps);

std::string Roff(std::string_view text);
// A text below a command: lines that are set in are kept as they are, the others are filled.
std::string ProseInRoff(std::string_view text);
std::string FlagsInRoff(const CLI::App& app);

// In single quotes, as zsh and fish read it.
std::string Quoted(std::string_view text);
// A description within _arguments and _describe of zsh.
std::string ZshText(std::string_view text);
// The things that `_arguments` of zsh, and `complete -c PROGRAM` of fish, want to know of the flags: a line each. `before` begins the
// lines of fish.
std::string ZshFlags(const CLI::App& app);
std::string FishFlags(const CLI::App& app, std::string_view before);

// The man page of a program without commands.
std::string ProgramManPage(const CLI::App& app, std::string_view name, std::string_view version);
// A script for "bash", "zsh" or "fish" that completes its flags. Empty for another shell.
std::string ProgramCompletion(const CLI::App& app, std::string_view name, std::string_view shell);

}  // namespace curtail::tool
