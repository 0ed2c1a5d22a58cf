// SPDX-License-Identifier: Apache-2.0
//
// status_details.h - the payloads of an absl::Status as grpc-status-details-bin carries them: a serialized
// google.rpc.Status, in base64.
//
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace curtail::wire::internal {

// More details than this of one status are ignored.
inline constexpr int kMaxDetails = 64;

// The field's value for the payloads of `status`, whose names are type URLs; `message` stands for its text. Empty if
// the status has no payload. Work and result are linear in the payloads.
std::string EncodeDetails(const absl::Status& status, std::string_view message);

// Adds the details in the field's value to `status`, which is not OK, as payloads. Of several with one type URL the
// first stays. Malformed bytes end the decoding: the details ahead of them stay.
void DecodeDetails(std::string_view base64, absl::Status* status);

}  // namespace curtail::wire::internal
