// SPDX-License-Identifier: Apache-2.0
//
// in_process_call.h - the calls of a batch that stay in this process.
#pragma once

#include "curtail/rpc/context.h"

namespace curtail::internal {

// Whether some channel of the batch leads to an InProcess.
bool StaysInProcess(const CallBatch& batch);

// CallAll() and StartAsync() for such a batch; its other channels are called beside them.
void CallAllInProcess(Context& ctx, const CallBatch& batch);
void StartAsyncInProcess(Context& ctx, const CallBatch& batch, void (*done)(void*), void* arg);

}  // namespace curtail::internal
