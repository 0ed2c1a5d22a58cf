// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a compressed message: the limit holds. What was inflated can be compressed and inflated again.

#include "curtail/wire/fuzz/fuzzing.h"
#include "curtail/wire/internal/compression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace curtail::wire;
  fuzz::Input input(data, size);
  const uint8_t mode = input.Byte();
#ifdef CURTAIL_ZSTD
  constexpr Encoding kEncodings[] = {Encoding::kGzip, Encoding::kDeflate, Encoding::kZstd};
#else
  constexpr Encoding kEncodings[] = {Encoding::kGzip, Encoding::kDeflate};
#endif
  const Encoding encoding = kEncodings[mode % std::size(kEncodings)];
  const size_t limit = size_t{mode} * 100;
  std::string out;
  const internal::Inflated result = internal::Inflate(encoding, input.Bytes(size), limit, &out);
  fuzz::Require(out.size() <= limit);
  if (result != internal::Inflated::kOk) return 0;
  std::string compressed, again;
  if (!internal::Compress(encoding, out, &compressed)) return 0;
  fuzz::Require(internal::Inflate(encoding, compressed, limit, &again) == internal::Inflated::kOk &&
                again == out);
  return 0;
}
