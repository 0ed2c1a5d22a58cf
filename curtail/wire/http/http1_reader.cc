// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: lines and counted bytes take turns. All lines of a message together are held to the limit of its head, but the
// sizes of chunks, which are held to kMaxChunkLine each: a body may have any number of chunks, none of them empty.
#include "curtail/wire/http/http1_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr size_t kMaxChunkLine = 1024;
constexpr size_t kMaxReason = 100;
constexpr size_t kQuoted = 40;
// A body that was longer than this gives its memory back.
constexpr size_t kKeptBody = 64u << 10;

using CharSet = std::array<bool, 256>;

constexpr CharSet Letters(std::string_view others) {
  CharSet chars{};
  for (unsigned c = '0'; c <= '9'; ++c) chars[c] = true;
  for (unsigned c = 'A'; c <= 'Z'; ++c) chars[c] = chars[c + 32] = true;
  for (const char c : others) chars[static_cast<uint8_t>(c)] = true;
  return chars;
}

constexpr CharSet kToken = Letters("!#$%&'*+-.^_`|~");          // RFC 9110, 5.6.2
constexpr CharSet kAuthority = Letters("-._~%!$&'()*+,;=:[]");  // RFC 3986, 3.2, without a user
constexpr CharSet kVisible = Letters("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");
constexpr CharSet kText = [] {  // RFC 9110, 5.5
  CharSet chars = kVisible;
  chars[' '] = chars['\t'] = true;
  for (unsigned c = 0x80; c <= 0xff; ++c) chars[c] = true;
  return chars;
}();

bool All(std::string_view text, const CharSet& chars) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return chars[static_cast<uint8_t>(c)]; });
}

