// SPDX-License-Identifier: Apache-2.0
//
// readiness.h - whether a program that was started can be called. Any thread.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/deploy/topology.h"
#include "curtail/rpc/tls.h"

namespace curtail::deploy {

// True if a connection to `address` is accepted.
bool Accepts(const std::string& address, Nanos timeout);

// How a server that speaks gRPC answers a health check: OK for SERVING. Errors: UNIMPLEMENTED when
// it has no health service, or one that does not know the server as a whole; UNAVAILABLE for
// NOT_SERVING; as a call. Without `tls` it asks by plain text.
absl::Status CheckHealth(const std::string& address, Nanos timeout,
                         std::shared_ptr<const ClientTls> tls = nullptr);

// OK if the program of `service` that listens at `address` can be called. Errors: why not.
absl::Status CheckReady(const ServiceSpec& service, const std::string& address, Nanos timeout,
                        std::shared_ptr<const ClientTls> tls = nullptr);

// The likely faults of a service that was not ready in time; `heard`: it said where it listens.
std::string ReadyHint(const ServiceSpec& service, bool heard);

}  // namespace curtail::deploy
