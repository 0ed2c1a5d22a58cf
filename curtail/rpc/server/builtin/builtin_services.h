// SPDX-License-Identifier: Apache-2.0
//
// builtin_services.h - what every server serves besides its own: health checks and reflection.
//
// Their few messages are encoded by hand: generated code would register the same descriptors that a program
// may also have from another gRPC library, which protobuf answers by ending the process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/rpc/service.h"

namespace curtail::internal {

// grpc.health.v1.Health: Check answers SERVING for "" and each of `names`, otherwise NOT_FOUND; NOT_SERVING for them
// while draining() holds. Watch sends the same, SERVICE_UNKNOWN instead of an error, and ends with UNAVAILABLE when the
// server drains (health_watch_call.h).
std::unique_ptr<Service> NewHealthService(std::vector<std::string> names, std::function<bool()> draining);

// grpc.reflection.v1 and v1alpha ServerReflection, over the descriptors linked into the program. `names` are the services
// to list; `health` says that Health is served too. Of services, only the methods for whose path served() holds exist.
// Each of the two has kMostReflectionStreams at once. Beyond, the one whose last request is longest ago ends with
// RESOURCE_EXHAUSTED; so does each beyond kMostReflectionStreamsOfClient of a connection.
inline constexpr int kMostReflectionStreams = 16, kMostReflectionStreamsOfClient = 4;
std::vector<std::unique_ptr<Service>> NewReflectionServices(
    std::vector<std::string> names, bool health, std::function<bool(std::string_view path)> served);

// The text of the built-in services' .proto files, for reflection: file name and source.
struct BuiltinProto {
  const char* file;
  const char* source;
};
extern const BuiltinProto kHealthProto;
extern const BuiltinProto kReflectionProto;
extern const BuiltinProto kReflectionAlphaProto;

}  // namespace curtail::internal
