// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/log_tail.h"

#include <fstream>

namespace curtail::tool {
namespace {

std::streamoff SizeOf(std::istream& in) {
  in.seekg(0, std::ios::end);
  return in.tellg();
}

void AddLine(std::string line, size_t last, std::deque<std::string>* lines) {
  lines->push_back(std::move(line));
  if (last > 0 && lines->size() > last) lines->pop_front();
}

}  // namespace

std::deque<std::string> LogTail::Take(size_t last, bool end) {
  std::deque<std::string> lines;
  std::ifstream in(path_, std::ios::binary);
  if (!in) return lines;
  if (SizeOf(in) < at_) TakeMoved(last, &lines);
  Read(in, last, end, &lines);
  return lines;
}

void LogTail::TakeMoved(size_t last, std::deque<std::string>* lines) {
  if (std::ifstream moved(path_ + ".1", std::ios::binary); moved) {
    if (SizeOf(moved) < at_) at_ = 0;  // moved more than once: nothing of it was read
    Read(moved, last, /*end=*/false, lines);
    moved.clear();
    moved.seekg(at_);
    std::string rest;
    std::getline(moved, rest);
    begun_ += rest;
  }
  at_ = 0;
}

void LogTail::Read(std::istream& in, size_t last, bool end, std::deque<std::string>* lines) {
  in.seekg(at_);
  for (std::string line; std::getline(in, line) && (end || !in.eof());) {
    at_ += static_cast<std::streamoff>(line.size()) + (in.eof() ? 0 : 1);
    AddLine(std::exchange(begun_, "") + line, last, lines);
  }
}

}  // namespace curtail::tool
