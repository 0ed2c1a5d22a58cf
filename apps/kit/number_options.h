// SPDX-License-Identifier: Apache-2.0
//
// number_options.h - reads "NAME=NUMBER,NAME=NUMBER", the options of generated data.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include "absl/status/status.h"

namespace curtail {

// A NumberOption is one number that a text may name. `*value` holds its default; zero where the
// text must name it, with a `least` above that.
struct NumberOption {
  std::string_view name;
  std::variant<uint32_t*, uint64_t*, double*> value;
  double least = 0;
  double most = std::numeric_limits<double>::infinity();  // none but that of the type
};

// Sets the options that `text` names; no text names none. Errors: INVALID_ARGUMENT for a field that
// is no option with a number of its type, and for an option, named or not, outside its range.
absl::Status ReadNumberOptions(std::string_view text, std::span<const NumberOption> options);

// INVALID_ARGUMENT, "data 'TEXT': WHY": `text` is no data that an application can read.
absl::Status BadData(std::string_view text, std::string_view why);

}  // namespace curtail
