// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/terminal.h"

#include <sstream>

#include "gtest/gtest.h"

namespace curtail {
namespace {

TEST(WrapText, BreaksAtSpacesAndKeepsIndentation) {
  EXPECT_EQ(WrapText("one two three", 7), "one two\nthree");
  EXPECT_EQ(WrapText("one two three\nfour\n", 80), "one two three\nfour\n");
  EXPECT_EQ(WrapText("  curtail load 127.0.0.1:7000 --rps 500", 30),
            "  curtail load 127.0.0.1:7000\n    --rps 500");
  EXPECT_EQ(WrapText("sent 10/s  p50 0.06 ms  p99 2 ms", 17), "sent 10/s\np50 0.06 ms\np99 2 ms")
      << "whole fields";
  EXPECT_EQ(WrapText("", 10), "");
  EXPECT_EQ(WrapText("a  b", 0), "a  b") << "no terminal";
  EXPECT_EQ(WrapText("unbreakable", 4), "unbreakable");
}

TEST(WrapText, DescriptionsGoOnBelowThemselves) {
  EXPECT_EQ(WrapText("  --flag TEXT         what this flag is for, and why", 46),
            "  --flag TEXT         what this flag is for,\n                      and why");
  EXPECT_EQ(WrapText("  --flag TEXT         what this flag is for, and why", 40),
            "  --flag TEXT         what this flag is\n      for, and why")
      << "too narrow for that";
  EXPECT_EQ(WrapText("  --flag TEXT         takes application/x-www-form-urlencoded bodies", 50),
            "  --flag TEXT         takes\n      application/x-www-form-urlencoded bodies")
      << "a word that has no room below the description";
  EXPECT_EQ(WrapText("time     about three minutes, five at most", 34),
            "time     about three minutes, five\n         at most");
  EXPECT_EQ(WrapText("time     about three minutes, five at most", 30),
            "time     about three minutes,\nfive at most")
      << "too narrow for that";
}

TEST(WrapText, NoLineIsTooLongAndNoWordIsLost) {
  const std::string text =
      "Usage: curtail load [OPTIONS]\n\n  -a,--alpha TEXT             Words of the first flag, a long text "
      "of them\n"
      "A footer whose lines were broken by hand at some width, which is more than the terminal has\n";
  const auto words = [](const std::string& t) {
    std::istringstream in(t);
    std::string all;
    for (std::string word; in >> word;) all += word + " ";
    return all;
  };
  for (size_t columns = 20; columns < 100; ++columns) {
    const std::string wrapped = WrapText(text, columns);
    EXPECT_EQ(words(wrapped), words(text)) << columns;
    std::istringstream in(wrapped);
    for (std::string line; std::getline(in, line);) EXPECT_LE(line.size(), columns) << line;
  }
}

TEST(Visible, EscapesWhatWouldActOnATerminal) {
  EXPECT_EQ(Visible("plain \xc3\xa9 text,\n\ttwo lines"), "plain \xc3\xa9 text,\n\ttwo lines");
  EXPECT_EQ(Visible("\x1b]0;owned\a\x1b[2J\r"), "\\x1b]0;owned\\x07\\x1b[2J\\x0d");
  EXPECT_EQ(Visible("\x7f\xc2\x9b[2J\xc2\xa0"), "\\x7f\\xc2\\x9b[2J\xc2\xa0");
  EXPECT_EQ(Visible(std::string_view("\0", 1)), "\\x00");
}

}  // namespace
}  // namespace curtail
