// SPDX-License-Identifier: Apache-2.0
//
// index_flags.h - the flags of the hash index, which the mid-tier and the offline commands share.
#pragma once

#include "apps/hdsearch/index/hash_index.h"
#include "curtail/rpc/flags.h"

namespace curtail::hdsearch {

inline void AddIndexFlags(Flags& flags, IndexOptions* index) {
  flags.Add("--tables", &index->tables, "Hash tables");
  flags.Add("--key-bits", &index->key_bits, "Bits a table keys on, 0: by the corpus's size");
  flags.Add("--signature-bits", &index->signature_bits, "Bits that rank candidates");
  flags.Add("--probes", &index->probes, "Buckets visited a query");
  flags.Add("--candidates", &index->candidates, "Images compared a query");
  flags.Add("--index-seed", &index->seed, "Seed of the hyperplanes");
}

}  // namespace curtail::hdsearch
