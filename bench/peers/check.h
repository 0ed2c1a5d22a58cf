// SPDX-License-Identifier: Apache-2.0
//
// check.h - whether a mid-tier does what it is measured for.
#pragma once

#include "absl/status/status.h"
#include "generator.h"
#include "servers.h"

namespace curtail::bench {

// Leaf by leaf: while that leaf is stopped a request is not answered, yet all the other leaves are called; and once the
// leaf runs again, the request is answered with as many bytes as it carried. FAILED_PRECONDITION says what is wrong.
absl::Status CheckFanOut(const Servers& servers, Generator& generator);

}  // namespace curtail::bench
