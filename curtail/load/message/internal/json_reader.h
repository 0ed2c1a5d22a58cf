// SPDX-License-Identifier: Apache-2.0
//
// json_reader.h - reads JSON text (RFC 8259) value by value and knows where each token stands.
//
// RapidJSON parses one value of the text at a time; the caller then walks over its tokens. No tree is built, and every
// error can name its place. Strict: UTF-8 only, no comments, no trailing commas. Takes any bytes; nesting is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace curtail::internal {

// A JsonReader walks through one text, which may hold several values one after the other. A value with a syntax error
// is refused before its first token is read. Methods that return bool say false when the text is wrong, and from then
// on; status() has the first error. Thread-compatible.
class JsonReader {
 public:
  // kEnd is the end of the text, kBad a value with an error.
  enum class Kind { kObject, kArray, kString, kNumber, kBool, kNull, kEnd, kBad };

  static constexpr size_t kMaxDepth = 100;

  // `text` outlives the reader. `source` goes ahead of positions in errors: the name of a file, or nothing.
  // REQUIRES: text.size() < 2^32.
  explicit JsonReader(std::string_view text, std::string source = {});

  // The kind of value that the next token begins.
  Kind Peek();
  // As Peek(), but a word that merely begins as true, false or null is no value.
  Kind KindFound();
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
  // Reads the list that stands next, outside of all objects and lists, and calls `read` at each element, which reads
  // it in whole and returns whether to go on. Holds the tokens of one element at a time, so that a list may be long.
  bool ForEachElement(absl::FunctionRef<bool()> read);

  bool ReadString(std::string* value);
  // The number as written.
  bool ReadNumber(std::string_view* text);
  bool ReadNull();
  // Reads over any value; `raw` becomes its text.
  bool Skip(std::string_view* raw);
  // The same, but the value stays the next one.
  bool PeekText(std::string_view* raw);
  // Where the next token is, within a value that is being read, and the way back there.
  size_t Mark() const { return next_; }
  void Return(size_t mark) { next_ = mark; }

  bool ok() const { return status_.ok(); }
  // OK, or INVALID_ARGUMENT: "expected ':' ..., at requests.json:3:12".
  const absl::Status& status() const { return status_; }
  // An INVALID_ARGUMENT that says `what` and where `offset` is, as line and column from 1. Columns count characters.
  absl::Status Error(size_t offset, std::string_view what) const;

 private:
  struct Token {
    Kind kind;            // kEnd also for the bracket that ends an object or list
    uint32_t begin, end;  // its text
    uint32_t unescaped;   // of a string with escapes: one more than its index in unescaped_; else 0
  };
  class Handler;

  // Parses the next value of the text into tokens_, or calls `element` at each of its elements.
  bool Parse(const absl::FunctionRef<bool()>* element = nullptr);
  // The next token if it is of this kind, and steps over it; null when it is not.
  const Token* Take(Kind kind);
  // True unless the object or list ends here, which it then leaves.
  bool Next();
  bool Fail(size_t offset, std::string_view what);
  // Drops the tokens.
  void Forget();
  // The text of a string without its quotes and escapes.
  std::string_view TextOf(const Token& token) const;

  // Immutable after construction.
  const std::string_view text_;
  const std::string source_;

  size_t offset_ = 0;  // of what is not parsed yet
  size_t member_offset_ = 0;
  std::vector<Token> tokens_;  // of the value that is being read
  size_t next_ = 0;            // of them
  std::vector<std::string> unescaped_;
  absl::Status status_;
};

// "an object", "a number", "the end of the text", for errors.
const char* KindName(JsonReader::Kind kind);

}  // namespace curtail::internal
