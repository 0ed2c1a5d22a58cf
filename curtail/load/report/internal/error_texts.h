// SPDX-License-Identifier: Apache-2.0
//
// error_texts.h - bounds the texts of failures in a result. Servers that put ids into their error messages must not fill
// our memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace curtail::internal {

// Different texts that a result keeps of one code.
inline constexpr int kMaxTextsOfCode = 10;

// The text that stands for the others of `code`: "ABORTED: (other texts)".
std::string OtherTexts(std::string_view code);

// Adds `count` failures with the text `error`, "CODE" or "CODE: TEXT", within that bound.
void AddError(const std::string& error, uint64_t count, std::map<std::string, uint64_t>* errors);

}  // namespace curtail::internal
