// SPDX-License-Identifier: Apache-2.0
//
// urls.h - which texts are URLs that a page may link to, and where a text has some.
//
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace curtail::social {

inline constexpr size_t kMostUrlBytes = 2048;

// Errors: INVALID_ARGUMENT unless `url` is one of http or https, with a host and without a user, of at most kMostUrlBytes;
// so it is neither a script nor data.
absl::Status CheckUrl(std::string_view url);

struct TextSpan {
  size_t begin, size;
};
// The URLs in `text`, in order: from "http://" or "https://", in any case, at the beginning of a word, to a space, quote
// or angle bracket. Punctuation at the end belongs to the text, as does a closing bracket that the URL does not open.
// What CheckUrl() refuses is text.
std::vector<TextSpan> FindUrls(std::string_view text);

}  // namespace curtail::social
