// SPDX-License-Identifier: Apache-2.0
//
// scan.h - answers queries by reading every document, to judge those that came from an index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/setalgebra/data/data_spec.h"

namespace curtail::setalgebra {

// For each query the documents of the collection that hold all its terms, rising. Terms as NormalTerm() gives
// them; there are no stop words here. A query without terms has no documents. Errors: those of reading.
[[nodiscard]] absl::StatusOr<std::vector<std::vector<uint32_t>>> ScanDocuments(
    const DataSpec& spec, const std::vector<std::vector<std::string>>& queries, int threads, bool quiet);

}  // namespace curtail::setalgebra
