// SPDX-License-Identifier: Apache-2.0
#include "apps/media/load/films.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "apps/kit/line_reader.h"
#include "curtail/base/strings.h"

namespace curtail::media {
namespace {

constexpr std::string_view kQualities[] = {"Silent", "Golden", "Lost",    "Crimson", "Last",   "Hidden",
                                           "Broken", "Quiet",  "Distant", "Burning", "Frozen", "Wild"};
constexpr std::string_view kThings[] = {"River", "Garden", "Empire", "Letter", "Harbor",  "Promise",
                                        "Train", "Mirror", "Island", "Summer", "Witness", "Road"};
constexpr std::string_view kGenres[] = {"Comedy", "Drama", "Western", "Thriller", "Romance", "Documentary"};
constexpr std::string_view kFirstNames[] = {"Ada", "Bela", "Carl", "Dora", "Emil", "Frida", "Gus", "Hana"};
constexpr std::string_view kLastNames[] = {"Abel", "Berg", "Cole", "Duarte", "Egan", "Fox", "Grant", "Hale"};
constexpr std::string_view kWords[] = {
    "a",   "film", "with",  "great", "light", "and", "slow",  "scenes", "that", "stayed", "after", "the",
    "end", "of",   "music", "story", "made",  "us",  "laugh", "cry",    "wait", "watch",  "again", "friends"};

template <size_t n>
std::string_view AnyOf(const std::string_view (&all)[n], Rng& rng) {
  return all[rng.Below(n)];
}

absl::Status ReadFile(const std::string& path, Films* films) {
  auto reader = apps::LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  std::string text = "{\"films\":";
  std::string_view line;
  absl::StatusOr<bool> more = false;
  while ((more = (*reader)->Next(&line)).ok() && *more) text += Join(line, "\n");
  if (!more.ok()) return more.status();
  text += "}";
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, films, options);
  if (parsed.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join(path, " is not an array of films: ", std::string(parsed.message().substr(0, 200))));
}

}  // namespace

std::vector<Film> GenerateFilms(uint64_t seed, uint64_t count) {
  constexpr uint64_t kTitles = std::size(kQualities) * std::size(kThings);
  std::vector<Film> films(count);
  for (uint64_t i = 0; i < count; ++i) {
    Rng rng(seed * 0x9E3779B97F4A7C15u + i);
    Film& film = films[i];
    if (i % 20 == 19) {  // made again
      film.set_title(films[i - 1].title());
      film.set_year(films[i - 1].year() + 20);
    } else {
      const uint64_t part = i / kTitles, number = i % kTitles;
      film.set_title(Join("The ", kQualities[number % std::size(kQualities)], " ",
                          kThings[number / std::size(kQualities)]));
      if (part > 0) film.set_title(Join(film.title(), " ", part + 1));
      film.set_year(static_cast<uint32_t>(1920 + rng.Below(80)));
    }
    film.add_genres(std::string(AnyOf(kGenres, rng)));
    if (const std::string_view other = AnyOf(kGenres, rng); other != film.genres(0))
      film.add_genres(std::string(other));
    for (uint64_t left = 2 + rng.Below(4); left > 0; --left)
      film.add_cast(Join(AnyOf(kFirstNames, rng), " ", AnyOf(kLastNames, rng)));
    film.set_extract(GenerateText(rng, 318));  // as long as the average of Wikipedia's
  }
  return films;
}

absl::StatusOr<std::vector<Film>> ReadFilms(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path();
    if (path.ends_with(".json") || path.ends_with(".json.gz")) paths.push_back(path);
  }
  if (paths.empty()) return absl::NotFoundError(Join(folder, " has no file of films, *.json or *.json.gz"));
  std::ranges::sort(paths);
  std::vector<Film> all;
  for (const std::string& path : paths) {
    Films films;
    if (absl::Status status = ReadFile(path, &films); !status.ok()) return status;
    std::ranges::move(*films.mutable_films(), std::back_inserter(all));
  }
  return all;
}

std::string GenerateText(Rng& rng, size_t bytes) {
  std::string text;
  while (true) {
    const std::string_view word = AnyOf(kWords, rng);
    if (text.size() + 1 + word.size() > bytes) return text;
    text += Join(text.empty() ? "" : " ", word);
  }
}

absl::Status WriteKnownFilms(const std::string& folder, const std::vector<KnownFilm>& films) {
  const std::string path = folder + "/load-films", fresh = path + ".new";
  std::ofstream file(fresh);
  for (const KnownFilm& film : films)
    file << film.id << ' ' << film.title.year() << ' ' << film.title.title() << '\n';
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(fresh, path, error);
  if (file && !error) return absl::OkStatus();
  return absl::InternalError(Join(path, " cannot be written"));
}

absl::StatusOr<std::vector<KnownFilm>> ReadKnownFilms(const std::string& folder) {
  const std::string path = folder + "/load-films";
  std::ifstream file(path);
  std::vector<KnownFilm> films;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    KnownFilm film;
    uint32_t year = 0;
    if (!(words >> film.id >> year) || words.get() != ' ') break;
    film.title.set_year(year);
    std::getline(words, *film.title.mutable_title());
    films.push_back(std::move(film));
  }
  if (!films.empty()) return films;
  return absl::NotFoundError(Join(path, " names no films: run media fill, as curtail up media does"));
}

}  // namespace curtail::media
