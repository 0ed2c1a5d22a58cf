// SPDX-License-Identifier: Apache-2.0
//
// health_watch_call.h - a call that is told of the server's state, now and when it changes.
#pragma once

#include "curtail/rpc/server/server_call.h"

namespace curtail::internal {

// Its handler, MethodHandler::handler, writes the present state; an error ends the call behind it. The thread that
// receives runs it, so that a watcher takes no place of the queue, no thread and no fiber.
ServerCall* NewHealthWatchCall();

}  // namespace curtail::internal
