// SPDX-License-Identifier: Apache-2.0
//
// command_docs.h - help, man page and shell completion, all made of the one table of commands in main.cc.
//
// Pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace curtail::tool {

// Makes "help COMMAND" of a command line into "COMMAND --help". Returns why its first word is no command of `app`, or
// nothing.
std::string ResolveHelp(const CLI::App& app, std::vector<std::string>* words);

// Says what is wrong with the words that an `app` was given and does not know.
std::string UnknownWord(const CLI::App& app);

// True if `error`, CLI11's text, is that a command lacks its first word, which names what is up.
bool LacksRunning(const CLI::App& app, std::string_view error);

// Which help tells more of the words that were parsed: "see curtail load --help".
std::string HelpHint(const CLI::App& app);

// The man page, in roff.
std::string ManPage(const CLI::App& app, std::string_view version);

// A script for "bash", "zsh" or "fish" that completes commands, flags, `applications` and files. REQUIRES: one of those.
// `settings` has the names of an application's variables, for --set.
std::string CompletionScript(const CLI::App& app, std::string_view shell,
                             const std::vector<std::string>& applications,
                             const std::map<std::string, std::string>& settings);

}  // namespace curtail::tool
