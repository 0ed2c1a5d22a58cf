// SPDX-License-Identifier: Apache-2.0
//
// request_flags.h - flags that several commands have: what is sent. For the files that declare commands.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace curtail::tool {

struct LoadFlags;

// A number between these. CLI::Range alone lets "nan" pass.
CLI::Validator Between(double low, double high);
// 2.5k becomes 2500, 1M a million.
CLI::Validator Number();

// The messages. Parsing writes into `f`, which outlives `command`.
void AddMessageFlags(CLI::App& command, LoadFlags* f);
// The options of single applications; `set` hears of those that are given.
void AddOwnOptions(CLI::App& command, const char* group,
                   const std::function<void(const std::string& name, const std::string& value)>& set);

}  // namespace curtail::tool
