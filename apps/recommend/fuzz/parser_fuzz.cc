// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a file of ratings: each line is an error with a message, or a rating within its limits, which
// then reads the same when it is written out in the format.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "apps/recommend/data/rating_parser.h"

namespace {

using namespace curtail::recommend;

void Require(bool holds) {
  if (!holds) std::abort();
}

void Check(const RatingParser& parser, std::string_view line) {
  Rating rating;
  const absl::Status status = parser.Parse(line, &rating);
  if (!status.ok()) return Require(!status.message().empty() && status.message().size() < 1000);
  Require(std::isfinite(rating.value) && std::fabs(rating.value) <= kMaxRating);
  char text[100];
  std::snprintf(text, sizeof text, "%u::%u::%.9g::0", rating.user, rating.item, double{rating.value});
  Rating again;
  Require(RatingParser::ForFirstLine(DataSpec{}, text)->Parse(text, &again).ok() && again == rating);
}

// The lines of `text` as the format that its first has.
void CheckFile(const DataSpec& spec, std::string_view text) {
  const absl::StatusOr<RatingParser> parser =
      RatingParser::ForFirstLine(spec, text.substr(0, text.find('\n')));
  if (!parser.ok()) return Require(!parser.status().message().empty());
  while (!text.empty()) {
    const size_t end = text.find('\n');
    Check(*parser, text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto spec = DataSpec::Parse(text); spec.ok()) Require(spec->synthetic.users > 0);
  const DataSpec columns = *DataSpec::Parse("csv:f,user=u,item=i,rating=r");
  CheckFile(DataSpec{}, text);
  CheckFile(columns, text);
  // Most bytes are no header, so that rows after one are tried with one that fits.
  CheckFile(DataSpec{}, std::string("userId,movieId,rating,timestamp\n").append(text));
  CheckFile(columns, std::string("x,\"u\",i,r\n").append(text));
  CheckFile(DataSpec{}, std::string("1\t2\t3\t4\n").append(text));
  CheckFile(DataSpec{}, std::string("1::2::3::4\n").append(text));
  return 0;
}
