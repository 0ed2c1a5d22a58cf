// SPDX-License-Identifier: Apache-2.0
#include "console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace curtail::tool {
namespace {

bool IsDumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::string_view(term) == "dumb";
}

bool NoColour() {
  const char* set = std::getenv("NO_COLOR");  // no-color.org: any value that is not empty
  return set != nullptr && *set != '\0';
}

size_t TerminalColumns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Write(FILE* file, std::string_view text) { (void)!std::fwrite(text.data(), 1, text.size(), file); }

}  // namespace

Console::Console()
    : err_is_terminal_(isatty(STDERR_FILENO) && !IsDumb()),
      colour_(isatty(STDOUT_FILENO) && !IsDumb() && !NoColour()) {}

void Console::Print(std::string_view text) {
  Progress({});
  Write(stdout, text);
  std::fflush(stdout);
}

void Console::Note(std::string_view line) {
  if (quiet_) return;
  Progress({});
  Write(stderr, line);
  Write(stderr, "\n");
}

void Console::Error(std::string_view what, std::string_view hint) {
  Progress({});
  std::string text = "curtail: ";
  text.append(what).append("\n");
  if (!hint.empty()) text.append("  hint: ").append(hint).append("\n");
  Write(stderr, text);
}

void Console::Progress(std::string_view line) {
  if (!shows_progress() || (line.empty() && !progress_shown_)) return;
  std::string text = "\r\x1b[K";
  text.append(line.substr(0, TerminalColumns() - 1));
  Write(stderr, text);
  std::fflush(stderr);
  progress_shown_ = !line.empty();
}

std::string Console::Styled(std::string_view code, std::string_view text) const {
  if (!colour_) return std::string(text);
  std::string styled = "\x1b[";
  styled.append(code).append("m").append(text).append("\x1b[0m");
  return styled;
}

}  // namespace curtail::tool
