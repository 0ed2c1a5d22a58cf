// SPDX-License-Identifier: Apache-2.0
//
// report_hgrm.h - the percentile spectrum of a histogram as the text that HdrHistogram's tools
// read.
#pragma once

#include <string>

#include "curtail/base/histogram.h"
#include "curtail/load/report/result.h"

namespace curtail {

// Value in ms, percentile, count up to it and 1/(1-percentile), five steps each time the distance
// to 100 % halves. A trailer has mean, standard deviation, maximum and count. `wrk2 --latency` and
// HdrHistogram_c's hdr_percentiles_print() write the same form, so public plotters of .hgrm files
// read it. Pure function; any thread.
std::string HgrmText(const Histogram& histogram);

// The spectrum of every request of all runs together.
std::string ReportHgrm(const LoadReport& report);

}  // namespace curtail
