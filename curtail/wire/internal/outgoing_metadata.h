// SPDX-License-Identifier: Apache-2.0
//
// outgoing_metadata.h - which metadata entries may be sent, and how many of them one header block takes.
//
// Stateless; any thread.
#pragma once

#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire::internal {

// Calls `send` with the entries that may be sent, as long as they fit one header block; others are left out. Values of
// "-bin" keys are base64 already.
void ForEachSendable(const Metadata& metadata,
                     absl::FunctionRef<void(std::string_view, std::string_view)> send);

// Whether all entries may be sent and fit one header block. Errors: INVALID_ARGUMENT.
absl::Status CheckMetadata(const Metadata& metadata);

}  // namespace curtail::wire::internal
