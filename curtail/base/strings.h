// SPDX-License-Identifier: Apache-2.0
//
// strings.h - joins text, parses numbers, and reads status messages as std::string_view.
//
// Distributions build Abseil with its own string_view or with the standard one. Code that uses
// these functions compiles with either.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace curtail {

// The text of a status. Valid as long as `status`.
inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

// The number that the whole `text` denotes; none for any other text, infinities included.
std::optional<double> ParseNumber(std::string_view text);

namespace internal {

// One argument of Join(): text, or an integer written in decimal.
class Piece {
 public:
  Piece(std::string_view text) : text_(text) {}
  Piece(const std::string& text) : text_(text) {}
  Piece(const char* text) : text_(text) {}
  template <std::integral Integer>
  Piece(Integer number) : text_(buffer_, std::to_chars(buffer_, buffer_ + sizeof buffer_, number).ptr) {}
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  std::string_view text() const { return text_; }

 private:
  char buffer_[24];
  std::string_view text_;
};

std::string JoinPieces(std::initializer_list<const Piece*> pieces);

}  // namespace internal

// The arguments, text or integers, one after the other.
template <class... Args>
std::string Join(const Args&... args) {
  return [](const auto&... pieces) { return internal::JoinPieces({&pieces...}); }(internal::Piece(args)...);
}

}  // namespace curtail
