// SPDX-License-Identifier: Apache-2.0
//
// terminal.h - text that a terminal has room for and shows safely. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace curtail {

// `text` with each line of more than `columns` bytes broken at spaces. A line goes on below its own
// beginning, or below the description where it is one of `--flag  description` and the terminal has
// room for that. Of lines that are not indented only lines with a label, `time  about 3 min`, go on
// below the text. Words stay whole.
std::string WrapText(std::string_view text, size_t columns);

// `help` as the terminal of the standard output has room for it; as it is where that is not a
// terminal.
std::string HelpForTerminal(std::string_view help);

// Columns of the terminal that `fd` is; 0 where it is none or does not say.
size_t TerminalColumns(int fd);

// `text` for a terminal: control characters other than tab and newline, which may come from a peer
// and would act on the terminal, are written as "\x1b". Control characters of UTF-8 (U+0080 to
// U+009F) too.
std::string Visible(std::string_view text);

}  // namespace curtail
