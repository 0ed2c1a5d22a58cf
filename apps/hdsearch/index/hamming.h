// SPDX-License-Identifier: Apache-2.0
//
// hamming.h - distances between bit signatures, with the population-count instructions the CPU has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace curtail::hdsearch {

// distances[i] = number of bits in which signature ids[i] of `codes` (rows of `words` 64-bit words) and
// `query` differ. Pure: any thread.
void HammingDistances(const uint64_t* codes, size_t words, const uint64_t* query,
                      std::span<const uint32_t> ids, uint16_t* distances);

}  // namespace curtail::hdsearch
