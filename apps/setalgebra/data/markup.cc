// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/data/markup.h"

#include <expat.h>

#include <algorithm>
#include <new>

#include "apps/setalgebra/data/data_spec.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
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

struct PageParser::Events {
  static PageParser& Self(void* self) { return *static_cast<PageParser*>(self); }

  static void Start(void* self, const XML_Char* name, const XML_Char**) { Self(self).Open(name); }
  static void End(void* self, const XML_Char* name) { Self(self).Close(name); }
  static void Text(void* self, const XML_Char* text, int size) {
    Self(self).OnText({text, static_cast<size_t>(size)});
  }
  static void Doctype(void* self, const XML_Char*, const XML_Char*, const XML_Char*, int has_definitions) {
    if (has_definitions == 0) return;
    Self(self).Fail(Self(self).Malformed("a document type with definitions is not handled"));
  }
  // Of a document type elsewhere, which expat does not read.
  static void Skipped(void* self, const XML_Char* name, int) {
    Self(self).Fail(Self(self).Malformed(Join("unknown entity &", name, ";")));
  }
};

PageParser::PageParser() : parser_(XML_ParserCreate(nullptr)) {
  if (parser_ == nullptr) throw std::bad_alloc();
  XML_SetUserData(parser_, this);
  XML_SetElementHandler(parser_, Events::Start, Events::End);
  XML_SetCharacterDataHandler(parser_, Events::Text);
  XML_SetStartDoctypeDeclHandler(parser_, Events::Doctype);
  XML_SetSkippedEntityHandler(parser_, Events::Skipped);
}

PageParser::~PageParser() { XML_ParserFree(parser_); }

void PageParser::Fail(const absl::Status& status) {
  if (!status_.ok()) return;
  status_ = status;
  XML_StopParser(parser_, XML_FALSE);
}

absl::Status PageParser::Malformed(std::string_view what) const {
  return absl::DataLossError(Join("line ", XML_GetCurrentLineNumber(parser_), ": ", what));
}

std::string_view PageParser::Here(std::string_view ends) const {
  int offset = 0, size = 0;
  const char* const text = XML_GetInputContext(parser_, &offset, &size);
  if (text == nullptr) return {};
  const std::string_view rest(text + offset, std::min<size_t>(static_cast<size_t>(size - offset), 64));
  return rest.substr(0, rest.find_first_of(ends));
}

absl::Status PageParser::Explain(bool last) const {
  const XML_Error code = XML_GetErrorCode(parser_);
  switch (code) {
    case XML_ERROR_TAG_MISMATCH:
      return Malformed(Join("</", Here("> \t\r\n"), "> closes <", open_.back().name.substr(0, 64),
                            "> of line ", open_.back().line));
    case XML_ERROR_UNDEFINED_ENTITY:
    case XML_ERROR_BAD_CHAR_REF:
      return Malformed(Join("unknown entity ", Here(";"), ";"));
    case XML_ERROR_NO_MEMORY:
      return absl::ResourceExhaustedError("no memory is left");
    case XML_ERROR_NO_ELEMENTS:
    case XML_ERROR_UNCLOSED_TOKEN:
    case XML_ERROR_UNCLOSED_CDATA_SECTION:
    case XML_ERROR_PARTIAL_CHAR:
      if (!last) break;
      if (!open_.empty()) {
        return Malformed(Join("the file ends at offset ", fed_, " inside of <",
                              open_.back().name.substr(0, 64), ">, which begins at line ", open_.back().line,
                              "; it is truncated"));
      }
      if (code == XML_ERROR_NO_ELEMENTS) break;
      return Malformed(Join("the file ends inside of a tag, comment or entity, at offset ", fed_));
    default:
      break;
  }
  return Malformed(Join(XML_ErrorString(code), " at column ", XML_GetCurrentColumnNumber(parser_) + 1,
                        open_.empty() ? "; is it an XML dump of MediaWiki?" : ""));
}

void PageParser::OnText(std::string_view text) {
  if (capture_ == nullptr || !status_.ok()) return;
  if (capture_->size() + text.size() > kMaxDocument) {
    return Fail(absl::ResourceExhaustedError(Join("line ", XML_GetCurrentLineNumber(parser_),
                                                  ": a page is longer than ", kMaxDocument >> 20, " MiB")));
  }
  capture_->append(text);
}

void PageParser::Open(std::string_view name) {
  if (!status_.ok()) return;
  if (open_.size() == kMaxDepth) {
    return Fail(Malformed(Join("elements are nested deeper than ", kMaxDepth)));
  }
  if (name == "page") {
    if (in_page_) return Fail(Malformed("<page> inside of <page>"));
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
  open_.push_back({std::string(name), XML_GetCurrentLineNumber(parser_)});
}

void PageParser::Close(std::string_view name) {
  if (!status_.ok()) return;
  capture_ = nullptr;
  open_.pop_back();
  if (name != "page") return;
  in_page_ = false;
  const std::string_view space = Trim(namespace_);
  if (!redirect_ && (space.empty() || space == "0")) pages_->push_back(title_ + "\n" + text_);
}

absl::Status PageParser::Parse(std::string_view piece, bool last) {
  fed_ += piece.size();
  const XML_Status parsed = XML_Parse(parser_, piece.data(), static_cast<int>(piece.size()), last);
  if (!status_.ok()) return status_;
  if (parsed == XML_STATUS_ERROR) return Explain(last);
  // expat holds what follows the last thing that it understood.
  const auto understood = static_cast<uint64_t>(std::max<XML_Index>(XML_GetCurrentByteIndex(parser_), 0));
  if (fed_ - understood <= kMaxTag + piece.size()) return absl::OkStatus();
  return absl::ResourceExhaustedError(Join("line ", XML_GetCurrentLineNumber(parser_),
                                           ": a tag, comment or instruction is longer than ", kMaxTag >> 20,
                                           " MiB"));
}

absl::Status PageParser::Feed(std::string_view piece, std::vector<std::string>* pages) {
  constexpr size_t kMaxPiece = kMaxTag;  // expat copies a piece
  pages_ = pages;
  while (!piece.empty()) {
    const absl::Status status = Parse(piece.substr(0, kMaxPiece), false);
    if (!status.ok()) return status;
    piece.remove_prefix(std::min(kMaxPiece, piece.size()));
  }
  return absl::OkStatus();
}

absl::Status PageParser::Finish(std::vector<std::string>* pages) {
  pages_ = pages;
  return Parse({}, true);
}

}  // namespace curtail::setalgebra
