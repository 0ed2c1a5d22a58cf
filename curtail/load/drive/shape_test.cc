// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/shape.h"

#include <unistd.h>
#include <algorithm>
#include <cmath>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/load/drive/internal/shapes.h"
#include "curtail/load/drive/schedule.h"
#include "curtail/load/report/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

RateCurve Parse(std::string_view spec, std::optional<Nanos> length, uint64_t seed = 1) {
  absl::StatusOr<RateCurve> curve = ParseShape(spec, {.length = length, .seed = seed});
  EXPECT_TRUE(curve.ok()) << curve.status();
  return *std::move(curve);
}

std::string ErrorOf(std::string_view spec, const ShapeOptions& options = {.length = seconds(10)}) {
  const absl::Status status = ParseShape(spec, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec;
  return status.ToString();
}

std::string CsvErrorOf(std::string_view text) {
  const absl::Status status = ParseRateCsv(text, "day.csv").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return status.ToString();
}

// A file for the time of a test.
class TemporaryCsv {
 public:
  explicit TemporaryCsv(std::string_view text) : path_(testing::TempDir() + "shape_test_XXXXXX.csv") {
    const int fd = mkstemps(path_.data(), 4);
    EXPECT_GE(fd, 0) << path_;
    std::ofstream(path_, std::ios::binary) << text;
    close(fd);
  }
  ~TemporaryCsv() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Shape, ConstantStepsAndRamp) {
  const RateCurve constant = Parse("constant:500", seconds(4));
  EXPECT_DOUBLE_EQ(constant.total(), 2000);
  EXPECT_EQ(constant.length(), seconds(4));

  const RateCurve steps = Parse("steps:100,500, 2000", seconds(9));
  EXPECT_DOUBLE_EQ(steps.RateAt(milliseconds(2999)), 100);
  EXPECT_DOUBLE_EQ(steps.RateAt(seconds(3)), 500);
  EXPECT_DOUBLE_EQ(steps.RateAt(milliseconds(8999)), 2000);
  EXPECT_NEAR(steps.total(), 7800, 1e-6);

  const RateCurve ramp = Parse("ramp:100..5000", seconds(10));
  EXPECT_DOUBLE_EQ(ramp.mean_per_s(), 2550);
  EXPECT_NEAR(ramp.RateAt(seconds(5)), 2550, 1e-6);
  EXPECT_DOUBLE_EQ(Parse("ramp:5000..0", seconds(10)).RateAt(Nanos(0)), 5000);
}

TEST(Shape, AFlashCrowdLastsASecondInTheMiddle) {
  const RateCurve crowd = Parse("flash-crowd:100..8000", seconds(11));
  EXPECT_DOUBLE_EQ(crowd.RateAt(seconds(5) - Nanos(1)), 100);
  EXPECT_DOUBLE_EQ(crowd.RateAt(seconds(5)), 8000);
  EXPECT_DOUBLE_EQ(crowd.RateAt(seconds(6) - Nanos(1)), 8000);
  EXPECT_DOUBLE_EQ(crowd.RateAt(seconds(6)), 100);
  EXPECT_NEAR(crowd.total(), 9000, 1e-6);
  EXPECT_NEAR(Parse("flash-crowd:0..900", milliseconds(300)).total(), 90, 1e-6) << "a third of a short run";
}

TEST(Shape, ADiurnalLoadIsACosine) {
  const RateCurve day = Parse("diurnal:100..2000", hours(24));
  EXPECT_NEAR(day.RateAt(Nanos(0)), 100, 1e-6);
  EXPECT_NEAR(day.RateAt(hours(12)), 2000, 1e-6);
  EXPECT_NEAR(day.mean_per_s(), 1050, 1e-6);
  for (int hour = 0; hour < 24; ++hour) {
    EXPECT_NEAR(day.RateAt(hours(hour)), 1050 - 950 * std::cos(2 * 3.14159265358979 * hour / 24), 1e-3)
        << hour;
    // Between its corners the pieces are under 0.1 % of the swing off.
    const double at = hour + 1.0 / 8;
    EXPECT_NEAR(day.RateAt(hours(hour) + Nanos(hours(1)) / 8),
                1050 - 950 * std::cos(2 * 3.14159265358979 * at / 24), 1.9);
  }
}

TEST(Shape, BurstsHaveTwoRatesAndTheirDwells) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const RateCurve bursts = Parse("bursts:200..2000,1s,100ms", seconds(5000), seed);
    double in_low = 0, in_high = 0;
    std::vector<double> low_dwells;
    for (const RateCurve::Piece& piece : bursts.pieces()) {
      const double rate = piece.per_ns * 1e9;
      if (std::abs(rate - 200) < 1e-6) {
        in_low += piece.length_ns;
        low_dwells.push_back(piece.length_ns / 1e9);
      } else {
        EXPECT_NEAR(rate, 2000, 1e-6);
        in_high += piece.length_ns;
      }
    }
    // About 4545 dwells of each kind: their sums vary by 1.5 %.
    EXPECT_NEAR(in_high / (in_low + in_high), 1.0 / 11, 0.006);
    EXPECT_NEAR(static_cast<double>(low_dwells.size()), 4545, 4 * 67);
    EXPECT_LT(AndersonDarlingExponential(low_dwells), 6.0) << "exponential with mean 1 s";
  }
  EXPECT_EQ(Parse("bursts:200..2000", seconds(100), 3).total(),
            Parse("bursts:200..2000,1s,100ms", seconds(100), 3).total());
  EXPECT_NE(Parse("bursts:200..2000", seconds(100), 3).total(),
            Parse("bursts:200..2000", seconds(100), 4).total());
}

