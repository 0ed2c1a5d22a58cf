// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/data/ratings.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "apps/kit/line_reader.h"
#include "apps/kit/parallel.h"
#include "curtail/base/strings.h"

namespace curtail::recommend {
namespace {

absl::Status At(const apps::LineReader& reader, const absl::Status& status) {
  return absl::Status(status.code(), Join(reader.Where(), ": ", Message(status)));
}

absl::Status Add(const Rating& rating, Shard shard, size_t lines, Ratings* ratings) {
  ratings->low = lines == 0 ? rating.value : std::min(ratings->low, rating.value);
  ratings->high = lines == 0 ? rating.value : std::max(ratings->high, rating.value);
  // With the line, as the last rating of a pair counts.
  ratings->fingerprint +=
      Mix(Mix(uint64_t{rating.user} << 32 | rating.item), Mix(lines) ^ std::bit_cast<uint32_t>(rating.value));
  if (!Holds(shard, rating.user, rating.item)) return absl::OkStatus();
  if (ratings->list.size() == kMaxRatings) {
    return absl::ResourceExhaustedError(Join("more than ", kMaxRatings, " ratings; use more shards"));
  }
  ratings->list.push_back(rating);
  return absl::OkStatus();
}

absl::StatusOr<Ratings> ReadFile(const DataSpec& spec, Shard shard, bool quiet) {
  absl::StatusOr<std::unique_ptr<apps::LineReader>> opened = apps::LineReader::Open(spec.path);
  if (!opened.ok()) return opened.status();
  apps::LineReader& reader = **opened;
  apps::Progress progress(Join("reading ", spec.path), reader.size(), quiet, "bytes");
  Ratings ratings;
  std::optional<RatingParser> parser;
  size_t lines = 0;
  bool begun = false;
  for (uint64_t shown = 0;;) {
    std::string_view line;
    const absl::StatusOr<bool> more = reader.Next(&line);
    if (!more.ok()) return more.status();
    if (!*more) break;
    if (reader.offset() != shown) progress.Add(reader.offset() - shown), shown = reader.offset();
    if (!begun && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // a byte order mark
    begun = true;
    if (line.empty()) continue;
    if (!parser) {
      absl::StatusOr<RatingParser> found = RatingParser::ForFirstLine(spec, line);
      if (!found.ok()) return At(reader, found.status());
      parser = *found;
      if (parser->header()) continue;
    }
    Rating rating;
    absl::Status status = parser->Parse(line, &rating);
    if (status.ok()) status = Add(rating, shard, lines++, &ratings);
    if (!status.ok()) return At(reader, status);
  }
  if (lines == 0) return absl::InvalidArgumentError(Join(spec.path, ": holds no ratings"));
  return ratings;
}

}  // namespace

void SortAndMerge(Ratings* ratings) {
  const std::vector<Rating> list = std::move(ratings->list);
  const auto key = [&list](uint32_t i) { return std::pair(list[i].user, list[i].item); };
  std::vector<uint32_t> order(list.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return key(a) != key(b) ? key(a) < key(b) : a < b; });
  ratings->list.clear();
  ratings->list.reserve(list.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const bool rated_again = i + 1 < order.size() && key(order[i]) == key(order[i + 1]);
    if (!rated_again) ratings->list.push_back(list[order[i]]);
  }
  ratings->duplicates += list.size() - ratings->list.size();
}

absl::StatusOr<Ratings> ReadRatings(const DataSpec& spec, Shard shard, const ReadOptions& options) {
  absl::StatusOr<Ratings> ratings = spec.format == DataSpec::Format::kSynthetic
                                        ? GenerateRatings(spec.synthetic, shard, options)
                                        : ReadFile(spec, shard, options.quiet);
  if (!ratings.ok()) return ratings;
  if (ratings->list.empty()) {
    return absl::InvalidArgumentError(
        Join("data '", spec.text, "' has no ratings for shard ", shard.ToString(), "; use fewer shards"));
  }
  SortAndMerge(&*ratings);
  return ratings;
}

absl::StatusOr<uint64_t> EstimateRatings(const DataSpec& spec) {
  if (spec.format == DataSpec::Format::kSynthetic) return spec.synthetic.ratings;
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(spec.path, error);
  std::ifstream file(spec.path, std::ios::binary);
  char magic[3] = {};
  if (error || !file) return absl::NotFoundError(Join(spec.path, ": cannot be read"));
  file.read(magic, sizeof magic);
  const std::string_view start(magic, sizeof magic);
  // A line of MovieLens has 20 to 26 bytes, of which gzip leaves a quarter and bzip2 a fifth.
  const uint64_t packed = start.starts_with("\x1f\x8b") ? 4 : start == "BZh" ? 5 : 1;
  return bytes * packed / 22 + 1;
}

}  // namespace curtail::recommend
