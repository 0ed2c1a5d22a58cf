// SPDX-License-Identifier: Apache-2.0
//
// configs_to_test.h - under which configs an application's test runs.
#pragma once

#include <string>
#include <vector>

#include "curtail/base/testing.h"

namespace curtail::apps {

// Under a sanitizer `few` alone: there the library's own tests run under all kinds of configs.
inline std::vector<std::string> ConfigsToTest(std::vector<std::string> few,
                                              const std::vector<std::string>& more) {
  if (!kSanitized) few.insert(few.end(), more.begin(), more.end());
  return few;
}

}  // namespace curtail::apps
