// SPDX-License-Identifier: Apache-2.0
//
// A frame may ask for a window of gigabytes before its first byte: windows are bounded. So is the output, which grows to
// the limit and one byte more, whatever size the frame claims.
#include "curtail/wire/internal/zstd_compression.h"

#include <zstd.h>

#include <algorithm>
#include <memory>

namespace curtail::wire::internal {
namespace {

constexpr int kLevel = 3;  // zstd's default
// 8 MiB, the largest that a decoder should accept from strangers (RFC 8878, section 3.1.1.1.2).
constexpr int kMaxWindowLog = 23;
// The bytes decoded at first; from there on the output doubles.
constexpr size_t kFirstZstdOutput = 4096;

struct FreeStream {
  void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
};

// Decodes one frame, growing `out`.
Inflated InflateFrame(ZSTD_DCtx* stream, std::string_view bytes, size_t limit, std::string* out) {
  ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
  size_t done = 0;
  while (true) {
    if (done == out->size()) {
      // One byte more than the limit tells a message of that size from a longer one.
      if (out->size() > limit) return Inflated::kTooLong;
      out->resize(std::min(limit + 1, std::max(kFirstZstdOutput, 2 * out->size())));
    }
    ZSTD_outBuffer room = {out->data(), out->size(), done};
    const size_t read_before = in.pos;
    const size_t result = ZSTD_decompressStream(stream, &room, &in);
    if (ZSTD_isError(result)) return Inflated::kMalformed;
    const bool moved = in.pos > read_before || room.pos > done;
    done = room.pos;
    if (result == 0) break;
    if (!moved && done < out->size()) return Inflated::kMalformed;  // cut short
  }
  if (done > limit) return Inflated::kTooLong;
  out->resize(done);
  return in.pos == in.size ? Inflated::kOk : Inflated::kMalformed;
}

}  // namespace

bool CompressZstd(std::string_view message, std::string* out) {
  out->clear();
  if (message.size() < 2) return false;
  out->resize(message.size() - 1);  // more is no gain
  const size_t size = ZSTD_compress(out->data(), out->size(), message.data(), message.size(), kLevel);
  const bool shorter = !ZSTD_isError(size);
  out->resize(shorter ? size : 0);
  return shorter;
}

Inflated InflateZstd(std::string_view bytes, size_t limit, std::string* out) {
  out->clear();
  const std::unique_ptr<ZSTD_DCtx, FreeStream> stream(ZSTD_createDCtx());
  if (stream == nullptr) return Inflated::kMalformed;
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  limit = std::min(limit, std::string().max_size() - 1);
  const Inflated result = InflateFrame(stream.get(), bytes, limit, out);
  if (result != Inflated::kOk) std::string().swap(*out);
  return result;
}

}  // namespace curtail::wire::internal
