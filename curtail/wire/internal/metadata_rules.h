// SPDX-License-Identifier: Apache-2.0
//
// metadata_rules.h - the metadata entries of a header block as they are sent.
//
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire::internal {

// Calls `send` with the entries that may be sent, as long as they fit one header block; others are left out. Values of
// "-bin" keys are base64 already.
void ForEachSendable(const Metadata& metadata,
                     absl::FunctionRef<void(std::string_view, std::string_view)> send);

// The same with all entries. REQUIRES: CheckMetadata() has passed them.
void ForEach(const Metadata& metadata, absl::FunctionRef<void(std::string_view, std::string_view)> send);

// wire::CheckMetadata(), which also says what ListBytes() would.
[[nodiscard]] absl::Status CheckMetadata(const Metadata& metadata, size_t* bytes);

// An upper bound of what the entries add to the size of a header list (RFC 9113, 6.5.2).
size_t ListBytes(const Metadata& metadata);

}  // namespace curtail::wire::internal
