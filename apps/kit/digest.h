// SPDX-License-Identifier: Apache-2.0
//
// digest.h - what stands for the content of a request, so that a repetition is told from another request.
#pragma once

#include <string>
#include <string_view>

namespace curtail::apps {

// Returns the SHA-256 of `bytes` in hexadecimal digits.
std::string Digest(std::string_view bytes);

}  // namespace curtail::apps
