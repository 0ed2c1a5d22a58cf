// SPDX-License-Identifier: Apache-2.0
//
// flag_error.h - what is wrong with a command line, in plain words.
#pragma once

#include <string>
#include <string_view>

namespace curtail::internal {

// Returns CLI11's text about a wrong command line in plain words: "--threads: 0 is not from 1 to 256", "--rps needs a
// number", "--rps is given twice", "--rps and --closed cannot be combined". A text of another origin is returned as it
// is, without newlines at its end.
std::string PlainFlagError(std::string_view text);

}  // namespace curtail::internal
