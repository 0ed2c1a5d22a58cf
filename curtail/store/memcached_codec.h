// SPDX-License-Identifier: Apache-2.0
//
// memcached_codec.h - memcached's meta text protocol: bytes in, bytes out, no socket.
//
// Of memcached 1.6 (protocol.txt): mg, ms and md, one command at a time. Values are any bytes. So
// are keys: keys that text cannot carry travel in base64, which memcached decodes before it looks
// them up (flag b).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace curtail::memcached {

// memcached's limits: of a key; of one that travels in base64 (250 characters of it); of a value,
// when started with more than its default of -I 1m, which counts memcached's own bytes too.
inline constexpr size_t kMaxKeyBytes = 250;
inline constexpr size_t kMaxBinaryKeyBytes = 186;
inline constexpr size_t kMaxValueBytes = size_t{1} << 20;

// INVALID_ARGUMENT, which says what is wrong, for a key that is empty or too long, and a value that
// is too long.
absl::Status CheckKey(std::string_view key);
absl::Status CheckValue(std::string_view value);

// Append a command. REQUIRES: the key passes CheckKey(). A set is this head, the value, and
// kLineEnd.
inline constexpr std::string_view kLineEnd = "\r\n";
inline constexpr std::string_view kFlushCommand = "flush_all\r\n";
void AppendGet(std::string_view key, std::string* out);
// The answer has the version of the value, too.
void AppendVersionedGet(std::string_view key, std::string* out);
void AppendSetHead(std::string_view key, size_t value_bytes, bool if_absent, std::string* out);
// A set that memcached carries out only while the key has the value of this version.
void AppendReplaceHead(std::string_view key, size_t value_bytes, uint64_t version, std::string* out);
void AppendDelete(std::string_view key, std::string* out);

// An answer of memcached. The views are into the bytes that were parsed.
struct Answer {
  enum class Kind {
    kValue,      // a get: `value`
    kMiss,       // a get, delete or replacement: there is no such key
    kDone,       // a set, delete or flush was carried out
    kNotStored,  // a set if absent: there is such a key; a replacement: its version differs
    kRefused,    // SERVER_ERROR: `text` says why; the connection is in order
    kBroken,     // anything else: `text` says what is wrong; the connection is of no more use
  };
  Kind kind = Kind::kBroken;
  std::string_view value;
  std::string_view text;
  uint64_t version = 0;  // of the value, if the get asked for it
};

struct ParsedAnswer {
  size_t consumed = 0;  // bytes of the answer; 0: there are not enough yet
  size_t wanted = 0;    // then: the answer has at least so many
  Answer answer;
};

// Reads the answer that `bytes` begin with. Pure; any bytes. It looks at what came again from the
// start, which costs little since lines are short.
ParsedAnswer ParseAnswer(std::string_view bytes);

}  // namespace curtail::memcached