TEST(Shape, BurstsStartInEquilibrium) {
  int high = 0;
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    high += Parse("bursts:200..2000,1s,100ms", milliseconds(1), seed).RateAt(Nanos(0)) > 1000;
  }
  EXPECT_NEAR(high / 5000.0, 1.0 / 11, 4 * 0.0041) << "seeds 1 to 5000";
}

TEST(Shape, BurstsAreNotDrawnFromTheSameNumbersAsTheArrivals) {
  // The draws of a schedule with the same seed, against the dwells in units of their means.
  constexpr uint64_t kSeed = 9;
  const RateCurve bursts = Parse("bursts:500..2000,2ms,500us", seconds(20), kSeed);
  std::vector<double> dwells, gaps;
  for (const RateCurve::Piece& piece : bursts.pieces()) {
    dwells.push_back(piece.length_ns / (piece.per_ns * 1e9 < 1000 ? 2e6 : 5e5));
  }
  ASSERT_GT(dwells.size(), 10'000u);
  Rng rng(kSeed);
  for (size_t i = 0; i < dwells.size() + 3; ++i) gaps.push_back(rng.Exponential(1));
  for (size_t shift = 0; shift <= 3; ++shift) {
    const double r = Spearman(dwells, std::span(gaps).subspan(shift, dwells.size())).r;
    EXPECT_LT(std::abs(r), 0.04) << "seed " << kSeed << ", shift " << shift;
  }
}

TEST(Shape, ArrivalsFollowEveryShape) {
  std::vector<std::string> specs{"steps:100,4000,0,2000", "ramp:0..4000",     "flash-crowd:500..8000",
                                 "diurnal:100..4000",     "bursts:200..9000", "bursts:0..5000,2ms,1ms"};
  for (const internal::ShippedShape& shape : internal::ShippedShapes())
    specs.push_back(std::string(shape.name) + ":4000");
  for (const std::string& spec : specs) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(testing::Message() << spec << ", seed " << seed);
      const absl::StatusOr<Schedule> schedule =
          Schedule::Make(Parse(spec, seconds(10), seed), Gaps::kPoisson, seed);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      Arrivals arrivals = schedule->arrivals();
      std::vector<double> gaps;
      double last = 0;
      while (const std::optional<Nanos> due = arrivals.Next()) {
        gaps.push_back(schedule->curve().Expected(*due) - last);
        last += gaps.back();
      }
      ASSERT_GT(gaps.size(), 1000u);
      for (double& gap : gaps) gap = std::max(gap, 1e-7);  // times are whole ns
      EXPECT_LT(AndersonDarlingExponential(gaps), 6.0);
      const double total = schedule->curve().total();
      EXPECT_NEAR(static_cast<double>(gaps.size()), total, 4 * std::sqrt(total));
    }
  }
}

