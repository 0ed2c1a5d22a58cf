// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an XML dump and as WikiText: no crash, and what the parsers find does not depend on how the
// bytes are cut into pieces. Half of the inputs are edits of a small valid dump: pairs of bytes, where and
// what.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "apps/setalgebra/data/markup.h"
#include "apps/setalgebra/data/words.h"

namespace {

using namespace curtail::setalgebra;

void Require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::string_view kValid =
    "<?xml version=\"1.0\"?><mediawiki a='>'><!-- c --><page><title>T &amp; &#x41;</title><ns>0</ns>\n"
    "<redirect title=\"x\" /><revision><text x=\"1\">'''b''' <![CDATA[<&]]> &lt;\n</text></revision></page>\n"
    "<page><title>U</title><ns>0</ns><text>words</text></page></mediawiki>\n";

struct Parsed {
  bool ok = false;
  std::vector<std::string> pages;
};

// `size` bytes at once.
Parsed ParseDump(std::string_view text, size_t size) {
  PageParser parser;
  Parsed parsed;
  for (size_t at = 0; at < text.size(); at += size) {
    if (!parser.Feed(text.substr(at, size), &parsed.pages).ok()) return parsed;
  }
  parsed.ok = parser.Finish(&parsed.pages).ok();
  return parsed;
}

// All lines come out again, each in one article.
void CheckWikiText(std::string_view text) {
  WikiTextSplitter splitter;
  std::string joined, article, lines;
  bool blank = true;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    bool ended = false;
    Require(splitter.AddLine(line, &ended, &article).ok());
    if (ended) joined += article;
    lines.append(line).push_back('\n');
    blank = blank && line.find_first_not_of(" \t\r\n") == line.npos;
  }
  if (splitter.Finish(&article)) joined += article;
  // Blank lines in front of the first article belong to none.
  Require(lines.ends_with(joined));
  Require(joined.empty() == blank);
}

void CheckWords(std::string_view text) {
  ForEachWord(text, [](std::string_view word) {
    Require(!word.empty() && word.size() <= kMaxWord);
    const auto normal = NormalTerm(word);
    Require(normal.ok() && *normal == word);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] % 2 == 0) {
    text = kValid;
    for (size_t i = 1; i + 1 < size && i < 16; i += 2)
      text[data[i] % text.size()] = static_cast<char>(data[i + 1]);
  }
  const Parsed whole = ParseDump(text, std::max<size_t>(text.size(), 1));
  for (const size_t piece : {size_t{1}, size_t{7}}) {
    const Parsed cut = ParseDump(text, piece);
    Require(cut.ok == whole.ok && cut.pages == whole.pages);
  }
  CheckWikiText(text);
  CheckWords(text);
  return 0;
}
