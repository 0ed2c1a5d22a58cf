// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/internal/json_reader.h"

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
    return;
  }
  if (code < 0x800) {
    *out += static_cast<char>(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      *out += static_cast<char>(0xe0 | code >> 12);
    } else {
      *out += static_cast<char>(0xf0 | code >> 18);
      *out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    }
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
  }
  *out += static_cast<char>(0x80 | (code & 0x3f));
}

}  // namespace

const char* KindName(JsonReader::Kind kind) {
  switch (kind) {
    case JsonReader::Kind::kObject:
      return "an object";
    case JsonReader::Kind::kArray:
      return "a list";
    case JsonReader::Kind::kString:
      return "a string";
    case JsonReader::Kind::kNumber:
      return "a number";
    case JsonReader::Kind::kBool:
      return "true or false";
    case JsonReader::Kind::kNull:
      return "null";
    case JsonReader::Kind::kEnd:
      return "the end of the text";
    case JsonReader::Kind::kBad:
      break;
  }
  return "something that is no JSON value";
}

JsonReader::JsonReader(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {}

absl::Status JsonReader::Error(size_t offset, std::string_view what) const {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < offset && i < text_.size(); ++i) {
    if (text_[i] == '\n') {
      ++line, column = 1;
    } else if (!IsContinuation(text_[i])) {
      ++column;
    }
  }
  return absl::InvalidArgumentError(
      Join(what, ", at ", source_, source_.empty() ? "" : ":", line, ":", column));
}

bool JsonReader::Fail(size_t offset, std::string_view what) {
  if (status_.ok()) status_ = Error(offset, what);
  return false;
}

void JsonReader::SkipSpace() {
  while (offset_ < text_.size() && (text_[offset_] == ' ' || text_[offset_] == '\n' ||
                                    text_[offset_] == '\t' || text_[offset_] == '\r')) {
    ++offset_;
  }
}

size_t JsonReader::NextOffset() {
  SkipSpace();
  return offset_;
}

JsonReader::Kind JsonReader::Peek() {
  SkipSpace();
  if (offset_ == text_.size()) return Kind::kEnd;
  switch (text_[offset_]) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    default:
      return text_[offset_] == '-' || IsDigit(text_[offset_]) ? Kind::kNumber : Kind::kBad;
  }
}

bool JsonReader::Enter(char bracket, const char* what) {
  if (!ok()) return false;
  SkipSpace();
  if (!At(bracket)) return Fail(offset_, Join("expected ", what, ", got ", KindName(Peek())));
  if (untouched_.size() == kMaxDepth) return Fail(offset_, Join("nested deeper than ", kMaxDepth, " levels"));
  ++offset_;
  untouched_.push_back(true);
  return true;
}

bool JsonReader::EnterObject() { return Enter('{', "an object"); }
bool JsonReader::EnterArray() { return Enter('[', "a list"); }

bool JsonReader::Next(char close, const char* what) {
  if (!ok() || untouched_.empty()) return false;
  SkipSpace();
  if (At(close)) {
    ++offset_;
    untouched_.pop_back();
    return false;
  }
  if (!untouched_.back()) {
    if (!At(',')) return Fail(offset_, Join("expected ',' or '", std::string(1, close), "' after ", what));
    ++offset_;
    SkipSpace();
    if (At(close)) return Fail(offset_, Join("one comma too many after the last of ", what));
  }
  untouched_.back() = false;
  return true;
}

bool JsonReader::NextMember(std::string* name) {
  if (!Next('}', "the members of an object")) return false;
  member_offset_ = offset_;
  if (!At('"')) return Fail(offset_, "expected a member's name in double quotes");
  if (!ReadString(name)) return false;
  SkipSpace();
  if (!At(':')) return Fail(offset_, Join("expected ':' after the name \"", *name, "\""));
  ++offset_;
  return true;
}

bool JsonReader::NextElement() { return Next(']', "the elements of a list"); }

bool JsonReader::Hex4(uint32_t* code) {
  *code = 0;
  for (int i = 0; i < 4; ++i, ++offset_) {
    const char c = offset_ < text_.size() ? text_[offset_] : '\0';
    const char lower = static_cast<char>(c | 0x20);
    const bool letter = lower >= 'a' && lower <= 'f';
    if (!IsDigit(c) && !letter) return Fail(offset_, "expected four hexadecimal digits after \\u");
    *code = *code << 4 | static_cast<uint32_t>(letter ? lower - 'a' + 10 : c - '0');
  }
  return true;
}

