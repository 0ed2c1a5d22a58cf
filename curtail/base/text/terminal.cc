// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace curtail {
namespace {

// The least room for text beside an indentation.
constexpr size_t kLeastText = 24;
constexpr size_t kShallow = 6;  // where a description goes on that has no room below itself
constexpr size_t kLabel = 12;   // the longest label before a text

size_t LongestWord(std::string_view text) {
  size_t longest = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    longest = std::max(longest, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

// Where the lines begin in which `line` goes on.
size_t HangingIndent(std::string_view line, size_t columns) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = line.find("  ", begin);
  const size_t description = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  const bool label = gap <= kLabel && description != std::string_view::npos &&
                     description + kLeastText <= columns &&
                     line.find("  ", description) == std::string_view::npos;
  if (begin == 0 && !label) return 0;
  if (description == std::string_view::npos) {
    const size_t indent = begin < kShallow ? begin + 2 : begin;  // deep ones are descriptions on their own
    return indent + kLeastText <= columns ? indent : 0;
  }
  const size_t longest = LongestWord(line.substr(description));
  const bool only_shallow = description + longest > columns && kShallow + longest <= columns;
  if (description + kLeastText <= columns && !only_shallow) return description;
  return kShallow + kLeastText <= columns ? kShallow : 0;
}

void AppendWrapped(std::string_view line, size_t columns, std::string* out) {
  const size_t hang = HangingIndent(line, columns);
  size_t room = columns, least = std::min(line.find_first_not_of(' '), line.size());
  while (line.size() > room) {
    // Fields that two spaces part stay whole where that leaves no line half empty.
    const size_t field = line.rfind("  ", room);
    size_t at = field != std::string_view::npos && field > room / 2 ? field : line.rfind(' ', room);
    if (at == std::string_view::npos || at <= least) at = line.find(' ', std::max(room, least));
    if (at == std::string_view::npos) break;
    const size_t end = line.substr(0, at).find_last_not_of(' ') + 1;
    const size_t next = std::min(line.find_first_not_of(' ', at), line.size());
    out->append(line.substr(0, end));
    line.remove_prefix(next);
    if (line.empty()) return;
    out->append("\n").append(hang, ' ');
    room = columns - hang, least = 0;
  }
  out->append(line);
}

}  // namespace

std::string WrapText(std::string_view text, size_t columns) {
  if (columns == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    AppendWrapped(text.substr(0, end), columns, &out);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string HelpForTerminal(std::string_view help) { return WrapText(help, TerminalColumns(STDOUT_FILENO)); }

size_t TerminalColumns(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string Visible(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  const auto escape = [&out](unsigned char byte) {
    out.append("\\x");
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && (text[i + 1] & 0xe0) == 0x80;
    if (c1) {
      escape(byte);
      escape(static_cast<unsigned char>(text[++i]));
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      escape(byte);
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace curtail
