// SPDX-License-Identifier: Apache-2.0
//
// films.h - films to fill the application with, generated or from files, and the ones that it knows, for load tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/rng.h"
#include "parts.curtail.h"

namespace curtail::media {

// Films by a seed. No two have the same title and year; one in twenty has the title of another.
std::vector<Film> GenerateFilms(uint64_t seed, uint64_t count);

// The films of all files FOLDER/*.json and *.json.gz, each an array as the Wikipedia movie data have it, in the order of the
// names. Errors: NOT_FOUND (no such file), INVALID_ARGUMENT (a file is not such an array), those of LineReader.
absl::StatusOr<std::vector<Film>> ReadFilms(const std::string& folder);

// Words of at most `bytes`.
std::string GenerateText(Rng& rng, size_t bytes);

// A film of the application.
struct KnownFilm {
  uint64_t id = 0;
  MovieTitle title;
};
// FOLDER/load-films. Errors: INTERNAL; NOT_FOUND with what to do.
absl::Status WriteKnownFilms(const std::string& folder, const std::vector<KnownFilm>& films);
absl::StatusOr<std::vector<KnownFilm>> ReadKnownFilms(const std::string& folder);

}  // namespace curtail::media
