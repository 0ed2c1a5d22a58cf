// SPDX-License-Identifier: Apache-2.0
//
// transport_error.h - what the first bytes of a server say about the language it speaks, in words for a person.
//
// For clients whose call went to the wrong port, or with TLS to one without it or the other way round. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace curtail::internal {

// More of them than this say nothing new. Short enough for a std::string to hold without allocating.
inline constexpr size_t kOpeningBytes = 9;

// Why a server whose first bytes these are is no partner for a client that speaks HTTP/2, in TLS or in plain text.
// Empty: it may be one.
std::string ExplainOpening(std::string_view first, bool tls);

// How far a client's connection had come when it ended.
struct Progress {
  std::string_view first;         // the first bytes from the server
  bool tls = false;               // it was to be TLS,
  bool standing = false;          // the handshake was over,
  bool spoke = false;             // and the server had said something within
  bool owes_certificate = false;  // the server had asked for a client certificate, and got none
  bool known = false;             // servers of its target have answered calls: it speaks the right language
};

// The words to add to the news that a connection has ended, if it came early: " during the TLS handshake".
std::string_view ExplainEnd(const Progress& progress);

}  // namespace curtail::internal
