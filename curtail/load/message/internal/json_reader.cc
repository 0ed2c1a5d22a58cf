// SPDX-License-Identifier: Apache-2.0
//
// RapidJSON pushes tokens and the caller pulls them, so the tokens of one value wait in a list between the two. RapidJSON
// tells no token's place: it is where the one before ended, after blanks and at most one ',' or ':'.
#include "curtail/load/message/internal/json_reader.h"

#include <rapidjson/reader.h>

#include <algorithm>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kBlanksAndDelimiters = " \t\r\n,:";
constexpr unsigned kParseFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseStopWhenDoneFlag |
                                 rapidjson::kParseValidateEncodingFlag |
                                 rapidjson::kParseNumbersAsStringsFlag;

// Where the first character stands from `offset` on that is none of `blanks`.
size_t SkipAll(std::string_view text, size_t offset, std::string_view blanks) {
  return std::min(text.find_first_not_of(blanks, offset), text.size());
}

// The part of `text` from an offset on as RapidJSON reads it. A NUL character means the end there, so one in the text
// reads as another control character; JSON allows neither.
class TextStream {
 public:
  using Ch = char;

  TextStream(std::string_view text, size_t offset) : text_(text), offset_(offset) {}

  Ch Peek() const {
    if (offset_ == text_.size()) return '\0';
    return text_[offset_] == '\0' ? '\x01' : text_[offset_];
  }
  Ch Take() {
    const Ch c = Peek();
    offset_ += offset_ < text_.size() ? 1 : 0;
    return c;
  }
  size_t Tell() const { return offset_; }

  // Only parsers that write into the text call these.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  size_t PutEnd(Ch*) { return 0; }

 private:
  const std::string_view text_;
  size_t offset_;
};

JsonReader::Kind KindOf(std::string_view text, size_t offset) {
  if (offset >= text.size()) return JsonReader::Kind::kEnd;
  switch (text[offset]) {
    case '{':
      return JsonReader::Kind::kObject;
    case '[':
      return JsonReader::Kind::kArray;
    case '"':
      return JsonReader::Kind::kString;
    case 't':
    case 'f':
      return JsonReader::Kind::kBool;
    case 'n':
      return JsonReader::Kind::kNull;
    default:
      return std::string_view("-0123456789").find(text[offset]) != std::string_view::npos
                 ? JsonReader::Kind::kNumber
                 : JsonReader::Kind::kBad;
  }
}

// The error where a value should begin at `offset`.
std::string NoValue(std::string_view text, size_t offset) {
  const JsonReader::Kind kind = KindOf(text, offset);
  if (kind == JsonReader::Kind::kNumber) return "not a number as JSON writes it";
  if (kind == JsonReader::Kind::kBool || kind == JsonReader::Kind::kNull)
    return "expected true, false or null";
  const size_t before = offset == 0 ? text.npos : text.find_last_not_of(kBlanks, offset - 1);
  if (offset < text.size() && text[offset] == ']' && before != text.npos && text[before] == ',')
    return "one comma too many after the last of the elements of a list";
  return Join("expected a value, got ", KindName(kind));
}

std::string BadCharacter(std::string_view text, size_t offset) {
  if (text[offset] != '\\') return "a string holds a line break or control character: write \\n or \\u00XX";
  if (offset + 1 == text.size()) return "the text ends in a string";
  return "no such escape in a string: there are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX";
}

// The error and its place. A syntax error that RapidJSON found at `offset`, in or ahead of the token at `begin`, and
// where its stream `stopped`. `name` is the last name of a member.
std::pair<size_t, std::string> Explain(rapidjson::ParseErrorCode code, std::string_view text, size_t begin,
                                       size_t offset, size_t stopped, std::string_view name) {
  switch (code) {
    case rapidjson::kParseErrorObjectMissName:
      if (begin < text.size() && text[begin] == '}')
        return {begin, "one comma too many after the last of the members of an object"};
      return {begin, "expected a member's name in double quotes"};
    case rapidjson::kParseErrorObjectMissColon:
      return {begin, Join("expected ':' after the name \"", name, "\"")};
    case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
      return {begin, "expected ',' or '}' after the members of an object"};
    case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
      return {begin, "expected ',' or ']' after the elements of a list"};
    case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex:
      return {stopped, "expected four hexadecimal digits after \\u"};
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
      return {offset, "half a surrogate pair"};
    case rapidjson::kParseErrorStringEscapeInvalid:
      return {offset, BadCharacter(text, offset)};
    case rapidjson::kParseErrorStringMissQuotationMark:
      return {begin, "a string has no end"};
    case rapidjson::kParseErrorStringInvalidEncoding:
      return {offset, "a string is not valid UTF-8"};
    case rapidjson::kParseErrorNumberTooBig: {
      const std::string_view number =
          text.substr(begin, text.find_first_not_of("+-.0123456789Ee", begin) - begin);
      return {begin,
              Join(number.substr(0, 40), number.size() > 40 ? "..." : "", " is out of the range of double")};
    }
    case rapidjson::kParseErrorNumberMissFraction:
    case rapidjson::kParseErrorNumberMissExponent:
      return {begin, "not a number as JSON writes it"};
    default:
      return {begin, NoValue(text, begin)};
  }
}

}  // namespace

