// SPDX-License-Identifier: Apache-2.0
//
// unary_call.h - a call of one message in, and one message or status out.
#pragma once

#include "curtail/rpc/server/server_call.h"

namespace curtail::internal {

// For ServerCall::New().
ServerCall* NewUnaryCall();

}  // namespace curtail::internal
