// SPDX-License-Identifier: Apache-2.0
//
// people.h - generated users, follows and texts: the same for the same seed, at any size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/rng.h"

namespace curtail::social {

// Users are numbered from 0.
std::string NameOf(uint64_t user);

// Who follows whom, by number.
using Follow = std::pair<uint64_t, uint64_t>;

// `count` of them. Some users have far more followers than others, as in real networks: the share of the most followed
// tenth is one half. None is twice in the list, nor follows itself. REQUIRES: count <= users * (users - 1) / 4.
std::vector<Follow> GenerateFollows(uint64_t seed, uint64_t users, uint64_t count);

// Reads an edge list: two numbers a line, each edge in both directions, as socfb-Reed98 has them. Where no number is 0,
// user N of the file is N - 1 here. Lines that begin with % or #, and the sizes of a Matrix Market file, are left out.
// Sets `users` to one more than the greatest number. Errors: those of the file; INVALID_ARGUMENT with the line.
absl::StatusOr<std::vector<Follow>> ReadFollows(const std::string& path, uint64_t* users);

// A text of 256 random characters with 1 to 6 mentions and 1 to 6 URLs, and the sizes of 1 to 5 media.
struct GeneratedPost {
  std::string text;
  std::vector<uint64_t> media_bytes;
};
GeneratedPost GeneratePost(Rng& rng, uint64_t users);

}  // namespace curtail::social
