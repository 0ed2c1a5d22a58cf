// SPDX-License-Identifier: Apache-2.0
//
// output_testing.h - the output of Gather() as the peer would read it, and input by way of Room().
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/wire/session.h"

namespace curtail::wire {

inline std::string Joined(const Output& output) {
  std::string joined;
  size_t from = 0;
  for (const Output::Piece& piece : output.pieces) {
    joined.append(output.bytes, from, piece.at - from).append(piece.bytes);
    from = piece.at;
  }
  return joined.append(output.bytes, from);
}

// As session.Receive(bytes), for an owner that reads into rooms of `least` bytes and more.
inline absl::Status ReceiveByRooms(Session& session, std::string_view bytes, size_t least) {
  while (!bytes.empty()) {
    const std::span<char> room = session.Room(least);
    if (room.empty()) return session.Receive(bytes);
    const size_t n = std::min(room.size(), bytes.size());
    std::copy_n(bytes.data(), n, room.data());
    bytes.remove_prefix(n);
    if (absl::Status status = session.ReceivedInRoom(n); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace curtail::wire
