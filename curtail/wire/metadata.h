// SPDX-License-Identifier: Apache-2.0
//
// metadata.h - gRPC metadata: the custom header fields of a call, and the text encodings gRPC gives
// its own fields.
//
// Thread-compatible: a value type without locks.
#pragma once

#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "curtail/base/clock.h"

namespace curtail::wire {

// Metadata is an ordered multimap of lower-case keys to values. Values of keys that end in "-bin"
// are raw bytes here and base64 on the wire; other values are printable ASCII. One buffer holds all
// entries, so that a peer who repeats many costs no allocation each.
//
// Views of keys and values live until the metadata changes.
class Metadata {
 public:
  using Entry = std::pair<std::string_view, std::string_view>;

  // Reads entries one after the other. Ends with the next change.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = const Entry*;
    using reference = const Entry&;

    Iterator() = default;
    Iterator(const char* at, const char* end) : at_(at), end_(end) { Read(); }
    const Entry& operator*() const { return entry_; }
    const Entry* operator->() const { return &entry_; }
    Iterator& operator++();
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    void Read();

    const char* at_ = nullptr;
    const char* end_ = nullptr;
    Entry entry_;
  };

  // Adds an entry, its key in lower case. CheckMetadata() tells if it may be sent.
  void Add(std::string_view key, std::string_view value);
  // The same for a key that is in lower case already.
  void AddLowerCase(std::string_view key, std::string_view value);
  // Adds all entries of `other`, which is another object.
  void Append(const Metadata& other) { entries_.append(other.entries_); }
  // The first value of `key`, in whatever case, or nothing.
  std::optional<std::string_view> Find(std::string_view key) const;
  void Clear() { entries_.clear(); }
  // Removes the entries whose keys `drop` names. Takes no memory.
  void EraseIf(bool (*drop)(std::string_view key));

  bool empty() const { return entries_.empty(); }
  // Counts them.
  size_t size() const;
  // Keys, values, and 8 for each entry.
  size_t bytes() const { return entries_.size(); }
  Iterator begin() const { return {entries_.data(), entries_.data() + entries_.size()}; }
  Iterator end() const {
    const char* const end = entries_.data() + entries_.size();
    return {end, end};
  }

 private:
  // Of each entry: the sizes of key and value, four bytes each in the order of this machine; then
  // the two.
  std::string entries_;
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