TEST(Shape, ShippedShapesAreRelativeAndStretch) {
  ASSERT_EQ(internal::ShippedShapes().size(), 7u);
  for (const internal::ShippedShape& shape : internal::ShippedShapes()) {
    SCOPED_TRACE(shape.name);
    const absl::StatusOr<std::vector<RatePoint>> points = ParseRateCsv(shape.csv, shape.name);
    ASSERT_TRUE(points.ok()) << points.status();
    EXPECT_GE(points->size(), 30u);
    EXPECT_LE(points->size(), 300u);
    double peak = 0;
    for (const RatePoint& p : *points) {
      peak = std::max(peak, p.per_s);
      EXPECT_GT(p.per_s, 0);
    }
    EXPECT_EQ(peak, 1);
    const std::string spec = std::string(shape.name) + ":2000";
    const RateCurve minute = Parse(spec, seconds(61));
    EXPECT_EQ(minute.length(), seconds(61));
    EXPECT_NEAR(minute.peak_per_s(), 2000, 1e-6);
    const RateCurve own = Parse(spec, std::nullopt);
    EXPECT_EQ(own.length(), points->back().at);
    EXPECT_NEAR(own.mean_per_s(), minute.mean_per_s(), 1e-6 * own.mean_per_s());
  }
}

TEST(Shape, ShippedShapesHaveThePublishedMeans) {
  // From the servers an ideal policy needed on average, in table III of AutoScale: each full one takes 60 of
  // the peak's 800 requests/s, and about half of one is idle.
  const struct {
    const char* name;
    double servers;
  } published[] = {{"slow-variation", 4.0}, {"quick-variation", 8.2}, {"big-spike", 4.5},
                   {"dual-phase", 5.9},     {"large-variation", 7.1}, {"steep-tri-phase", 5.1}};
  for (const auto& p : published) {
    const double mean = Parse(std::string(p.name) + ":800", seconds(100)).mean_per_s();
    EXPECT_NEAR(mean, (p.servers - 0.5) * 60, 30) << p.name;
  }
}

TEST(Shape, ATraceIsReadAsStraightLines) {
  const TemporaryCsv file("# made by hand\ntime_s,rate_per_s\n0,100\n10,300\n10,50\r\n\n 20 , 50\n");
  const RateCurve own = Parse(file.path(), std::nullopt);
  EXPECT_EQ(own.length(), seconds(20));
  EXPECT_NEAR(own.RateAt(seconds(5)), 200, 1e-6);
  EXPECT_NEAR(own.RateAt(seconds(10)), 50, 1e-6);
  EXPECT_NEAR(own.total(), 2500, 1e-6);
  EXPECT_EQ(Parse(file.path(), seconds(5)).length(), seconds(5)) << "a longer trace is cut";
  EXPECT_NEAR(Parse(file.path(), seconds(5)).total(), 750, 1e-6);
  EXPECT_EQ(Parse(file.path(), seconds(99)).length(), seconds(20)) << "a shorter one ends";

  const absl::StatusOr<RateCurve> scaled =
      ParseShape(file.path(), {.length = seconds(4), .rate_scale = 10, .time_scale = 0.25});
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_EQ(scaled->length(), seconds(4)) << "cut after it is scaled";
  EXPECT_NEAR(scaled->RateAt(seconds(1)), 1800, 1e-6);
  EXPECT_NEAR(scaled->RateAt(seconds(3)), 500, 1e-6);
}

