// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/markup.h"

#include <algorithm>
#include <array>
#include <utility>

#include "apps/setalgebra/data_spec.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

// Of UTF-8; editors put it first.
constexpr std::string_view kMark = "\xef\xbb\xbf";

constexpr std::string_view kBlanks = " \t\r\n";
constexpr size_t kMaxTag = 65536;
constexpr size_t kMaxEntity = 16;
constexpr size_t kMaxDepth = 256;

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool IsTitle(std::string_view line) {
  line = Trim(line);
  return line.size() >= 5 && line.starts_with("= ") && line.ends_with(" =") && !line.starts_with("= =") &&
         !line.ends_with("= =");
}

// The first of '<', '&' and the line end in `text`, from `at`; its size when there is none.
size_t FindMarkup(std::string_view text, size_t at) {
  constexpr auto kStops = [] {
    std::array<bool, 256> stops = {};
    for (const char c : {'<', '&', '\n'}) stops[static_cast<uint8_t>(c)] = true;
    return stops;
  }();
  while (at < text.size() && !kStops[static_cast<uint8_t>(text[at])]) ++at;
  return at;
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto byte = [out](uint32_t value) { out->push_back(static_cast<char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xe0 | code >> 12);
    } else {
      byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f));
    }
    byte(0x80 | (code >> 6 & 0x3f));
  }
  byte(0x80 | (code & 0x3f));
}

// "amp" or "#38" or "#x26"; false when it is no entity.
bool Decode(const std::string& name, std::string* out) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [known, byte] : kNamed) {
    if (name == known) return out->push_back(byte), true;
  }
  const bool hex = name.starts_with("#x");
  const std::string digits = name.substr(std::min<size_t>(name.size(), hex ? 2 : 1));
  if (!name.starts_with("#") || digits.empty() || digits.size() > 8) return false;
  const std::string_view allowed = hex ? "0123456789abcdefABCDEF" : "0123456789";
  if (digits.find_first_not_of(allowed) != std::string::npos) return false;
  uint32_t code = 0;
  for (const char c : digits) {
    const uint32_t digit = static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    code = code * (hex ? 16 : 10) + digit;
    if (code > 0x10ffff) return false;
  }
  if (code == 0 || (code >= 0xd800 && code < 0xe000)) return false;
  AppendUtf8(code, out);
  return true;
}

}  // namespace

absl::Status WikiTextSplitter::AddLine(std::string_view line, bool* ended, std::string* article) {
  *ended = false;
  if (after_blank_ && IsTitle(line)) {
    *ended = Finish(article);
    text_.clear(), blank_ = true;
  }
  after_blank_ = Trim(line).empty();
  blank_ = blank_ && after_blank_;
  if (text_.size() + line.size() > kMaxDocument) {
    return absl::ResourceExhaustedError(
        Join("an article is longer than ", kMaxDocument >> 20, " MiB; is it WikiText?"));
  }
  text_.append(line).push_back('\n');
  return absl::OkStatus();
}

bool WikiTextSplitter::Finish(std::string* article) {
  if (!blank_) article->swap(text_);
  return !blank_;
}

absl::Status PageParser::Malformed(std::string_view what) const {
  return absl::DataLossError(Join("line ", line_, ": ", what));
}

absl::Status PageParser::OnText(std::string_view text) {
  if (capture_ != nullptr) {
    if (capture_->size() + text.size() > kMaxDocument) {
      return absl::ResourceExhaustedError(
          Join("line ", line_, ": a page is longer than ", kMaxDocument >> 20, " MiB"));
    }
    capture_->append(text);
  } else if (open_.empty() && !Trim(text).empty()) {
    return Malformed("text outside of all elements; is it an XML dump of MediaWiki?");
  }
  return absl::OkStatus();
}

absl::Status PageParser::OnEntity() {
  std::string text;
  if (!Decode(markup_, &text)) return Malformed("unknown entity &" + markup_ + ";");
  return OnText(text);
}

absl::Status PageParser::Open(std::string name) {
  if (open_.size() == kMaxDepth) return Malformed(Join("elements are nested deeper than ", kMaxDepth));
  if (name == "page") {
    if (in_page_) return Malformed("<page> inside of <page>");
    in_page_ = true, redirect_ = false;
    title_.clear(), namespace_.clear(), text_.clear();
  } else if (in_page_) {
    if (name == "redirect") redirect_ = true;
    std::string* const wanted = name == "title"  ? &title_
                                : name == "ns"   ? &namespace_
                                : name == "text" ? &text_
                                                 : nullptr;
    if (wanted != nullptr) wanted->clear();
    capture_ = wanted;
  }
  open_.push_back({std::move(name), line_});
  return absl::OkStatus();
}

