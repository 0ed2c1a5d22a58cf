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

}  // namespace curtail::tool