TEST(Shape, ATraceOfOneRateNeedsALength) {
  const TemporaryCsv file("1700000000,70\n");
  EXPECT_NEAR(Parse(file.path(), seconds(3)).total(), 210, 1e-6);
  EXPECT_THAT(ErrorOf(file.path(), {}), HasSubstr("only one time"));
  const TemporaryCsv zero("0,0\n10,0\n");
  EXPECT_THAT(ErrorOf(zero.path()), HasSubstr("0 all the time"));
}

TEST(Shape, MissingFilesAreNamed) {
  for (const char* path : {"/nowhere/at/all.csv", "no-such-trace.csv", "/"}) {
    const absl::Status status = ParseShape(path, {.length = seconds(1)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(status.ToString(), HasSubstr(path));
  }
}

TEST(Shape, ScalesRates) {
  const absl::StatusOr<RateCurve> formula =
      ParseShape("ramp:100..500", {.length = seconds(2), .rate_scale = 3});
  ASSERT_TRUE(formula.ok()) << formula.status();
  EXPECT_NEAR(formula->peak_per_s(), 1500, 1e-6);
  const absl::StatusOr<RateCurve> shipped =
      ParseShape("big-spike:100", {.rate_scale = 0.5, .time_scale = 0.01});
  ASSERT_TRUE(shipped.ok()) << shipped.status();
  EXPECT_NEAR(shipped->peak_per_s(), 50, 1e-6);
  EXPECT_EQ(shipped->length(), seconds(72));
  EXPECT_THAT(ErrorOf("ramp:1..2", {.length = seconds(1), .time_scale = 2}), HasSubstr("for traces"));
  EXPECT_THAT(ErrorOf("big-spike:100", {.length = seconds(1), .time_scale = 2}), HasSubstr("not both"));
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e30}) {
    EXPECT_FALSE(ParseShape("constant:5", {.length = seconds(1), .rate_scale = bad}).ok()) << bad;
    EXPECT_FALSE(ParseShape("big-spike:5", {.time_scale = bad}).ok()) << bad;
  }
}