absl::Status PageParser::Close(std::string_view name, std::vector<std::string>* pages) {
  if (open_.empty()) return Malformed(Join("</", name, "> closes nothing"));
  if (open_.back().name != name) {
    return Malformed(Join("</", name.substr(0, 64), "> closes <", open_.back().name.substr(0, 64),
                          "> of line ", open_.back().line));
  }
  capture_ = nullptr;
  open_.pop_back();
  if (name != "page") return absl::OkStatus();
  in_page_ = false;
  const std::string_view space = Trim(namespace_);
  if (!redirect_ && (space.empty() || space == "0")) pages->push_back(title_ + "\n" + text_);
  return absl::OkStatus();
}

absl::Status PageParser::OnTag(std::vector<std::string>* pages) {
  std::string_view tag = markup_;
  if (tag.starts_with("!")) return absl::OkStatus();  // a document type
  if (tag.starts_with("/")) return Close(Trim(tag.substr(1)), pages);
  const bool empty = tag.ends_with("/");
  if (empty) tag.remove_suffix(1);
  const std::string name(tag.substr(0, tag.find_first_of(kBlanks)));
  if (name.empty()) return Malformed("a tag without a name");
  if (absl::Status status = Open(name); !status.ok() || !empty) return status;
  return Close(name, pages);
}

absl::Status PageParser::AddToTag(char byte, std::vector<std::string>* pages) {
  if (byte == '>' && quote_ == 0) {
    state_ = State::kText;
    return OnTag(pages);
  }
  if (quote_ != 0) {
    if (byte == quote_) quote_ = 0;
  } else if ((byte == '"' || byte == '\'') && !markup_.empty()) {
    quote_ = byte;
  } else if (byte == '[' && markup_.starts_with("!") && markup_ != "!" && markup_ != "![CDATA") {
    return Malformed("a document type with definitions is not handled");
  } else if (byte == '<') {
    return Malformed("'<' inside of a tag");
  }
  if (markup_.size() == kMaxTag) return Malformed(Join("a tag is longer than ", kMaxTag, " bytes"));
  markup_.push_back(byte);
  if (markup_ == "!--") state_ = State::kComment, markup_.clear();
  if (markup_ == "![CDATA[") state_ = State::kCdata, markup_.clear();
  if (markup_ == "?") state_ = State::kInstruction, markup_.clear();
  return absl::OkStatus();
}

absl::Status PageParser::AddUntil(std::string_view end, char byte) {
  markup_.push_back(byte);  // at most the last bytes of the section
  if (markup_ == end) {
    state_ = State::kText;
    return absl::OkStatus();
  }
  if (markup_.size() < end.size()) return absl::OkStatus();
  const char out = markup_.front();
  markup_.erase(0, 1);
  return state_ == State::kCdata ? OnText({&out, 1}) : absl::OkStatus();
}

absl::Status PageParser::Feed(std::string_view piece, std::vector<std::string>* pages) {
  for (size_t at = 0; at < piece.size();) {
    if (mark_ < kMark.size() && piece[at] == kMark[mark_]) {
      ++mark_, ++at;
      continue;
    }
    if (mark_ > 0 && mark_ < kMark.size()) return Malformed("half a byte order mark");
    mark_ = kMark.size();
    if (state_ == State::kText) {
      const size_t end = FindMarkup(piece, at);
      const bool line_end = end < piece.size() && piece[end] == '\n';
      const absl::Status status = OnText(piece.substr(at, end + line_end - at));
      if (!status.ok()) return status;
      at = end + 1;
      if (line_end) ++line_;
      if (line_end || end == piece.size()) continue;
      state_ = piece[end] == '<' ? State::kTag : State::kEntity;
      markup_.clear(), quote_ = 0;
      continue;
    }
    const char byte = piece[at++];
    if (byte == '\n') ++line_;
    absl::Status status;
    if (state_ == State::kTag) {
      status = AddToTag(byte, pages);
    } else if (state_ == State::kComment) {
      status = AddUntil("-->", byte);
    } else if (state_ == State::kCdata) {
      status = AddUntil("]]>", byte);
    } else if (state_ == State::kInstruction) {
      status = AddUntil("?>", byte);
    } else if (byte == ';') {
      state_ = State::kText, status = OnEntity();
    } else {
      markup_.push_back(byte);
      if (markup_.size() > kMaxEntity) status = Malformed("'&' that begins no entity");
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PageParser::Finish() const {
  if (!open_.empty()) {
    return Malformed(Join("the file ends inside of <", open_.back().name.substr(0, 64),
                          ">, which begins at line ", open_.back().line, "; it is truncated"));
  }
  if (mark_ > 0 && mark_ < kMark.size()) return Malformed("the file ends inside of a byte order mark");
  if (state_ != State::kText) return Malformed("the file ends inside of a tag, comment or entity");
  return absl::OkStatus();
}

}  // namespace curtail::setalgebra
