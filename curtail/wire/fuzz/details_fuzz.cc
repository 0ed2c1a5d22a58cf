// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the google.rpc.Status of grpc-status-details-bin. What was decoded comes out of an encoding and a second
// decoding as it was.

#include "curtail/wire/fuzz/fuzzing.h"
#include "curtail/wire/internal/status_details.h"
#include "curtail/wire/metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace curtail::wire;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  absl::Status raw = absl::InternalError("");
  internal::DecodeDetails(bytes, &raw);
  absl::Status status = absl::InternalError("");
  internal::DecodeDetails(Base64Encode(bytes), &status);
  int payloads = 0;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord&) {
    ++payloads;
    fuzz::Require(!url.empty());
  });
  fuzz::Require(payloads <= internal::kMaxDetails);
  absl::Status again = absl::InternalError("");
  internal::DecodeDetails(internal::EncodeDetails(status, "m"), &again);
  fuzz::Require(again == status);
  return 0;
}
