// SPDX-License-Identifier: Apache-2.0
#include "curtail/term/console.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "curtail/base/internal/output_path.h"
#include "curtail/base/terminal.h"

namespace curtail {
namespace {

bool IsDumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::string_view(term) == "dumb";
}

bool NoColour() {
  const char* set = std::getenv("NO_COLOR");  // no-color.org: any value that is not empty
  return set != nullptr && *set != '\0';
}

// Visible(), but for the styles that a Console itself puts in.
std::string VisibleButStyles(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t escape = std::min(text.find('\x1b'), text.size());
    out += Visible(text.substr(0, escape));
    text.remove_prefix(escape);
    if (text.empty()) break;
    size_t length = 1;
    for (const std::string_view style : {"\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m"}) {
      if (text.starts_with(style)) length = style.size();
    }
    out += length > 1 ? std::string(text.substr(0, length)) : Visible(text.substr(0, 1));
    text.remove_prefix(length);
  }
  return out;
}

void Write(FILE* file, std::string_view text) { (void)!std::fwrite(text.data(), 1, text.size(), file); }

}  // namespace

Console::Console()
    : err_is_terminal_(isatty(STDERR_FILENO) && !IsDumb()),
      out_is_terminal_(isatty(STDOUT_FILENO) && !IsDumb()),
      colour_(out_is_terminal_ && !NoColour()) {}

void Console::Print(std::string_view text) {
  Progress({});
  Write(results_, colour_ ? VisibleButStyles(text) : Visible(text));
  std::fflush(results_);
}

void Console::PrintWrapped(std::string_view text) {
  Print(WrapText(text, TerminalColumns(fileno(results_))));
}

absl::Status Console::Deliver(std::string_view content) {
  Progress({});
  if (std::fwrite(content.data(), 1, content.size(), stdout) == content.size() && std::fflush(stdout) == 0)
    return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot write to the standard output");
}

absl::Status Console::DeliverTo(const std::string& path, std::string_view content) {
  if (internal::IsStdout(path)) return Deliver(content);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  return out ? absl::OkStatus() : absl::InternalError("cannot write " + path);
}

void Console::Note(std::string_view line) {
  if (quiet_) return;
  Progress({});
  Write(stderr, Visible(line));
  Write(stderr, "\n");
}

void Console::Error(std::string_view what, std::string_view hint) {
  Progress({});
  std::string text = "curtail: ";
  text.append(what).append("\n");
  if (!hint.empty()) text.append("  hint: ").append(hint).append("\n");
  Write(stderr, Visible(text));
}

void Console::Progress(std::string_view text) {
  if (!shows_progress() || (text.empty() && progress_lines_ == 0)) return;
  std::string out = "\r";
  for (size_t i = 1; i < progress_lines_; ++i) out += "\x1b[A";  // to the first of those that are shown
  out += "\x1b[J";
  const size_t terminal = TerminalColumns(STDERR_FILENO);
  const size_t columns = std::max<size_t>(terminal == 0 ? 80 : terminal, 2) - 1;
  const std::string wrapped = WrapText(Visible(text), columns);
  text = wrapped;
  progress_lines_ = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (progress_lines_++ > 0) out += "\n";
    out.append(text.substr(0, std::min(end, columns)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Write(stderr, out);
  std::fflush(stderr);
}

std::string Console::Styled(std::string_view code, std::string_view text) const {
  if (!colour_) return std::string(text);
  std::string styled = "\x1b[";
  styled.append(code).append("m").append(text).append("\x1b[0m");
  return styled;
}

}  // namespace curtail
