// SPDX-License-Identifier: Apache-2.0
//
// plan.h - a call of the soak test as chance has it, and the ends that it may have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/rng.h"
#include "curtail/rpc/channel.h"
#include "soak.pb.h"
#include "tally.h"
#include "watch.h"

namespace curtail::soak {

// One way to a server. `restarts`: the server is killed and started again meanwhile.
struct Route {
  Channel* channel;
  std::string name;
  bool restarts;
};

// A deadline that no call reaches, if none is lost.
inline constexpr std::chrono::seconds kAmple(40);

// The request of the call.
struct Plan {
  Route route;
  Nanos timeout = kAmple;
  std::optional<Nanos> cancel_after;
  Packet request;
  std::string text;   // of the metadata; empty: none
  std::string bytes;  // likewise
};

// A Planner draws calls. Thread-compatible.
class Planner {
 public:
  explicit Planner(uint64_t seed);

  Rng& rng() { return rng_; }
  bool Chance(double share) { return rng_.Uniform01() < share; }
  // Up to `most`, and mostly short. Half of the bytes can be compressed.
  std::string Payload(size_t most);
  Plan Draw(const Route& route);

 private:
  Rng rng_;
  std::string pool_;
};

// A Verdict watches over one call from its construction to Ended().
class Verdict {
 public:
  Verdict(std::string kind, const Plan& plan, const Watch& watch, Tally& tally);

  // Counts the end, and finds fault with a status that `plan` does not permit. True if it was OK.
  bool Ended(const absl::Status& status);
  // The answer of a call that was OK.
  void Expect(bool holds, const std::string& what);
  void ExpectMetadata(const Metadata& metadata, const std::string& part);

  Deadline deadline() const { return Deadline::At(begun_ + plan_.timeout); }

 private:
  bool Permits(const absl::Status& status) const;
  void Fault(const std::string& what);

  const std::string kind_;
  const Plan& plan_;
  const Watch& watch_;
  Tally& tally_;
  const uint64_t stalls_;
  const TimePoint begun_ = Now();
};

}  // namespace curtail::soak