// Keeps the tokens, and hands over those of each element.
class JsonReader::Handler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, JsonReader::Handler> {
 public:
  // All outlive the handler. `element` may be null.
  Handler(JsonReader* reader, const TextStream* stream, const absl::FunctionRef<bool()>* element)
      : reader_(reader), stream_(stream), element_(element), end_(stream->Tell()) {}

  // Where the next token begins.
  size_t Begin() const { return SkipAll(reader_->text_, end_, kBlanksAndDelimiters); }

  // RapidJSON calls these, after it read a scalar and ahead of a bracket.
  bool Default() { return true; }  // numbers of its own types, of which there are none
  bool Null() { return Scalar(Kind::kNull); }
  bool Bool(bool) { return Scalar(Kind::kBool); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) {
    const char next = stream_->Peek();
    if (next >= '0' && next <= '9') return reader_->Fail(Begin(), "not a number as JSON writes it");
    return Scalar(Kind::kNumber);
  }
  bool String(const char* text, rapidjson::SizeType size, bool) { return Text({text, size}) && Complete(); }
  bool Key(const char* text, rapidjson::SizeType size, bool) { return Text({text, size}); }
  bool StartObject() { return Start(Kind::kObject); }
  bool StartArray() { return Start(Kind::kArray); }
  bool EndObject(rapidjson::SizeType) { return End(); }
  bool EndArray(rapidjson::SizeType) { return End(); }

 private:
  // A token that ends at `end`, unless it is a bracket of the list whose elements are handed over.
  void Add(Kind kind, size_t end) {
    const auto begin = static_cast<uint32_t>(Begin());
    end_ = end;
    if (element_ == nullptr || depth_ > 0) {
      reader_->tokens_.push_back({kind, begin, static_cast<uint32_t>(end), 0});
    }
  }

  bool Scalar(Kind kind) {
    Add(kind, stream_->Tell());
    return Complete();
  }

  bool Text(std::string_view text) {
    // RapidJSON 1.1 writes the second half of a surrogate pair that lacks the first as if it were a character.
    for (size_t at = 0; (at = text.find('\xed', at)) != text.npos; ++at) {
      if (static_cast<unsigned char>(text[at + 1]) >= 0xa0)
        return reader_->Fail(Begin(), "half a surrogate pair");
    }
    Add(Kind::kString, stream_->Tell());
    Token& token = reader_->tokens_.back();
    if (text.size() + 2 == token.end - token.begin) return true;  // no escapes: the text itself
    reader_->unescaped_.emplace_back(text);
    token.unescaped = static_cast<uint32_t>(reader_->unescaped_.size());
    return true;
  }

  bool Start(Kind kind) {
    if (depth_ == kMaxDepth) {
      return reader_->Fail(stream_->Tell(), Join("nested deeper than ", kMaxDepth, " levels"));
    }
    Add(kind, stream_->Tell() + 1);
    ++depth_;
    return true;
  }

  bool End() {
    const bool outermost = --depth_ == 0;
    Add(Kind::kEnd, stream_->Tell() + 1);
    return outermost || Complete();
  }

  // After a whole value that is none of the outermost.
  bool Complete() {
    if (element_ == nullptr || depth_ != 1) return true;
    const bool go_on = (*element_)();
    reader_->Forget();
    return go_on;
  }

  JsonReader* const reader_;
  const TextStream* const stream_;
  const absl::FunctionRef<bool()>* const element_;
  size_t end_;  // of the last token
  size_t depth_ = 0;
};

JsonReader::JsonReader(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {}

absl::Status JsonReader::Error(size_t offset, std::string_view what) const {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < offset && i < text_.size(); ++i) {
    if (text_[i] == '\n') {
      ++line, column = 1;
    } else if ((static_cast<unsigned char>(text_[i]) & 0xc0) != 0x80) {
      ++column;
    }
  }
  return absl::InvalidArgumentError(Join(source_, source_.empty() ? "" : ":", line, ":", column, ": ", what));
}

