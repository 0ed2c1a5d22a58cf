// SPDX-License-Identifier: Apache-2.0
//
// grpc_status.h - how HTTP and HTTP/2 outcomes map to gRPC status codes, and gRPC status fields to
// absl::Status.
//
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/wire/internal/frame.h"

namespace curtail::wire::internal {

// The decimal text of a status code, as grpc-status carries it; static storage.
std::string_view StatusCodeText(absl::StatusCode code);

// The status in a grpc-status and a grpc-message field. A code that is no gRPC code becomes UNKNOWN.
absl::Status StatusFromFields(std::string_view code, std::string_view encoded_message);

// The status of a reply without grpc-status (gRPC's http-grpc-status-mapping page).
absl::Status StatusFromHttp(int http_status);

// The status of a call whose stream was closed with this HTTP/2 error code (gRPC over HTTP/2, "Errors").
absl::Status StatusFromReset(ErrorCode error_code);
// The code of a reset that stands for `status`, where it can no longer be sent: the way back, as far as there is one.
ErrorCode ResetOf(const absl::Status& status);

}  // namespace curtail::wire::internal
