// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: escape sequences that every terminal since xterm has, so no terminfo. The size is asked for in each turn of a
// wait, so a resize needs no signal handler.
#include "tools/curtail/term/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "curtail/base/terminal.h"

namespace curtail::tool {
namespace {

constexpr int kTurnMs = 100;
constexpr std::string_view kTakeOver = "\x1b[?1049h\x1b[?25l";  // the other page, no cursor
constexpr std::string_view kGiveBack = "\x1b[?25h\x1b[?1049l";

void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the terminal is gone, which SIGHUP says
    text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

Screen::Screen(bool colour) : colour_(colour) {
  termios keys{};
  if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &keys) == 0) {
    keys_before_ = keys;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // stopped, it could not put the page back
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  WriteAll(kTakeOver);
  drawn_ = TerminalSize();
}

Screen::~Screen() {
  WriteAll(kGiveBack);
  if (keys_before_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &*keys_before_);
}

ScreenSize TerminalSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void Screen::Draw(const std::vector<ScreenLine>& lines) {
  drawn_ = size();
  std::string out = "\x1b[H";
  for (size_t i = 0; i < std::min(lines.size(), drawn_.lines); ++i) {
    const ScreenLine& line = lines[i];
    out += i > 0 ? "\r\n\x1b[K" : "\x1b[K";  // before the text, which may end in the last column
    const bool alarm = line.style == ScreenLine::Style::kAlarm && colour_;
    if (alarm) out += "\x1b[31m";
    if (line.style == ScreenLine::Style::kBold) out += "\x1b[1m";
    out += Visible(line.text).substr(0, drawn_.columns);
    out += "\x1b[0m";
  }
  if (lines.size() < drawn_.lines) out += "\r\n\x1b[J";
  WriteAll(out);
}

Screen::Event Screen::Wait(TimePoint until, const std::atomic<bool>& stop) {
  while (Now() < until) {
    if (stop.load(std::memory_order_relaxed)) return Event::kQuit;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Now()).count();
    pollfd keys{keys_before_ ? STDIN_FILENO : -1, POLLIN, 0};
    if (poll(&keys, 1, static_cast<int>(std::clamp<int64_t>(left, 0, kTurnMs))) > 0) {
      std::array<char, 64> typed{};
      const ssize_t n = read(STDIN_FILENO, typed.data(), typed.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Event::kQuit;  // the terminal is gone
      const std::string_view text(typed.data(), static_cast<size_t>(n));
      if (text.find_first_of("qQ") != std::string_view::npos) return Event::kQuit;
    }
    if (size() != drawn_) return Event::kResized;
  }
  return Event::kTime;
}

}  // namespace curtail::tool
