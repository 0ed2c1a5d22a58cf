// SPDX-License-Identifier: Apache-2.0
//
// stream_call.h - a call whose handler reads and writes messages one by one.
#pragma once

#include <atomic>
#include <cstdint>

#include "curtail/rpc/server/server_call.h"

namespace curtail::internal {

// Its handler begins when the call does, or with the whole request (MethodHandler::one_request). `held` counts the
// bytes of its connection's streams; the connection owns it.
ServerCall* NewStreamCall(std::atomic<int64_t>* held);

}  // namespace curtail::internal
