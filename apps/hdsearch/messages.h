// SPDX-License-Identifier: Apache-2.0
//
// messages.h - vectors and neighbours on their way to the wire and back; shared by both tiers and the
// workload.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/hdsearch/index/top_k.h"
#include "apps/hdsearch/index/vector_store.h"
#include "hdsearch.pb.h"

namespace curtail::hdsearch {

// The vector in its shorter encoding.
inline void ToProto(const QueryVector& vector, Vector* proto) {
  if (!vector.bytes().empty()) {
    proto->set_uint8(vector.bytes().data(), vector.bytes().size());
  } else {
    proto->mutable_floats()->mutable_values()->Add(vector.floats().begin(), vector.floats().end());
  }
}
// Errors: INVALID_ARGUMENT when it is missing, has another dimension than the corpus, or a value is not
// finite.
[[nodiscard]] absl::StatusOr<QueryVector> FromProto(const Vector& proto, size_t dimension);

void ToProto(const std::vector<Neighbor>& neighbors, Neighbors* proto);
// Adds what a leaf found to `best`. Errors: INTERNAL when ids and distances differ in number.
[[nodiscard]] absl::Status AddTo(const Neighbors& proto, TopK* best);

}  // namespace curtail::hdsearch
