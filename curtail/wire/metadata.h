// SPDX-License-Identifier: Apache-2.0
//
// metadata.h - gRPC metadata: the custom header fields of a call, and the text encodings gRPC gives
// its own fields.
//
// Thread-compatible: a value type without locks.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"

namespace curtail::wire {

// Metadata is an ordered multimap of lower-case keys to values. Values of keys that end in "-bin"
// are raw bytes here and base64 on the wire; other values are printable ASCII. A vector holds the
// entries, because calls carry few.
class Metadata {
 public:
  using Entry = std::pair<std::string, std::string>;

  // Adds an entry, its key in lower case. CheckMetadata() tells if it may be sent.
  void Add(std::string_view key, std::string_view value);
  // The same for a key that is in lower case already.
  void AddLowerCase(std::string_view key, std::string_view value);
  // The first value of `key`, in whatever case, or nothing.
  std::optional<std::string_view> Find(std::string_view key) const;
  void Clear() { entries_.clear(); }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
};

// True if applications may set this key: lower-case letters, digits, "_", "-", "."; not reserved
// ("grpc-", ":", "te", "content-type", "user-agent", "connection", ...).
bool IsCustomKey(std::string_view key);
// True if this key belongs to HTTP or to gRPC itself, so that it is never metadata.
bool IsReservedKey(std::string_view key);
// True if `value` may travel as text: printable ASCII, no leading or trailing space.
bool IsTextValue(std::string_view value);

// OK if all entries may be sent, and fit one header block together.
// Errors: INVALID_ARGUMENT, which names the first entry that may not be sent and says why.
[[nodiscard]] absl::Status CheckMetadata(const Metadata& metadata);

// grpc-timeout: at most 8 digits and one of H M S m u n. Parse refuses other text. Format rounds
// up, never to zero, and writes into `buffer` (at least 10 bytes); it returns the used part.
std::optional<Nanos> ParseTimeout(std::string_view text);
std::string_view FormatTimeout(Nanos timeout, char (&buffer)[12]);

// grpc-message: percent-encoding of every byte but printable ASCII other than '%'. Decoding keeps
// malformed escapes.
std::string PercentEncode(std::string_view text);
std::string PercentDecode(std::string_view text);

// Base64 as gRPC wants it: encoded without padding, decoded with or without. Decode refuses other
// characters.
std::string Base64Encode(std::string_view bytes);
std::optional<std::string> Base64Decode(std::string_view text);

}  // namespace curtail::wire
