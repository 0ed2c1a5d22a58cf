// SPDX-License-Identifier: Apache-2.0
//
// attacks.h - the attacks of the benchmark: at which ports, by how many connections, and all bytes that each of them sends.
#pragma once

#include <string>
#include <vector>

namespace curtail::victims {

// The method that clients call; its server is the leaf of apps/fanout.
inline constexpr char kEcho[] = "/curtail.fanout.Leaf/Echo";

// Where an attack goes to.
enum class Port {
  kAuto,     // gRPC, of a server under "auto"
  kSib1,     // the same under SIB1, whose one thread does everything
  kGateway,  // HTTP, in front of a server
  kAdmin,    // the HTTP admin port of a server
  kBeside,   // the same, and the client calls the server's gRPC port
};
// "gRPC, SIB1"
std::string NameOf(Port port);

enum class Manner {
  kReads,  // reads all answers, ends its side behind its bytes, and connects again once the server has ended the other
  kLeaves,  // reads nothing, closes behind its bytes, and connects again
  kStays,   // reads nothing, and connects again when the server closes
};

struct Attack {
  std::string name;
  std::vector<Port> ports;
  int connections;
  Manner manner;
  std::string (*bytes)();  // of a connection
};

// Each kind of port has an honest load first, for the cost of a megabyte.
std::vector<Attack> Attacks();

}  // namespace curtail::victims
