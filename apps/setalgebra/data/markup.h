// SPDX-License-Identifier: Apache-2.0
//
// markup.h - finds the articles in WikiText and in MediaWiki's XML dumps, fed piece by piece.
//
// Both take any bytes without harm and hold no more than one document and what one call brought.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

struct XML_ParserStruct;  // of expat

namespace curtail::setalgebra {

// A WikiTextSplitter cuts lines into articles. A line " = Title = " after a blank line, or at the beginning,
// begins one; headings of sections (" = = Title = = ") do not. What stands before the first article is a
// document of its own unless it is blank. Thread-compatible.
class WikiTextSplitter {
 public:
  // The next line, without its end. Returns whether an article ended before it; then it is in `article`.
  // Errors: RESOURCE_EXHAUSTED (longer than kMaxDocument).
  [[nodiscard]] absl::Status AddLine(std::string_view line, bool* ended, std::string* article);
  // Call once, after the last line. Returns whether there is a last article.
  bool Finish(std::string* article);

 private:
  std::string text_;  // of the article so far
  bool after_blank_ = true;
  bool blank_ = true;  // nothing but blanks in `text_`
};

// A PageParser takes the pages out of an XML dump: title and text of those in namespace 0 that are no
// redirects; of several revisions the last. expat parses the XML, so it must be well-formed; a document type
// with definitions of its own is refused, and with it every entity that could expand. Thread-compatible.
class PageParser {
 public:
  // A longer tag, comment or instruction is refused, as is a page longer than kMaxDocument.
  static constexpr size_t kMaxTag = size_t{1} << 20;

  PageParser();
  ~PageParser();
  PageParser(const PageParser&) = delete;
  PageParser& operator=(const PageParser&) = delete;

  // The next piece, cut anywhere; pieces of many lines are faster. Appends pages that end in it, or leaves the last of
  // them to the next call. Errors: DATA_LOSS with the line, RESOURCE_EXHAUSTED (too long); after one the parser is of
  // no use.
  [[nodiscard]] absl::Status Feed(std::string_view piece, std::vector<std::string>* pages);
  // Call once, after the last piece. Errors: those of Feed(); DATA_LOSS with the offset when something is left open.
  [[nodiscard]] absl::Status Finish(std::vector<std::string>* pages);

 private:
  struct Events;  // what expat calls
  struct Element {
    std::string name;
    uint64_t line;  // where it begins
  };

  absl::Status Parse(std::string_view piece, bool last);
  // Ends the parse.
  void Fail(const absl::Status& status);
  absl::Status Malformed(std::string_view what) const;
  // The error that expat found.
  absl::Status Explain(bool last) const;
  // From where expat is up to one of `ends`.
  std::string_view Here(std::string_view ends) const;

  void OnText(std::string_view text);
  void Open(std::string_view name);
  void Close(std::string_view name);

  XML_ParserStruct* const parser_;
  uint64_t fed_ = 0;  // bytes
  absl::Status status_;
  std::vector<std::string>* pages_ = nullptr;  // of the call in progress
  std::vector<Element> open_;

  bool in_page_ = false;
  bool redirect_ = false;
  std::string title_, namespace_, text_;
  std::string* capture_ = nullptr;  // where character data go
};

}  // namespace curtail::setalgebra
