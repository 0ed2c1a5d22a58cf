// SPDX-License-Identifier: Apache-2.0
//
// json_reader.h - reads JSON text (RFC 8259) token by token and knows where each token stands.
//
// A pull parser: who reads says what comes next, so that no tree of values is built and every error can name
// its place. Strict: UTF-8 only, no comments, no trailing commas. Takes any bytes; nesting is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace curtail::internal {

// A JsonReader walks through one text, which may hold several values one after the other. Methods that return
// bool say false when the text is wrong, and from then on; status() has the first error. Thread-compatible.
class JsonReader {
 public:
  enum class Kind { kObject, kArray, kString, kNumber, kBool, kNull, kEnd, kBad };

  static constexpr size_t kMaxDepth = 100;

  // `text` outlives the reader. `source` goes ahead of positions in errors: the name of a file, or nothing.
  explicit JsonReader(std::string_view text, std::string source = {});

  // What the next token begins; kEnd at the end of the text, kBad when no value begins so.
  Kind Peek();
  // Where the next token begins, in bytes.
  size_t NextOffset();

  // Into an object or a list. Each of its members or elements must then be read in whole.
  bool EnterObject();
  bool EnterArray();
  // True at a further member, after its name and colon. False at the end of the object, which it leaves.
  bool NextMember(std::string* name);
  // Where the name of the last member began.
  size_t member_offset() const { return member_offset_; }
  bool NextElement();

  bool ReadString(std::string* value);
  // The number as written.
  bool ReadNumber(std::string_view* text);
  bool ReadBool(bool* value);
  bool ReadNull();
  // Reads over any value; `raw`, which may be null, becomes its text.
  bool Skip(std::string_view* raw);

  bool ok() const { return status_.ok(); }
  // OK, or INVALID_ARGUMENT: "expected ':' ..., at requests.json:3:12".
  const absl::Status& status() const { return status_; }
  // An INVALID_ARGUMENT that says `what` and where `offset` is, as line and column from 1. Columns count
  // characters.
  absl::Status Error(size_t offset, std::string_view what) const;

 private:
  bool Fail(size_t offset, std::string_view what);
  bool Enter(char bracket, const char* what);
  bool Next(char close, const char* what);
  void SkipSpace();
  bool At(char c) const { return offset_ < text_.size() && text_[offset_] == c; }
  bool Literal(std::string_view word);
  bool Digits();
  bool Escape(std::string* value);
  bool Hex4(uint32_t* code);
  bool Utf8Sequence(std::string* value);

  // Immutable after construction.
  const std::string_view text_;
  const std::string source_;

  size_t offset_ = 0;
  size_t member_offset_ = 0;
  std::vector<bool> untouched_;  // a level of nesting each: whether nothing was read in it
  absl::Status status_;
};

// "an object", "a number", "the end of the text", for errors.
const char* KindName(JsonReader::Kind kind);

}  // namespace curtail::internal
