// SPDX-License-Identifier: Apache-2.0
//
// request_flags.h - flags that several commands have: the target, what is sent to it, and what becomes of the result.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace curtail::tool {

struct LoadFlags;
struct ResultFlags;

inline constexpr char kCorpusHelp[] = "The data of the application, its --data [as in its topology]";

// The target. Parsing writes into `f`, which outlives `command`.
void AddTargetFlags(CLI::App& command, LoadFlags* f, const char* targets);
// The messages; likewise.
void AddMessageFlags(CLI::App& command, LoadFlags* f);
// The files to write, and --fail-if; likewise.
void AddResultFlags(CLI::App& command, ResultFlags* f);
// The options of single applications; `set` hears of those that are given.
void AddOwnOptions(CLI::App& command, const char* group,
                   const std::function<void(const std::string& name, const std::string& value)>& set);

}  // namespace curtail::tool
