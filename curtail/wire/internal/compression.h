// SPDX-License-Identifier: Apache-2.0
//
// compression.h - messages compressed by zlib or zstd, and inflated by ISA-L or zstd.
//
// Stateless; any thread. Memory beside the result (zlib: 260 KiB to compress, ISA-L: 86 KiB to inflate; zstd: up to 1 MiB and
// 8 MiB) is given back at once, so that idle connections hold none.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "curtail/wire/encoding.h"

namespace curtail::wire::internal {

// The grpc-encoding and grpc-accept-encoding of this library.
#ifdef CURTAIL_ZSTD
inline constexpr std::string_view kAcceptedEncodings = "identity,deflate,gzip,zstd";
#else
inline constexpr std::string_view kAcceptedEncodings = "identity,deflate,gzip";
#endif
std::string_view EncodingName(Encoding encoding);
// Nothing for a name that is not supported.
std::optional<Encoding> EncodingOf(std::string_view name);

// Compresses `message` into `out`, which is overwritten. False if that takes as many bytes or more, or memory is short.
// REQUIRES: not kIdentity.
bool Compress(Encoding encoding, std::string_view message, std::string* out);

enum class Inflated {
  kOk,
  kMore,       // there is more than this step was to inflate
  kTooLong,    // more than the limit; no more was inflated than that
  kMalformed,  // or cut short, or followed by other bytes
};

// An inflater of gzip or deflate holds so much beside the result.
inline constexpr size_t kInflaterBytes = 86u << 10;

// An Inflater inflates one message in steps, so that a short one that becomes long does not take a thread for
// all that time. Thread-compatible.
class Inflater {
 public:
  virtual ~Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Inflates at most `most` bytes more. The message is `*out` after kOk only.
  Inflated Step(size_t most);
  // The bytes inflated so far.
  size_t done() const { return done_; }

 protected:
  enum class Decoded { kGoesOn, kEnd, kMalformed };

  Inflater(size_t limit, std::string* out) : limit_(limit), out_(out) { out->clear(); }

 private:
  // Decodes into the `room` bytes at `to`, adding to `*done` how many that were. kGoesOn: they are filled.
  virtual Decoded Decode(char* to, size_t room, size_t* done) = 0;
  // True if the input is used up.
  virtual bool AtEnd() const = 0;

  const size_t limit_;
  std::string* const out_;
  size_t done_ = 0;
};

// Of `bytes`, to at most `limit` bytes in `out`; both outlive it. Null: memory is short.
// REQUIRES: not kIdentity; `bytes` are at most 4 GiB.
std::unique_ptr<Inflater> MakeInflater(Encoding encoding, std::string_view bytes, size_t limit,
                                       std::string* out);

// Inflates `bytes` into `out`, which is overwritten; never to more than `limit` bytes. REQUIRES: as MakeInflater().
Inflated Inflate(Encoding encoding, std::string_view bytes, size_t limit, std::string* out);

}  // namespace curtail::wire::internal
