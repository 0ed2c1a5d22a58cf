// SPDX-License-Identifier: Apache-2.0
#include "tests/model/fence_end.h"

namespace curtail {

bool EndRequest(Fence* fence, uint8_t path_class) { return fence->End(path_class); }

}  // namespace curtail
