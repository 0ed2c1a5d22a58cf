// SPDX-License-Identifier: Apache-2.0
//
// top_table.h - the page of `curtail top`: tables that fit a terminal. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/curtail/observe/vitals.h"
#include "tools/curtail/term/screen.h"

namespace curtail::tool {

// By what `curtail top --sort` may sort: "name", "calls", "p99", "errors", "cpu", "memory".
std::vector<std::string> TopOrders();
// The largest first, but by name; services with a process that is not ready come before the others.
// REQUIRES: `order` is one of TopOrders().
void SortServices(std::string_view order, std::vector<ServiceVitals>* services);

// Moments of one page.
struct TopPage {
  std::string application;
  std::string time;  // of the day
  std::vector<ServiceVitals> services;
  std::vector<EdgeVitals> edges;
};
// The page, within `room`: columns that have no room are left out, the least important first; rows, the last first, but for
// a line that counts them; edges before anything else. A room of 0 columns or lines is unbounded.
std::vector<ScreenLine> TopLines(const TopPage& page, ScreenSize room);
// The same numbers as one line of JSON.
std::string TopJson(const TopPage& page, int64_t unix_ms, double seconds);

}  // namespace curtail::tool
