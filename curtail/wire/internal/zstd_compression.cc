// SPDX-License-Identifier: Apache-2.0
//
// A frame may ask for a window of gigabytes before its first byte: windows are bounded. So is the output, which grows to
// the limit and one byte more, whatever size the frame claims.
#include "curtail/wire/internal/zstd_compression.h"

#include <zstd.h>

#include <memory>

namespace curtail::wire::internal {
namespace {

constexpr int kLevel = 3;  // zstd's default
// 8 MiB, the largest that a decoder should accept from strangers (RFC 8878, section 3.1.1.1.2).
constexpr int kMaxWindowLog = 23;

struct FreeStream {
  void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
};

// Decodes one frame.
class ZstdInflater final : public Inflater {
 public:
  ZstdInflater(std::string_view bytes, size_t limit, std::string* out)
      : Inflater(limit, out), stream_(ZSTD_createDCtx()), in_{bytes.data(), bytes.size(), 0} {
    if (begun()) ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  bool begun() const { return stream_ != nullptr; }

 private:
  Decoded Decode(char* to, size_t room, size_t* done) override {
    ZSTD_outBuffer out = {to, room, 0};
    const size_t read_before = in_.pos;
    const size_t result = ZSTD_decompressStream(stream_.get(), &out, &in_);
    *done += out.pos;
    if (ZSTD_isError(result)) return Decoded::kMalformed;
    if (result == 0) return Decoded::kEnd;
    const bool cut = in_.pos == read_before && out.pos == 0;
    return cut ? Decoded::kMalformed : Decoded::kGoesOn;
  }
  bool AtEnd() const override { return in_.pos == in_.size; }

  const std::unique_ptr<ZSTD_DCtx, FreeStream> stream_;
  ZSTD_inBuffer in_;
};

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

std::unique_ptr<Inflater> MakeZstdInflater(std::string_view bytes, size_t limit, std::string* out) {
  auto inflater = std::make_unique<ZstdInflater>(bytes, limit, out);
  if (!inflater->begun()) return nullptr;
  return inflater;
}

}  // namespace curtail::wire::internal
