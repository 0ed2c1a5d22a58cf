// SPDX-License-Identifier: Apache-2.0
//
// fence_end.h - the inline part of a Fence, in an object of its own, which a mutant replaces.
#pragma once

#include <cstdint>

#include "curtail/fence/fence.h"

namespace curtail {

// fence->End(path_class)
bool EndRequest(Fence* fence, uint8_t path_class);

}  // namespace curtail
