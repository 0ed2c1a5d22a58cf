// SPDX-License-Identifier: Apache-2.0
//
// methods.h - the methods that a workload mixes. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/load/message/workload.h"

namespace curtail {

struct WorkloadMethod {
  std::string_view path;  // "/bank.Bank/Pay"; lives as long as the workload
  std::string name;       // "Pay"; "bank.Bank/Pay" where another service has a Pay
  uint64_t first = 0;     // its first request
};

// The methods of the first 10,000 requests, in the order of their first ones; at most 1,000.
std::vector<WorkloadMethod> MethodsOf(const Workload& workload);

}  // namespace curtail
