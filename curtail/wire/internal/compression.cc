// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/compression.h"

#include <zlib.h>

#include <algorithm>
#include <climits>

#ifdef CURTAIL_ZSTD
#include "curtail/wire/internal/zstd_compression.h"
#endif

namespace curtail::wire::internal {
namespace {

// zlib's: the largest window, and the format. gzip's header is 16 more.
int WindowBits(Encoding encoding) { return MAX_WBITS + (encoding == Encoding::kGzip ? 16 : 0); }

// zlib does not write to its input.
Bytef* BytesOf(std::string_view text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text.data())); }

// The bytes inflated at first; from there on the output doubles.
constexpr size_t kFirstOutput = 4096;

// Inflates until the end of the stream, growing `out`.
Inflated InflateAll(z_stream* stream, size_t limit, std::string* out) {
  while (true) {
    if (stream->total_out == out->size()) {
      // One byte more than the limit tells a message of that size from a longer one.
      if (out->size() > limit) return Inflated::kTooLong;
      out->resize(std::min(limit + 1, std::max(kFirstOutput, 2 * out->size())));
    }
    const size_t room = out->size() - stream->total_out;
    stream->next_out = reinterpret_cast<Bytef*>(out->data()) + stream->total_out;
    stream->avail_out = static_cast<uInt>(std::min<size_t>(room, UINT_MAX));
    const int result = inflate(stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) break;
    if (result != Z_OK || (stream->avail_in == 0 && stream->avail_out > 0)) return Inflated::kMalformed;
  }
  if (stream->total_out > limit) return Inflated::kTooLong;
  out->resize(stream->total_out);
  return stream->avail_in == 0 ? Inflated::kOk : Inflated::kMalformed;
}

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

Inflated Inflate(Encoding encoding, std::string_view bytes, size_t limit, std::string* out) {
#ifdef CURTAIL_ZSTD
  if (encoding == Encoding::kZstd) return InflateZstd(bytes, limit, out);
#endif
  out->clear();
  if (bytes.size() > UINT_MAX) return Inflated::kTooLong;
  z_stream stream = {};
  limit = std::min<size_t>(limit, UINT_MAX);
  if (inflateInit2(&stream, WindowBits(encoding)) != Z_OK) return Inflated::kMalformed;
  stream.next_in = BytesOf(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  const Inflated result = InflateAll(&stream, limit, out);
  inflateEnd(&stream);
  if (result != Inflated::kOk) std::string().swap(*out);
  return result;
}

}  // namespace curtail::wire::internal
