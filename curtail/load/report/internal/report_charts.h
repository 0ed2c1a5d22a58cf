// SPDX-License-Identifier: Apache-2.0
//
// report_charts.h - the charts of a load report: over time and over percentiles. Pure functions; any thread.
#pragma once

#include <string>

#include "curtail/load/report/internal/palette.h"
#include "curtail/load/report/result.h"

namespace curtail::internal {

// "870 us", "2.15 ms", "1.5 s": three digits.
std::string DurationText(Nanos t);
// "87", "1.25k", "3M".
std::string NumberText(double number);

// The colours of the configs that the server had in the first `runs` runs.
Palette ConfigPalette(const LoadReport& report, size_t runs);

// Latency, throughput and calls in flight over the time of a run, one below the other; empty without a series.
std::string TimeCharts(const LoadResult& run, const Palette& palette);

// The whole distribution of latency, a line a run, with 95 % bands; empty when nothing was measured.
std::string SpectrumChart(const LoadReport& report);

}  // namespace curtail::internal
