// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/compression.h"

#include <isa-l/igzip_lib.h>
#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#ifdef CURTAIL_ZSTD
#include "curtail/wire/internal/zstd_compression.h"
#endif

namespace curtail::wire::internal {
namespace {

// zlib's: the largest window, and the format. gzip's header is 16 more.
int WindowBits(Encoding encoding) { return MAX_WBITS + (encoding == Encoding::kGzip ? 16 : 0); }

// zlib does not write to its input.
Bytef* BytesOf(std::string_view text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text.data())); }

// The bytes inflated at first; the output then doubles.
constexpr size_t kFirstOutput = 4096;
// As much is cleared at a time for what is inflated next.
constexpr size_t kMostCleared = 256u << 10;
// A longer message gets room up to its limit at once, which costs address space until it is written, and no copies later: to
// double 16 MiB takes 20 ms of a thread that others wait for.
constexpr size_t kLongOutput = 1u << 20;
constexpr size_t kMostReserved = 64u << 20;

// By ISA-L: where a few bytes become many, it takes less than half of zlib's time.
class IsalInflater final : public Inflater {
 public:
  IsalInflater(Encoding encoding, std::string_view bytes, size_t limit, std::string* out)
      : Inflater(limit, out) {
    isal_inflate_init(&state_);
    state_.crc_flag = encoding == Encoding::kGzip ? ISAL_GZIP : ISAL_ZLIB;
    state_.next_in = BytesOf(bytes);
    state_.avail_in = static_cast<uint32_t>(bytes.size());
  }

 private:
  Decoded Decode(char* to, size_t room, size_t* done) override {
    state_.next_out = reinterpret_cast<uint8_t*>(to);
    state_.avail_out = static_cast<uint32_t>(std::min<size_t>(room, UINT32_MAX));
    const uint32_t before = state_.avail_out;
    const int result = isal_inflate(&state_);
    *done += before - state_.avail_out;
    if (result != ISAL_DECOMP_OK) return Decoded::kMalformed;
    if (state_.block_state == ISAL_BLOCK_FINISH) return Decoded::kEnd;
    return state_.avail_out > 0 ? Decoded::kMalformed : Decoded::kGoesOn;  // cut short
  }
  bool AtEnd() const override {
    return state_.avail_in == 0 && state_.read_in_length < 8;  // bits that it took ahead
  }

  inflate_state state_;  // set by isal_inflate_init()
};
static_assert(sizeof(IsalInflater) <= kInflaterBytes);

}  // namespace

std::string_view EncodingName(Encoding encoding) {
  switch (encoding) {
    case Encoding::kGzip:
      return "gzip";
    case Encoding::kDeflate:
      return "deflate";
#ifdef CURTAIL_ZSTD
    case Encoding::kZstd:
      return "zstd";
#endif
    default:
      return "identity";
  }
}

std::optional<Encoding> EncodingOf(std::string_view name) {
  for (const Encoding encoding :
       {Encoding::kIdentity, Encoding::kGzip, Encoding::kDeflate, Encoding::kZstd}) {
    if (name == EncodingName(encoding)) return encoding;
  }
  return std::nullopt;
}

bool Compress(Encoding encoding, std::string_view message, std::string* out) {
#ifdef CURTAIL_ZSTD
  if (encoding == Encoding::kZstd) return CompressZstd(message, out);
#else
  if (encoding == Encoding::kZstd) return false;
#endif
  constexpr int kMemoryLevel = 8;
  out->clear();
  if (message.size() < 2 || message.size() > UINT_MAX) return false;
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WindowBits(encoding), kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return false;
  }
  out->resize(message.size() - 1);  // more is no gain
  stream.next_in = BytesOf(message);
  stream.avail_in = static_cast<uInt>(message.size());
  stream.next_out = reinterpret_cast<Bytef*>(out->data());
  stream.avail_out = static_cast<uInt>(out->size());
  const bool shorter = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out->resize(shorter ? stream.total_out : 0);
  deflateEnd(&stream);
  return shorter;
}

Inflated Inflater::Step(size_t most) {
  const size_t until = done_ + std::min(most, limit_ + 1 - done_);
  while (true) {
    if (done_ == out_->size()) {
      // One byte more than the limit tells a message of that size from a longer one.
      if (done_ > limit_) return Inflated::kTooLong;
      if (done_ >= kLongOutput) out_->reserve(std::min(limit_ + 1, kMostReserved));
      out_->resize(std::min(limit_ + 1, done_ + std::clamp(done_, kFirstOutput, kMostCleared)));
    }
    const size_t room = std::min(out_->size(), until) - done_;
    if (room == 0) return Inflated::kMore;
    const Decoded decoded = Decode(out_->data() + done_, room, &done_);
    if (decoded == Decoded::kGoesOn) continue;
    if (decoded == Decoded::kMalformed) return Inflated::kMalformed;
    if (done_ > limit_) return Inflated::kTooLong;
    if (!AtEnd()) return Inflated::kMalformed;
    out_->resize(done_);
    return Inflated::kOk;
  }
}

std::unique_ptr<Inflater> MakeInflater(Encoding encoding, std::string_view bytes, size_t limit,
                                       std::string* out) {
  limit = std::min(limit, std::string().max_size() - 1);
#ifdef CURTAIL_ZSTD
  if (encoding == Encoding::kZstd) return MakeZstdInflater(bytes, limit, out);
#endif
  return std::make_unique<IsalInflater>(encoding, bytes, limit, out);
}

Inflated Inflate(Encoding encoding, std::string_view bytes, size_t limit, std::string* out) {
  const std::unique_ptr<Inflater> inflater = MakeInflater(encoding, bytes, limit, out);
  const Inflated result = inflater == nullptr ? Inflated::kMalformed : inflater->Step(SIZE_MAX);
  if (result != Inflated::kOk) std::string().swap(*out);
  return result;
}

}  // namespace curtail::wire::internal
