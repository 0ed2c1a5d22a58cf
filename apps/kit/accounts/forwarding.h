// SPDX-License-Identifier: Apache-2.0
//
// forwarding.h - answers a method by a method of another service, as its option curtail.apps.forward says (access.proto).
#pragma once

#include "absl/status/statusor.h"
#include "apps/kit/accounts/sessions.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/service.h"
#include "google/protobuf/descriptor.h"

namespace curtail::apps {

// Returns a handler of `method`. `to` is the method that its option names, or null if there is none, and `channel` leads to
// that method's service. Both outlive the handler, as `sessions` does, whose Admit() admits the callers.
// Errors: INVALID_ARGUMENT, which names `method` and the mistake in its option.
absl::StatusOr<CoroutineHandler> ForwardingOf(const google::protobuf::MethodDescriptor& method,
                                              const google::protobuf::MethodDescriptor* to, Channel* channel,
                                              const Sessions& sessions);

}  // namespace curtail::apps
