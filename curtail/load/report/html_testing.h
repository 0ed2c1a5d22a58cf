// SPDX-License-Identifier: Apache-2.0
//
// html_testing.h - whether a report is well-formed HTML, for tests of what is written.
#pragma once

#include <string>

namespace curtail {

// The first tag that is not closed as it should be; empty when all are.
std::string BadTag(const std::string& html);

}  // namespace curtail