TEST(Shape, ErrorsSayWhatWouldBeRight) {
  EXPECT_THAT(ErrorOf("sinus:5"), HasSubstr("known are constant:500, steps:100,500,2000, ramp:100..5000"));
  EXPECT_THAT(ErrorOf("sinus:5"), HasSubstr("big-spike:PEAK, dual-phase:PEAK"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("known are"));
  EXPECT_THAT(ErrorOf("constant:-5"), HasSubstr("\"-5\" is not a rate"));
  EXPECT_THAT(ErrorOf("constant:0"), HasSubstr("more than 0"));
  EXPECT_THAT(ErrorOf("ramp:5"), HasSubstr("an example is ramp:100..5000"));
  EXPECT_THAT(ErrorOf("diurnal:9..5"), HasSubstr("goes down"));
  EXPECT_THAT(ErrorOf("bursts:1..2,1s"), HasSubstr("both mean times or none"));
  EXPECT_THAT(ErrorOf("bursts:1..2,1s,0s"), HasSubstr("\"0s\" is not a mean time"));
  EXPECT_THAT(ErrorOf("bursts:1..2,100us,100us", {.length = hours(24)}), HasSubstr("too many"));
  EXPECT_THAT(ErrorOf("constant:5", {}), HasSubstr("no length of its own"));
  EXPECT_THAT(ErrorOf("constant:5", {.length = Nanos(0)}), HasSubstr("longer than 0 s"));
  EXPECT_THAT(ErrorOf("large-variation"), HasSubstr("large-variation:2000"));
  EXPECT_THAT(ErrorOf("steps:1\n\x01"), HasSubstr("\\n\\001"));
  for (const char* bad :
       {"constant", "constant:", "constant:x", "constant:nan", "constant:inf", "constant:1e8",
        "steps:", "steps:1,,2", "ramp:..", "ramp:1..", "ramp:0..0", "flash-crowd:1", "bursts:1..2,1s,1s,1s",
        "big-spike:0", "big-spike:-1", "Constant:5", ":", "::"}) {
    EXPECT_FALSE(ErrorOf(bad).empty());
  }
}

TEST(RateCsv, CountsTimesFromTheFirstAndTakesAHeader) {
  const auto points = ParseRateCsv(
      "\xef\xbb\xbf"
      "when,how many\n1700000000,5\n1700000060.5,1e2",
      "day.csv");
  ASSERT_TRUE(points.ok()) << points.status();
  ASSERT_EQ(points->size(), 2u);
  EXPECT_EQ((*points)[0].at, Nanos(0));
  EXPECT_EQ((*points)[1].at, milliseconds(60500));
  EXPECT_EQ((*points)[1].per_s, 100);
}

TEST(RateCsv, NamesTheLineThatIsWrong) {
  EXPECT_THAT(CsvErrorOf(""), HasSubstr("day.csv has no lines"));
  EXPECT_THAT(CsvErrorOf("# only this\n\n"), HasSubstr("no lines"));
  EXPECT_THAT(CsvErrorOf("time_s,rate_per_s\n"), HasSubstr("no lines"));
  EXPECT_THAT(CsvErrorOf("0,1\n# note\n5,1\n3,1\n"), HasSubstr("day.csv:4: the time is before"));
  EXPECT_THAT(CsvErrorOf("0,1\n1,-1\n"), HasSubstr("day.csv:2: a rate of -1"));
  EXPECT_THAT(CsvErrorOf("0,1\n1,1e8\n"), HasSubstr("day.csv:2: a rate"));
  EXPECT_THAT(CsvErrorOf("0,1\n1,1\n1,2\n1,3\n"), HasSubstr("day.csv:4: the third rate"));
  EXPECT_THAT(CsvErrorOf("0,1\n1e9,1\n"), HasSubstr("day.csv:2: the time is more than 100 days"));
  EXPECT_THAT(CsvErrorOf("a,b\nc,d\n"), HasSubstr("day.csv:2: \"c,d\" is not"));
  for (const char* line :
       {"5", "5;6", "5,6,7", "x,6", "5,x", "nan,6", "5,nan", "inf,1", "5,", ",5", "\x80\xff"}) {
    EXPECT_THAT(CsvErrorOf(std::string("0,1\n") + line), HasSubstr("day.csv:2: ")) << line;
  }
  EXPECT_THAT(CsvErrorOf("0,1\n" + std::string(100'000, 'x')), HasSubstr("..."))
      << "long lines are cut short";
}

TEST(RateCsv, TakesAnyBytesWithoutACrash) {
  // Lines of the pieces that traces are made of, in any order.
  const std::string pieces[] = {"0",   "1",   "9",     ".",      ",",
                                "\n",  "-",   "e",     "#",      " ",
                                "\r",  "nan", "1e308", "time_s", std::string(1, '\0'),
                                "\xff"};
  int read = 0;
  for (uint64_t seed = 1; seed <= 20'000; ++seed) {
    Rng rng(seed);
    std::string text;
    for (uint64_t i = rng.Below(20); i > 0; --i) {
      const bool whole = rng.Below(4) != 0;  // a line that may be right, or a piece of one
      text += whole ? Join(i % 7, ".5,", rng.Below(9), "e1\n") : pieces[rng.Below(std::size(pieces))];
    }
    const auto points = ParseRateCsv(text, "x");
    if (!points.ok()) continue;
    ++read;
    for (const RatePoint& p : *points) {
      EXPECT_TRUE(p.at >= Nanos(0) && p.per_s >= 0 && p.per_s <= RateCurve::kMaxPerS) << "seed " << seed;
    }
    const absl::Status made = RateCurve::Make(*points, seconds(1)).status();
    EXPECT_TRUE(made.ok() || made.ToString().find("0 all the time") != std::string::npos)
        << made << ", seed " << seed;
  }
  EXPECT_GT(read, 100) << "some of them are traces";
}

}  // namespace
}  // namespace curtail
