// SPDX-License-Identifier: Apache-2.0
//
// console.h - what the user sees: results on stdout, progress and errors on stderr.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace curtail {

// A Console writes for a person or a pipe: colours and the progress line only on a terminal,
// neither with NO_COLOR (for colours), TERM=dumb or --quiet (for progress). Control characters in
// what it is given, which may be a peer's, are escaped, but not in Deliver(). Thread-compatible.
class Console {
 public:
  Console();

  // No progress, and no notes.
  void set_quiet(bool quiet) { quiet_ = quiet; }

  // From now on results for people go to stderr too, as stdout takes one for programs.
  void print_to_stderr() { results_ = stderr, colour_ = false; }

  // A result.
  void Print(std::string_view text);
  // The same with lines for which the terminal has no room broken at spaces; tables are for
  // Print().
  void PrintWrapped(std::string_view text);
  // A result for programs, to stdout.
  absl::Status Deliver(std::string_view content);
  // The same into a file; "-" and /dev/stdout are stdout.
  absl::Status DeliverTo(const std::string& path, std::string_view content);
  // Something worth knowing that is not a result; a line on stderr.
  void Note(std::string_view line);
  // "curtail: WHAT" and "  hint: HOW" on stderr; the hint may be empty.
  void Error(std::string_view what, std::string_view hint);

  // Replaces what was last shown here, a line or several; an empty text clears it. Does nothing
  // unless stderr is a terminal.
  void Progress(std::string_view text);
  bool shows_progress() const { return err_is_terminal_ && !quiet_; }

  // True if stdout is a terminal that knows more than lines.
  bool has_terminal() const { return out_is_terminal_; }
  bool colour() const { return colour_; }

  // `text` in bold or in green, where results may have colours.
  std::string Bold(std::string_view text) const { return Styled("1", text); }
  std::string Green(std::string_view text) const { return Styled("32", text); }
  std::string Red(std::string_view text) const { return Styled("31", text); }

 private:
  std::string Styled(std::string_view code, std::string_view text) const;

  bool err_is_terminal_;
  bool out_is_terminal_;
  bool colour_;
  bool quiet_ = false;
  FILE* results_ = stdout;
  size_t progress_lines_ = 0;  // that are shown
};

}  // namespace curtail
