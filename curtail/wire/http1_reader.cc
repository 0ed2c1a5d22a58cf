// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: lines and counted bytes take turns. All lines of a reply together are held to HttpReplyLimits::kMaxHeadBytes but
// for chunk sizes, which are held to kMaxChunkLine each: a body may have any number of chunks, none of them empty.
#include "curtail/wire/http1_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr size_t kMaxChunkLine = 1024;
constexpr size_t kMaxReason = 100;
constexpr size_t kQuoted = 40;
// A body that was longer than this gives its memory back.
constexpr size_t kKeptBody = 64u << 10;

absl::Status NotHttp(std::string_view what) {
  return absl::UnavailableError(Join("the server broke HTTP/1.1: ", what));
}

// `text` as far as it can be printed.
std::string Printable(std::string_view text, size_t limit) {
  std::string out(text.substr(0, limit));
  std::replace_if(out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

// A whole number in `base`, or nothing.
std::optional<uint64_t> ParseCount(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::string_view Trimmed(std::string_view text) {
  return absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size()));
}

// True if the list has the word, in whatever case.
bool HasWord(absl::string_view list, absl::string_view word) {
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(part), word)) return true;
  }
  return false;
}

}  // namespace

void Http1Reader::Begin(bool head_only) {
  state_ = State::kStatusLine;
  line_.clear();
  head_bytes_ = 0;
  head_only_ = head_only;
  status_ = 0;
  reason_.clear();
  if (body_.capacity() > kKeptBody) std::string().swap(body_);
  body_.clear();
}

