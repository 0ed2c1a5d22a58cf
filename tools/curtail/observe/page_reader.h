// SPDX-License-Identifier: Apache-2.0
//
// page_reader.h - reads pages of HTTP admin ports, all at once.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail::tool {

struct PageWanted {
  std::string address;  // "unix:PATH" or a numeric HOST:PORT
  std::string path;
};

// The bodies, in the order of `wanted`, read at the same time. It takes until `deadline` at most, and 4 MiB a page; once
// `stop` is set, what has no end yet counts as late.
// Errors of a page: UNAVAILABLE (nobody listens, it is no HTTP), NOT_FOUND (a status other than 200),
// DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (too long).
std::vector<absl::StatusOr<std::string>> ReadPages(const std::vector<PageWanted>& wanted, Deadline deadline,
                                                   const std::atomic<bool>* stop = nullptr);

}  // namespace curtail::tool
