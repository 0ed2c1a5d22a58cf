// SPDX-License-Identifier: Apache-2.0
//
// validators.h - numbers of flags. For the files that declare commands.
#pragma once

#include <CLI/CLI.hpp>

namespace curtail::tool {

// A number between these. CLI::Range alone lets "nan" pass.
CLI::Validator Between(double low, double high);
// 2.5k becomes 2500, 1M a million.
CLI::Validator Number();
// A number above 0; after Number() also 2.5k.
CLI::Validator Positive();
// Not below 0: CLI11 wraps "-1" for an unsigned number.
CLI::Validator NotNegative();
// Conditions such as 'p99<5ms'. An empty one would hold, and the next flag is none.
CLI::Validator Conditions();

}  // namespace curtail::tool
