// SPDX-License-Identifier: Apache-2.0
//
// path_id.h - the id of an end-to-end path: which method of which service a request began with.
//
// The client that a request begins with sends it as metadata. From there on each call of servers
// with fences carries it, beside deadline and trace. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace curtail {

// Its key. The value is eight lower-case hex digits, not all zero.
inline constexpr std::string_view kPathKey = "curtail-path";

// The id of requests that begin with `method`, "/package.Service/Method": a hash, never 0.
uint32_t PathIdOf(std::string_view method);
// None for any other text.
std::optional<uint32_t> ParsePathId(std::string_view text);
// Writes into `buffer` and returns all of it.
std::string_view FormatPathId(uint32_t id, char (&buffer)[8]);

}  // namespace curtail