bool JsonReader::Fail(size_t offset, std::string_view what) {
  if (status_.ok()) status_ = Error(offset, what);
  return false;
}

void JsonReader::Forget() {
  tokens_.clear();
  next_ = 0;
  unescaped_.clear();
}

bool JsonReader::Parse(const absl::FunctionRef<bool()>* element) {
  Forget();
  TextStream stream(text_, NextOffset());
  Handler handler(this, &stream, element);
  rapidjson::Reader parser;
  parser.Parse<kParseFlags>(stream, handler);
  offset_ = stream.Tell();
  if (!parser.HasParseError()) return true;
  if (parser.GetParseErrorCode() != rapidjson::kParseErrorTermination) {
    const std::string_view name = tokens_.empty() ? "" : TextOf(tokens_.back());
    const size_t found = parser.GetErrorOffset();
    const auto [offset, what] = Explain(parser.GetParseErrorCode(), text_, std::min(handler.Begin(), found),
                                        found, stream.Tell(), name);
    Fail(offset, what);
  }
  Forget();
  return false;
}

size_t JsonReader::NextOffset() {
  if (next_ < tokens_.size()) return tokens_[next_].begin;
  return offset_ = SkipAll(text_, offset_, kBlanks);
}

JsonReader::Kind JsonReader::Peek() {
  return next_ < tokens_.size() ? tokens_[next_].kind : KindOf(text_, NextOffset());
}

JsonReader::Kind JsonReader::KindFound() {
  const Kind kind = Peek();
  if (kind != Kind::kBool && kind != Kind::kNull) return kind;
  const std::string_view rest = text_.substr(NextOffset());
  const bool word = rest.starts_with("true") || rest.starts_with("false") || rest.starts_with("null");
  return word ? kind : Kind::kBad;
}

const JsonReader::Token* JsonReader::Take(Kind kind) {
  if (!ok()) return nullptr;
  if (Peek() != kind) {
    Fail(NextOffset(), Join("expected ", KindName(kind), ", got ", KindName(KindFound())));
    return nullptr;
  }
  if (next_ == tokens_.size() && !Parse()) return nullptr;
  return &tokens_[next_++];
}

std::string_view JsonReader::TextOf(const Token& token) const {
  if (token.unescaped > 0) return unescaped_[token.unescaped - 1];
  return text_.substr(token.begin + 1, token.end - token.begin - 2);
}

bool JsonReader::EnterObject() { return Take(Kind::kObject) != nullptr; }
bool JsonReader::EnterArray() { return Take(Kind::kArray) != nullptr; }

bool JsonReader::Next() {
  if (next_ == tokens_.size()) return false;
  if (tokens_[next_].kind != Kind::kEnd) return true;
  ++next_;
  return false;
}

bool JsonReader::NextMember(std::string* name) {
  if (!Next()) return false;
  const Token& token = tokens_[next_++];
  member_offset_ = token.begin;
  *name = TextOf(token);
  return true;
}

bool JsonReader::NextElement() { return Next(); }

bool JsonReader::ForEachElement(absl::FunctionRef<bool()> read) {
  return ok() && Peek() == Kind::kArray && Parse(&read);
}

bool JsonReader::ReadString(std::string* value) {
  const Token* token = Take(Kind::kString);
  if (token == nullptr) return false;
  *value = TextOf(*token);
  return true;
}

bool JsonReader::ReadNumber(std::string_view* text) {
  const Token* token = Take(Kind::kNumber);
  if (token == nullptr) return false;
  *text = text_.substr(token->begin, token->end - token->begin);
  return true;
}

bool JsonReader::ReadNull() { return Take(Kind::kNull) != nullptr; }

bool JsonReader::Skip(std::string_view* raw) {
  const size_t begin = NextOffset();
  const Kind kind = Peek();
  if (kind == Kind::kEnd || kind == Kind::kBad) return Fail(begin, NoValue(text_, begin));
  if (Take(kind) == nullptr) return false;
  size_t depth = kind == Kind::kObject || kind == Kind::kArray ? 1 : 0;
  while (depth > 0) {
    const Kind inner = tokens_[next_++].kind;
    if (inner == Kind::kObject || inner == Kind::kArray) ++depth;
    if (inner == Kind::kEnd) --depth;
  }
  *raw = text_.substr(begin, tokens_[next_ - 1].end - begin);
  return true;
}

bool JsonReader::PeekText(std::string_view* raw) {
  // A value that is not parsed yet begins the tokens.
  const size_t mark = next_ < tokens_.size() ? next_ : 0;
  const bool read = Skip(raw);
  if (read) next_ = mark;
  return read;
}

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
  return "something that is not a JSON value";
}

}  // namespace curtail::internal