absl::Status Http1Reader::Read(std::string_view* bytes) {
  while (!bytes->empty() && !done()) {
    if (state_ == State::kBody || state_ == State::kBodyToClose || state_ == State::kChunk) {
      if (absl::Status status = TakeBody(bytes); !status.ok()) return status;
      continue;
    }
    const absl::StatusOr<bool> whole = TakeLine(bytes);
    if (!whole.ok()) return whole.status();
    if (!*whole) return absl::OkStatus();
    absl::Status status = OnLine();
    line_.clear();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Http1Reader::End() {
  if (state_ == State::kBodyToClose) state_ = State::kDone;
}

absl::StatusOr<bool> Http1Reader::TakeLine(std::string_view* bytes) {
  const size_t end = bytes->find('\n');
  const size_t take = end == std::string_view::npos ? bytes->size() : end + 1;
  const bool chunk_line = state_ == State::kChunkSize || state_ == State::kChunkEnd;
  const size_t limit = chunk_line ? kMaxChunkLine : HttpReplyLimits::kMaxHeadBytes - head_bytes_;
  if (line_.size() + take > limit) {
    return absl::ResourceExhaustedError(
        chunk_line ? Join("the size of a chunk has more than ", kMaxChunkLine, " bytes")
                   : Join("the head of the reply has more than ", HttpReplyLimits::kMaxHeadBytes, " bytes"));
  }
  line_.append(bytes->substr(0, take));
  bytes->remove_prefix(take);
  if (end == std::string_view::npos) {
    // Something else than HTTP/1.1 need not have lines.
    constexpr std::string_view kStart = "HTTP/1.";
    const size_t known = std::min(line_.size(), kStart.size());
    if (state_ == State::kStatusLine && std::string_view(line_).substr(0, known) != kStart.substr(0, known))
      return OnStatusLine();
    return false;
  }
  if (!chunk_line) head_bytes_ += line_.size();
  line_.pop_back();
  if (line_.ends_with('\r')) line_.pop_back();
  return true;
}

absl::Status Http1Reader::OnLine() {
  switch (state_) {
    case State::kStatusLine:
      return OnStatusLine();
    case State::kFields:
      return line_.empty() ? OnHeadEnd() : OnField();
    case State::kChunkSize:
      return OnChunkSize();
    case State::kChunkEnd:
      if (!line_.empty()) return NotHttp("a chunk is longer than its size says");
      state_ = State::kChunkSize;
      return absl::OkStatus();
    case State::kTrailers:
      if (line_.empty()) state_ = State::kDone;
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

// "HTTP/1.1 200 OK"
absl::Status Http1Reader::OnStatusLine() {
  const std::string_view line = line_;
  const auto digit = [&](size_t i) { return absl::ascii_isdigit(static_cast<unsigned char>(line[i])); };
  const bool good = line.size() >= 12 && line.starts_with("HTTP/1.") && digit(7) && line[8] == ' ' &&
                    digit(9) && digit(10) && digit(11) && (line.size() == 12 || line[12] == ' ');
  if (!good) return NotHttp(Join("it begins with \"", Printable(line, kQuoted), "\""));
  keep_alive_ = line[7] != '0';
  status_ = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  if (status_ < 100) return NotHttp(Join("its status is ", status_));
  reason_.clear();
  if (line.size() > 13) reason_ = Printable(line.substr(13), kMaxReason);
  chunked_ = has_length_ = false;
  length_ = 0;
  state_ = State::kFields;
  return absl::OkStatus();
}

absl::Status Http1Reader::OnField() {
  const std::string_view line = line_;
  const size_t colon = line.find(':');
  // Neither continued lines nor space before the colon: the two have fooled readers.
  if (colon == std::string_view::npos || colon == 0 ||
      line.substr(0, colon).find_first_of(" \t") != line.npos)
    return NotHttp(Join("a header field is \"", Printable(line, kQuoted), "\""));
  const absl::string_view name(line.data(), colon);
  const absl::string_view value = Trimmed(line.substr(colon + 1));
  if (absl::EqualsIgnoreCase(name, "content-length")) {
    const std::optional<uint64_t> length = ParseCount({value.data(), value.size()}, 10);
    if (!length || (has_length_ && *length != length_)) return NotHttp("its content-length makes no sense");
    has_length_ = true;
    length_ = *length;
  } else if (absl::EqualsIgnoreCase(name, "transfer-encoding")) {
    if (chunked_ || !absl::EqualsIgnoreCase(value, "chunked")) {
      return absl::UnimplementedError(
          Join("the reply has the transfer-encoding ", Printable({value.data(), value.size()}, kQuoted)));
    }
    chunked_ = true;
  } else if (absl::EqualsIgnoreCase(name, "connection")) {
    if (HasWord(value, "close")) keep_alive_ = false;
    else if (HasWord(value, "keep-alive")) keep_alive_ = true;
  }
  return absl::OkStatus();
}

absl::Status Http1Reader::OnHeadEnd() {
  if (status_ == 101) return NotHttp("it changes to another protocol unasked");
  if (status_ < 200) {
    state_ = State::kStatusLine;  // the reply is yet to come
  } else if (head_only_ || status_ == 204 || status_ == 304) {
    state_ = State::kDone;
  } else if (chunked_) {
    state_ = State::kChunkSize;
  } else if (has_length_) {
    if (length_ > limits_.max_body_bytes) {
      return absl::ResourceExhaustedError(
          Join("a reply of ", length_, " bytes, more than ", limits_.max_body_bytes));
    }
    left_ = length_;
    state_ = left_ == 0 ? State::kDone : State::kBody;
  } else {
    keep_alive_ = false;
    state_ = State::kBodyToClose;
  }
  return absl::OkStatus();
}

absl::Status Http1Reader::OnChunkSize() {
  const std::string_view line = std::string_view(line_).substr(0, line_.find(';'));
  const absl::string_view digits = Trimmed(line);
  const std::optional<uint64_t> size = ParseCount({digits.data(), digits.size()}, 16);
  if (!size) return NotHttp(Join("the size of a chunk is \"", Printable(line, kQuoted), "\""));
  left_ = *size;
  state_ = left_ == 0 ? State::kTrailers : State::kChunk;
  return absl::OkStatus();
}

absl::Status Http1Reader::TakeBody(std::string_view* bytes) {
  const bool counted = state_ != State::kBodyToClose;
  const auto take = counted ? static_cast<size_t>(std::min<uint64_t>(left_, bytes->size())) : bytes->size();
  if (take > limits_.max_body_bytes - body_.size()) {
    return absl::ResourceExhaustedError(Join("a reply of more than ", limits_.max_body_bytes, " bytes"));
  }
  body_.append(bytes->substr(0, take));
  bytes->remove_prefix(take);
  if (!counted) return absl::OkStatus();
  left_ -= take;
  if (left_ > 0) return absl::OkStatus();
  state_ = state_ == State::kChunk ? State::kChunkEnd : State::kDone;
  return absl::OkStatus();
}

}  // namespace curtail::internal
