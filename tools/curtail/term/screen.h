// SPDX-License-Identifier: Apache-2.0
//
// screen.h - a terminal taken over for a page that is drawn anew time and again.
#pragma once

#include <termios.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "curtail/base/clock.h"

namespace curtail::tool {

struct ScreenLine {
  enum class Style : uint8_t { kPlain, kBold, kAlarm };

  std::string text;
  Style style = Style::kPlain;
};

struct ScreenSize {
  size_t columns = 80;
  size_t lines = 24;
  friend bool operator==(const ScreenSize&, const ScreenSize&) = default;
};

// That of the standard output, as it is now; 80 x 24 if it is not a terminal.
ScreenSize TerminalSize();

// A Screen has the terminal of the standard output for its lifetime: a page of its own, no cursor, keys that do not show.
// Its end, which includes that by a caught signal, puts back what was there. Thread-compatible.
class Screen {
 public:
  // REQUIRES: Console::has_terminal().
  explicit Screen(bool colour);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // As it is now.
  ScreenSize size() const { return TerminalSize(); }
  // The lines from the top on, cut off at the right and at the bottom. Control characters in them are escaped.
  void Draw(const std::vector<ScreenLine>& lines);

  enum class Event : uint8_t { kTime, kResized, kQuit };
  // Waits until `until`, or for a new size, for the key q, or for `stop`, which is kQuit.
  Event Wait(TimePoint until, const std::atomic<bool>& stop);

 private:
  const bool colour_;
  std::optional<termios> keys_before_;  // absent: the standard input is no terminal
  ScreenSize drawn_;                    // when it drew last
};

}  // namespace curtail::tool
