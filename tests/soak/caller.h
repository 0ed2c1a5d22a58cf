// SPDX-License-Identifier: Apache-2.0
//
// caller.h - the threads of the soak test that make calls.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plan.h"
#include "tally.h"
#include "watch.h"

namespace curtail::soak {

// A Caller makes calls that block, one at a time, of all kinds. Thread-compatible.
class Caller {
 public:
  // The routes' channels belong to one client. `raw` are addresses for peers that break off.
  Caller(uint64_t seed, std::vector<Route> routes, std::vector<std::string> raw, Watch& watch, Tally& tally);

  // One call, or a few at once.
  void CallOnce();

 private:
  // The steps of a call between its begin and its end.
  using Body = std::function<void(Context& ctx, const Plan& plan, Verdict& verdict)>;
  void Run(const std::string& kind, const Body& body);

  void Echo(Context& ctx, const Plan& plan, Verdict& verdict);
  void StraightFanOut(Context& ctx, const Plan& plan, Verdict& verdict);
  void WovenFanOut(Context& ctx, const Plan& plan, Verdict& verdict);
  void ClientFanOut(Context& ctx, const Plan& plan, Verdict& verdict);
  void AwaitAll(Context& ctx, const Plan& plan, Verdict& verdict);
  void Upload(Context& ctx, const Plan& plan, Verdict& verdict);
  void Replies(Context& ctx, const Plan& plan, Verdict& verdict);
  void Chat(Context& ctx, const Plan& plan, Verdict& verdict);
  void BreakOff();

  const std::vector<Route> routes_;
  const std::vector<std::string> raw_;
  const Watch& watch_;
  Tally& tally_;
  Watch::Slot* const slot_;
  Planner planner_;
};

// Makes event-driven calls, `in_flight` at a time, until `stop` says so; then waits for those under way. The routes'
// channels belong to `client`, which no other thread uses. `pace` returns once the next may begin, or has been waited
// for until its deadline; it tells which.
void CallByEvents(uint64_t seed, Client& client, const std::vector<Route>& routes, size_t in_flight,
                  Watch& watch, Tally& tally, const std::function<bool()>& stop,
                  const std::function<bool()>& due);

// Connects to `address` by hand, begins calls, and breaks off: by a reset of the connection, of the calls, or by bytes
// that are no frames.
void BreakOffAt(const std::string& address, Planner& planner);

}  // namespace curtail::soak