// `text` as far as it can be printed, in quotes.
std::string Quoted(std::string_view text) {
  std::string out(text.substr(0, kQuoted));
  std::replace_if(out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return Join("\"", out, "\"");
}

// A whole number in `base`, or nothing. No sign and no prefix, as from_chars() takes neither for an unsigned type.
std::optional<uint64_t> ParseCount(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view Trimmed(std::string_view text) {
  // By hand: find_first_not_of() makes a call for each letter.
  const auto space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

bool SameWord(std::string_view a, std::string_view b) {
  return a.size() == b.size() && absl::EqualsIgnoreCase({a.data(), a.size()}, {b.data(), b.size()});
}

// True if the list has the word, in whatever case.
bool HasWord(std::string_view list, std::string_view word) {
  for (absl::string_view part : absl::StrSplit(absl::string_view(list.data(), list.size()), ',')) {
    if (SameWord(Trimmed({part.data(), part.size()}), word)) return true;
  }
  return false;
}

// The authority of a target that is a whole URL; nothing of one that is a path.
std::optional<std::string_view> AuthorityIn(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!SameWord(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    return target.substr(0, target.find_first_of("/?"));
  }
  return std::nullopt;
}

}  // namespace

absl::Status Http1Reader::Broken(std::string_view what) const {
  if (requests_) return absl::InvalidArgumentError(Join("the client broke HTTP/1.1: ", what));
  return absl::UnavailableError(Join("the server broke HTTP/1.1: ", what));
}

absl::Status Http1Reader::TooLong(std::string_view what, int refusal) {
  refusal_ = refusal;
  return absl::ResourceExhaustedError(Join("the ", what));
}

void Http1Reader::Begin(bool head_only) {
  state_ = State::kFirstLine;
  line_.clear();
  head_bytes_ = 0;
  head_only_ = head_only;
  status_ = 0;
  reason_.clear();
  headers_.Clear();
  hosts_ = 0;
  expects_ = chunked_ = has_length_ = false;
  left_ = length_ = 0;
  if (body_.capacity() > kKeptBody) std::string().swap(body_);
  body_.clear();
}

absl::Status Http1Reader::Read(std::string_view* bytes) {
  while (!bytes->empty() && !done()) {
    if (state_ == State::kBody || state_ == State::kBodyToClose || state_ == State::kChunk) {
      if (absl::Status status = TakeBody(bytes); !status.ok()) return status;
      continue;
    }
    std::string_view line;
    const absl::StatusOr<bool> whole = TakeLine(bytes, &line);
    if (!whole.ok()) return whole.status();
    if (!*whole) return absl::OkStatus();
    absl::Status status = OnLine(line);
    line_.clear();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Http1Reader::End() {
  if (state_ == State::kBodyToClose) state_ = State::kDone;
}

absl::StatusOr<bool> Http1Reader::TakeLine(std::string_view* bytes, std::string_view* line) {
  const size_t end = bytes->find('\n');
  const size_t take = end == std::string_view::npos ? bytes->size() : end + 1;
  const bool chunk_line = state_ == State::kChunkSize || state_ == State::kChunkEnd;
  const size_t room = max_head_ - std::min(max_head_, head_bytes_);
  const size_t size = line_.size() + take;
  if (chunk_line ? size > kMaxChunkLine : size > room) {
    const std::string what = chunk_line ? Join("size of a chunk has more than ", kMaxChunkLine, " bytes")
                                        : Join("head has more than ", max_head_, " bytes");
    return TooLong(what, 431);
  }
  *line = bytes->substr(0, take);
  if (end == std::string_view::npos || !line_.empty()) *line = line_.append(*line);
  bytes->remove_prefix(take);
  if (end == std::string_view::npos) {
    // Something other than HTTP/1.1 need not have lines.
    if (state_ == State::kFirstLine && Hopeless()) return OnLine(*line);
    return false;
  }
  if (!chunk_line) head_bytes_ += size;
  line->remove_suffix(1);
  if (line->ends_with('\r')) line->remove_suffix(1);
  else if (requests_) return Broken("a line ends without a carriage return");
  return true;
}

bool Http1Reader::Hopeless() const {
  if (requests_) return !kToken[static_cast<uint8_t>(line_[0])] && line_[0] != '\r';
  return !line_.starts_with(std::string_view("HTTP/1.").substr(0, line_.size()));
}

absl::Status Http1Reader::OnLine(std::string_view line) {
  switch (state_) {
    case State::kFirstLine:
      // RFC 9112, 2.2: one empty line ahead of a request.
      if (requests_ && line.empty() && head_bytes_ == 2) return absl::OkStatus();
      return requests_ ? OnRequestLine(line) : OnStatusLine(line);
    case State::kFields:
      return line.empty() ? OnHeadEnd() : OnField(line);
    case State::kChunkSize:
      return OnChunkSize(line);
    case State::kChunkEnd:
      if (!line.empty()) return Broken("a chunk is longer than its size says");
      state_ = State::kChunkSize;
      return absl::OkStatus();
    case State::kTrailers:
      if (!line.empty()) return OnField(line);
      state_ = State::kDone;
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

// "GET /path HTTP/1.1"
absl::Status Http1Reader::OnRequestLine(std::string_view line) {
  const size_t verb = std::min(line.find(' '), line.size());
  const size_t target = line.rfind(' ');
  const std::string_view version = line.substr(std::min(target + 1, line.size()));
  const bool good = verb > 0 && verb < target && target < line.size() && All(line.substr(0, verb), kToken) &&
                    version.size() == 8 && version.starts_with("HTTP/1.") &&
                    absl::ascii_isdigit(static_cast<unsigned char>(version[7]));
  if (!good) return Broken(Join("its first line is ", Quoted(line)));
  verb_ = line.substr(0, verb);
  target_ = line.substr(verb + 1, target - verb - 1);
  minor_ = version[7] - '0';
  keep_alive_ = minor_ > 0;
  const bool known =
      target_.starts_with('/') || AuthorityIn(target_) || (target_ == "*" && verb_ == "OPTIONS");
  if (!known || !All(target_, kVisible)) return Broken(Join("its target is ", Quoted(target_)));
  state_ = State::kFields;
  return absl::OkStatus();
}

// "HTTP/1.1 200 OK"
absl::Status Http1Reader::OnStatusLine(std::string_view line) {
  const auto digit = [&](size_t i) { return absl::ascii_isdigit(static_cast<unsigned char>(line[i])); };
  const bool good = line.size() >= 12 && line.starts_with("HTTP/1.") && digit(7) && line[8] == ' ' &&
                    digit(9) && digit(10) && digit(11) && (line.size() == 12 || line[12] == ' ');
  if (!good) return Broken(Join("it begins with ", Quoted(line)));
  minor_ = line[7] - '0';
  keep_alive_ = minor_ > 0;
  status_ = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  if (status_ < 100) return Broken(Join("its status is ", status_));
  reason_ = line.substr(std::min<size_t>(13, line.size())).substr(0, kMaxReason);
  std::replace_if(reason_.begin(), reason_.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  chunked_ = has_length_ = false;
  length_ = 0;
  state_ = State::kFields;
  return absl::OkStatus();
}

absl::Status Http1Reader::OnField(std::string_view line) {
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  // Neither continued lines nor space before the colon: the two have fooled readers.
  if (colon == 0 || colon == line.size() || !All(name, kToken) || !All(line.substr(colon), kText))
    return Broken(Join("a header field is ", Quoted(line)));
  if (state_ == State::kTrailers) return absl::OkStatus();
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (requests_) headers_.Add(name, value);
  if (SameWord(name, "content-length")) return OnLength(value);
  if (SameWord(name, "transfer-encoding")) return OnCoding(value);
  if (SameWord(name, "connection")) {
    if (HasWord(value, "close")) keep_alive_ = false;
    else if (minor_ == 0 && HasWord(value, "keep-alive")) keep_alive_ = true;
  } else if (requests_ && SameWord(name, "host")) {
    if (++hosts_ > 1 || !All(value, kAuthority)) return Broken(Join("a Host field is ", Quoted(value)));
  } else if (requests_ && SameWord(name, "expect")) {
    expects_ = minor_ > 0 && SameWord(value, "100-continue");
  }
  return absl::OkStatus();
}

absl::Status Http1Reader::OnLength(std::string_view value) {
  const std::optional<uint64_t> length = ParseCount(value, 10);
  const bool again = has_length_ && (requests_ || length != length_);
  if (!length || again) return Broken("its content-length makes no sense");
  has_length_ = true;
  length_ = *length;
  return absl::OkStatus();
}

absl::Status Http1Reader::OnCoding(std::string_view value) {
  if (chunked_ || !SameWord(value, "chunked")) {
    const std::string what = Join("the transfer-encoding is ", Quoted(value));
    return requests_ ? Broken(what) : absl::UnimplementedError(what);
  }
  chunked_ = true;
  return absl::OkStatus();
}

absl::Status Http1Reader::OnHeadEnd() {
  if (requests_) return OnRequestHeadEnd();
  if (status_ == 101) return Broken("it changes to another protocol unasked");
  if (status_ < 200) {
    state_ = State::kFirstLine;  // the reply is yet to come
  } else if (head_only_ || status_ == 204 || status_ == 304) {
    state_ = State::kDone;
  } else if (chunked_ || has_length_) {
    return BeginBody();
  } else {
    keep_alive_ = false;
    state_ = State::kBodyToClose;
  }
  return absl::OkStatus();
}

absl::Status Http1Reader::OnRequestHeadEnd() {
  if (hosts_ == 0 && minor_ > 0) return Broken("it has no Host field");
  if (chunked_ && (has_length_ || minor_ == 0)) return Broken("it has no length that all readers agree on");
  if (const auto authority = AuthorityIn(target_)) {  // RFC 9112, 3.2.2: it counts instead of the field
    if (authority->empty() || !All(*authority, kAuthority))
      return Broken(Join("its target is ", Quoted(target_)));
    headers_.EraseIf([](std::string_view key) { return key == "host"; });
    headers_.AddLowerCase("host", *authority);
  }
  return BeginBody();
}

absl::Status Http1Reader::BeginBody() {
  if (chunked_) {
    state_ = State::kChunkSize;
    return absl::OkStatus();
  }
  if (length_ > max_body_) return TooLong(Join("body has ", length_, " bytes, more than ", max_body_), 413);
  left_ = length_;
  state_ = left_ == 0 ? State::kDone : State::kBody;
  return absl::OkStatus();
}

absl::Status Http1Reader::OnChunkSize(std::string_view line) {
  const std::string_view digits = line.substr(0, line.find_first_of("; \t"));
  const std::string_view rest = line.substr(digits.size()), extension = Trimmed(rest);
  const std::optional<uint64_t> size = ParseCount(digits, 16);
  const bool ends = extension.empty() ? rest.empty() || !requests_ : extension.starts_with(';');
  if (!size || !ends || !All(rest, kText)) return Broken(Join("the size of a chunk is ", Quoted(line)));
  head_bytes_ += rest.size();
  if (head_bytes_ > max_head_) return TooLong(Join("head has more than ", max_head_, " bytes"), 431);
  if (*size > max_body_ - body_.size()) return TooLong(Join("body has more than ", max_body_, " bytes"), 413);
  left_ = *size;
  state_ = left_ == 0 ? State::kTrailers : State::kChunk;
  return absl::OkStatus();
}

absl::Status Http1Reader::TakeBody(std::string_view* bytes) {
  const bool counted = state_ != State::kBodyToClose;
  const auto take = counted ? static_cast<size_t>(std::min<uint64_t>(left_, bytes->size())) : bytes->size();
  if (take > max_body_ - body_.size()) return TooLong(Join("body has more than ", max_body_, " bytes"), 413);
  body_.append(bytes->substr(0, take));
  bytes->remove_prefix(take);
  if (!counted) return absl::OkStatus();
  left_ -= take;
  if (left_ > 0) return absl::OkStatus();
  state_ = state_ == State::kChunk ? State::kChunkEnd : State::kDone;
  return absl::OkStatus();
}

}  // namespace curtail::internal