// After the backslash.
bool JsonReader::Escape(std::string* value) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const size_t begin = offset_ - 1;
  if (offset_ == text_.size()) return Fail(offset_, "the text ends in a string");
  const char letter = text_[offset_++];
  if (const size_t which = kLetters.find(letter); which != std::string_view::npos) {
    *value += kMeanings[which];
    return true;
  }
  if (letter != 'u')
    return Fail(begin, "no such escape in a string: there are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
  uint32_t code = 0;
  if (!Hex4(&code)) return false;
  if (code >= 0xd800 && code < 0xdc00 && text_.substr(offset_, 2) == "\\u") {
    offset_ += 2;
    uint32_t low = 0;
    if (!Hex4(&low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return Fail(begin, "half a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xd800 && code < 0xe000) {
    return Fail(begin, "half a surrogate pair");
  }
  AppendUtf8(code, value);
  return true;
}

// One character of several bytes (RFC 3629: shortest form, no surrogates, up to U+10FFFF).
bool JsonReader::Utf8Sequence(std::string* value) {
  const auto byte = [this](size_t i) {
    return offset_ + i < text_.size() ? static_cast<unsigned char>(text_[offset_ + i]) : 0u;
  };
  const unsigned lead = byte(0);
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  bool valid = lead >= 0xc2 && lead <= 0xf4;
  for (size_t i = 1; i < length; ++i) valid = valid && (byte(i) & 0xc0) == 0x80;
  if (lead == 0xe0) valid = valid && byte(1) >= 0xa0;
  if (lead == 0xed) valid = valid && byte(1) < 0xa0;
  if (lead == 0xf0) valid = valid && byte(1) >= 0x90;
  if (lead == 0xf4) valid = valid && byte(1) < 0x90;
  if (!valid) return Fail(offset_, "a string is no valid UTF-8");
  value->append(text_, offset_, length);
  offset_ += length;
  return true;
}

bool JsonReader::ReadString(std::string* value) {
  if (!ok()) return false;
  SkipSpace();
  const size_t begin = offset_;
  if (!At('"')) return Fail(begin, Join("expected a string, got ", KindName(Peek())));
  ++offset_;
  value->clear();
  while (offset_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[offset_]);
    if (c == '"') {
      ++offset_;
      return true;
    }
    if (c < 0x20)
      return Fail(offset_, "a string holds a line break or control character: write \\n or \\u00XX");
    if (c == '\\') {
      ++offset_;
      if (!Escape(value)) return false;
    } else if (c < 0x80) {
      *value += static_cast<char>(c);
      ++offset_;
    } else if (!Utf8Sequence(value)) {
      return false;
    }
  }
  return Fail(begin, "a string has no end");
}

bool JsonReader::Digits() {
  const size_t begin = offset_;
  while (offset_ < text_.size() && IsDigit(text_[offset_])) ++offset_;
  return offset_ > begin;
}

bool JsonReader::ReadNumber(std::string_view* text) {
  if (!ok()) return false;
  SkipSpace();
  const size_t begin = offset_;
  if (Peek() != Kind::kNumber) return Fail(begin, Join("expected a number, got ", KindName(Peek())));
  if (At('-')) ++offset_;
  const bool zero = At('0');
  bool valid = Digits() && !(zero && offset_ - begin > (text_[begin] == '-' ? 2u : 1u));
  if (valid && At('.')) {
    ++offset_;
    valid = Digits();
  }
  if (valid && (At('e') || At('E'))) {
    ++offset_;
    if (At('+') || At('-')) ++offset_;
    valid = Digits();
  }
  if (!valid) return Fail(begin, "not a number as JSON writes it");
  *text = text_.substr(begin, offset_ - begin);
  return true;
}

bool JsonReader::Literal(std::string_view word) {
  if (text_.substr(offset_, word.size()) != word) return Fail(offset_, "expected true, false or null");
  offset_ += word.size();
  return true;
}

bool JsonReader::ReadBool(bool* value) {
  if (!ok()) return false;
  if (Peek() != Kind::kBool) return Fail(offset_, Join("expected true or false, got ", KindName(Peek())));
  *value = At('t');
  return Literal(*value ? "true" : "false");
}

bool JsonReader::ReadNull() {
  if (!ok()) return false;
  SkipSpace();
  return Literal("null");
}

bool JsonReader::Skip(std::string_view* raw) {
  if (!ok()) return false;
  const Kind kind = Peek();
  const size_t begin = offset_;
  std::string text;
  std::string_view number;
  bool flag = false;
  switch (kind) {
    case Kind::kObject:
      EnterObject();
      while (NextMember(&text)) Skip(nullptr);
      break;
    case Kind::kArray:
      EnterArray();
      while (NextElement()) Skip(nullptr);
      break;
    case Kind::kString:
      ReadString(&text);
      break;
    case Kind::kNumber:
      ReadNumber(&number);
      break;
    case Kind::kBool:
      ReadBool(&flag);
      break;
    case Kind::kNull:
      ReadNull();
      break;
    case Kind::kEnd:
    case Kind::kBad:
      return Fail(begin, Join("expected a value, got ", KindName(kind)));
  }
  if (raw != nullptr && ok()) *raw = text_.substr(begin, offset_ - begin);
  return ok();
}

}  // namespace curtail::internal
