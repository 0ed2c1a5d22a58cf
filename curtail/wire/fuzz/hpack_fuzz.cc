// SPDX-License-Identifier: Apache-2.0
//
// Any sequence of header blocks against HpackDecoder, with nghttp2's inflater beside it: both hear the same
// fields, refuse the same block, and keep tables of one size.
//
// Differences that the RFC allows and that this target keeps out by the size of its blocks: nghttp2 refuses
// strings of more than 64 KiB, we take what a block holds.
//
// The input is a byte that chooses the limit of the table, and then blocks, each behind a byte that is a quarter of its length. What
// was decoded is also encoded by HpackEncoder and decoded again.

#include <algorithm>

#include "curtail/wire/fuzz/fuzzing.h"
#include "curtail/wire/hpack_testing.h"

namespace curtail::wire::internal {
namespace {

using fuzz::Require;

// Our encoder and a decoder of each kind at the other end.
class RoundTrip {
 public:
  void SetPeerTableSize(uint32_t bytes) {
    encoder_.SetPeerTableSize(bytes);
    oracle_.SetMaxTableBytes(bytes);
  }

  void Check(const Fields& fields, uint8_t choices) {
    std::string block;
    encoder_.Begin(&block);
    for (const auto& [name, value] : fields) {
      const auto indexing =
          (choices & 1) != 0 ? HpackEncoder::Indexing::kIndex : HpackEncoder::Indexing::kNone;
      const uint64_t generation = encoder_.generation();
      const size_t entries = encoder_.table_entries();
      encoder_.Encode(name, value, indexing, &block);
      Require(encoder_.table_entries() >= entries);
      Require((encoder_.table_entries() > entries) == (encoder_.generation() > generation));
      choices = static_cast<uint8_t>(choices >> 1 | choices << 7);
    }
    const Decoded expected{true, fields};
    Require(DecodeWith(decoder_, block) == expected && oracle_.Decode(block) == expected);
    Require(decoder_.table_bytes() == encoder_.table_bytes());
  }

 private:
  HpackEncoder encoder_;
  HpackDecoder decoder_;
  OracleDecoder oracle_;
};

void CheckBlocks(fuzz::Input& input) {
  const uint8_t choices = input.Byte();
  const uint32_t limit = kDefaultTableBytes << (choices & 3);
  HpackDecoder decoder(limit);
  OracleDecoder oracle(limit);
  RoundTrip round_trip;
  while (!input.empty()) {
    const std::string_view block = input.Bytes(size_t{4} * input.Byte());
    const Decoded decoded = DecodeWith(decoder, block);
    Require(decoded == oracle.Decode(block));
    if (!decoded.ok) return;
    Require(decoder.table_bytes() == oracle.table_bytes() &&
            decoder.table_entries() == oracle.table_entries());
    if ((choices & 4) != 0 && block.size() % 16 == 0) {
      round_trip.SetPeerTableSize(static_cast<uint32_t>(block.size()) * 20);
    }
    round_trip.Check(decoded.fields, choices);
  }
}

}  // namespace
}  // namespace curtail::wire::internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  curtail::wire::fuzz::Input input(data, size);
  curtail::wire::internal::CheckBlocks(input);
  return 0;
}
