// SPDX-License-Identifier: Apache-2.0
//
// The interfaces of the built-in services as gRPC defines them: names and numbers are the protocol's.
#include "curtail/rpc/server/builtin/builtin_services.h"

namespace curtail::internal {

const BuiltinProto kHealthProto = {"grpc/health/v1/health.proto", R"(
syntax = "proto3";
package grpc.health.v1;
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse {
  enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
  ServingStatus status = 1;
}
service Health {
  rpc Check(HealthCheckRequest) returns (HealthCheckResponse);
  rpc Watch(HealthCheckRequest) returns (stream HealthCheckResponse);
}
)"};

#define CURTAIL_REFLECTION_PROTO(package)                                                                \
  "syntax = \"proto3\"; package " package                                                                \
  "; "                                                                                                   \
  "service ServerReflection { "                                                                          \
  "rpc ServerReflectionInfo(stream ServerReflectionRequest) returns (stream ServerReflectionResponse); " \
  "} "                                                                                                   \
  "message ServerReflectionRequest { "                                                                   \
  "string host = 1; "                                                                                    \
  "oneof message_request { "                                                                             \
  "string file_by_filename = 3; "                                                                        \
  "string file_containing_symbol = 4; "                                                                  \
  "ExtensionRequest file_containing_extension = 5; "                                                     \
  "string all_extension_numbers_of_type = 6; "                                                           \
  "string list_services = 7; "                                                                           \
  "} "                                                                                                   \
  "} "                                                                                                   \
  "message ExtensionRequest { string containing_type = 1; int32 extension_number = 2; } "                \
  "message ServerReflectionResponse { "                                                                  \
  "string valid_host = 1; "                                                                              \
  "ServerReflectionRequest original_request = 2; "                                                       \
  "oneof message_response { "                                                                            \
  "FileDescriptorResponse file_descriptor_response = 4; "                                                \
  "ExtensionNumberResponse all_extension_numbers_response = 5; "                                         \
  "ListServiceResponse list_services_response = 6; "                                                     \
  "ErrorResponse error_response = 7; "                                                                   \
  "} "                                                                                                   \
  "} "                                                                                                   \
  "message FileDescriptorResponse { repeated bytes file_descriptor_proto = 1; } "                        \
  "message ExtensionNumberResponse { string base_type_name = 1; repeated int32 extension_number = 2; } " \
  "message ListServiceResponse { repeated ServiceResponse service = 1; } "                               \
  "message ServiceResponse { string name = 1; } "                                                        \
  "message ErrorResponse { int32 error_code = 1; string error_message = 2; } "

const BuiltinProto kReflectionProto = {"grpc/reflection/v1/reflection.proto",
                                       CURTAIL_REFLECTION_PROTO("grpc.reflection.v1")};
const BuiltinProto kReflectionAlphaProto = {"grpc/reflection/v1alpha/reflection.proto",
                                            CURTAIL_REFLECTION_PROTO("grpc.reflection.v1alpha")};

}  // namespace curtail::internal
