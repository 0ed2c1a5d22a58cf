// SPDX-License-Identifier: Apache-2.0
//
// ids.h - messages about one id.
#pragma once

#include <cstdint>

#include "accounts.curtail.h"

namespace curtail::apps {

// The request for one id.
inline IdCount OneId() {
  IdCount one;
  one.set_count(1);
  return one;
}

inline Ids IdsOf(uint64_t id) {
  Ids ids;
  ids.add_ids(id);
  return ids;
}

}  // namespace curtail::apps
