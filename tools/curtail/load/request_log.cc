// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/request_log.h"

#include "absl/strings/str_format.h"

namespace curtail::tool {

std::string RequestLog::Csv() const {
  std::string csv = "run,due_us,latency_us,ok\n";
  const auto us = [](Nanos t) { return static_cast<double>(t.count()) / 1e3; };
  for (const Entry& entry : entries_) {
    absl::StrAppendFormat(&csv, "%d,%.3f,%.3f,%d\n", entry.run, us(entry.due), us(entry.latency), entry.ok);
  }
  return csv;
}

}  // namespace curtail::tool
