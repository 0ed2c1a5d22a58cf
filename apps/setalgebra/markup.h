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
// redirects; of several revisions the last. It checks that tags match, knows the five named entities and
// numeric ones, comments, CDATA and processing instructions; a document type with definitions of its own is
// refused. Thread-compatible.
class PageParser {
 public:
  // The next piece, cut anywhere. Appends pages that end in it. Errors: DATA_LOSS with the line,
  // RESOURCE_EXHAUSTED (a page longer than kMaxDocument); after one the parser is of no use.
  [[nodiscard]] absl::Status Feed(std::string_view piece, std::vector<std::string>* pages);
  // Call once, after the last piece. Errors: DATA_LOSS when something is left open.
  [[nodiscard]] absl::Status Finish() const;

 private:
  enum class State { kText, kEntity, kTag, kComment, kCdata, kInstruction };
  struct Element {
    std::string name;
    uint64_t line;  // where it begins
  };

  absl::Status Malformed(std::string_view what) const;
  // Character data.
  absl::Status OnText(std::string_view text);
  absl::Status OnEntity();
  // `markup_` holds what stands between < and >.
  absl::Status OnTag(std::vector<std::string>* pages);
  absl::Status Open(std::string name);
  absl::Status Close(std::string_view name, std::vector<std::string>* pages);
  // One more byte between < and >.
  absl::Status AddToTag(char byte, std::vector<std::string>* pages);
  // One more byte of a comment, CDATA section or instruction, which ends with `end`.
  absl::Status AddUntil(std::string_view end, char byte);

  State state_ = State::kText;
  size_t mark_ = 0;  // bytes of the byte order mark at the start that have come, or all when there is none
  uint64_t line_ = 1;
  std::vector<Element> open_;
  std::string markup_;  // of the entity, tag or section so far
  char quote_ = 0;      // that is open in the tag

  bool in_page_ = false;
  bool redirect_ = false;
  std::string title_, namespace_, text_;
  std::string* capture_ = nullptr;  // where character data go
};

}  // namespace curtail::setalgebra
