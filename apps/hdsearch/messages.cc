// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/messages.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace curtail::hdsearch {
namespace {

absl::Status CheckDimension(size_t got, size_t want) {
  if (got == want) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the query has ", got, " dimensions, the images of this corpus have ", want));
}

}  // namespace

absl::StatusOr<QueryVector> FromProto(const Vector& proto, size_t dimension) {
  if (proto.has_uint8()) {
    const std::string& bytes = proto.uint8();
    if (absl::Status status = CheckDimension(bytes.size(), dimension); !status.ok()) return status;
    return QueryVector::FromBytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  }
  if (!proto.has_floats()) return absl::InvalidArgumentError("the query has no vector");
  const auto& values = proto.floats().values();
  const std::span<const float> floats(values.data(), static_cast<size_t>(values.size()));
  if (absl::Status status = CheckDimension(floats.size(), dimension); !status.ok()) return status;
  const auto bad = std::find_if(floats.begin(), floats.end(), [](float v) { return !std::isfinite(v); });
  if (bad != floats.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("value ", bad - floats.begin(), " of the query is not a finite number"));
  }
  return QueryVector::FromFloats(floats);
}

void ToProto(const std::vector<Neighbor>& neighbors, Neighbors* proto) {
  proto->mutable_ids()->Reserve(static_cast<int>(neighbors.size()));
  proto->mutable_distances()->Reserve(static_cast<int>(neighbors.size()));
  for (const Neighbor& n : neighbors) {
    proto->add_ids(n.id);
    proto->add_distances(n.distance);
  }
}

absl::Status AddTo(const Neighbors& proto, TopK* best) {
  if (proto.ids_size() != proto.distances_size()) {
    return absl::InternalError(absl::StrCat("a leaf answered ", proto.ids_size(), " ids and ",
                                            proto.distances_size(), " distances"));
  }
  for (int i = 0; i < proto.ids_size(); ++i) best->Add({proto.distances(i), proto.ids(i)});
  return absl::OkStatus();
}

}  // namespace curtail::hdsearch
