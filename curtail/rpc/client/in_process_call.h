// SPDX-License-Identifier: Apache-2.0
//
// in_process_call.h - the calls of a batch that stay in this process.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/service.h"
#include "curtail/rpc/stream.h"

namespace curtail::internal {

// True if some channel of the batch leads to an InProcess.
bool StaysInProcess(const CallBatch& batch);

// CallAll() and StartAsync() for such a batch; its other channels are called beside them.
void CallAllInProcess(Context& ctx, const CallBatch& batch);
void StartAsyncInProcess(Context& ctx, const CallBatch& batch, void (*done)(void*), void* arg);

// Why a call of `kind` must not begin whose handler would run with `ctx`; `method` is null if nobody knows its path.
// Errors: RESOURCE_EXHAUSTED if calls nest too deep, UNIMPLEMENTED, those of wire::CheckMetadata().
absl::Status CheckInProcess(const Context& ctx, std::string_view path, const MethodHandler* method,
                            MethodHandler::Kind kind);

// OpenStream() for a channel that leads to an InProcess; `suspends`: OpenAsyncStream() by a coroutine whose steps wait
// without a thread.
std::unique_ptr<ClientStreamCall> OpenInProcessStream(Context& ctx, Channel& channel, std::string_view path,
                                                      bool suspends);

}  // namespace curtail::internal
