// SPDX-License-Identifier: Apache-2.0
//
// servers.h - the servers of a channel that has, or may have, more than one.
//
// The protocol is at the top of servers.cc.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/client/balancer/balancer.h"
#include "curtail/rpc/client/servers/name_lookups.h"
#include "curtail/rpc/client/servers/subchannel.h"
#include "curtail/rpc/resolver.h"
#include "curtail/wire/metadata.h"

namespace curtail::internal {

class PartialResolver;

// A ServerList is the servers of one answer of the resolver. Immutable but for its counters.
struct ServerList {
  std::vector<std::shared_ptr<Subchannel>> members;
  std::unique_ptr<Balancer> balancer;
  // Atomic, relaxed: a counter, and a hint.
  mutable std::atomic<uint64_t> sequence{0};
  mutable std::atomic<size_t> last{0};
};

// Servers that a call would rather not go to.
using UsedServers = std::span<const SharedBackend* const>;

// A Servers keeps the list up to date and finds the connection for a call. Thread-safe.
class Servers final : public Lookup, public std::enable_shared_from_this<Servers> {
 public:
  using Connected = absl::StatusOr<std::shared_ptr<ClientConnection>>;

  // `lookups` outlives the channel, and so all but the last LookUp(). `balancer` names a balancer that there is.
  Servers(std::shared_ptr<const ConnectSettings> settings, std::shared_ptr<Resolver> resolver,
          BalancerOptions balancer, NameLookups* lookups);
  ~Servers() override;

  // A connection on `poller` for a call that carries `metadata`; to a server that is not `used`, if the balancer names
  // one. Blocks only while no address is known, for as long as the resolver does.
  Connected Acquire(const std::shared_ptr<Poller>& poller, TimePoint now, const wire::Metadata& metadata,
                    UsedServers used);

  // When a server may be called, or asked for; long ago if one may be now.
  TimePoint NextAttempt();
  // Asks the resolver, on this thread.
  void LookUp() override;
  // Has it asked when that is due again.
  void Lost();
  // The same as Lost(); and if calls went to `backend` last, another comes next.
  void Unreachable(const Backend& backend);
  // Its calls fail one after the other.
  void FailedInARow(Backend& backend);
  // OK once addresses are known; asks for them the first time.
  absl::Status Known(TimePoint now);
  // Closes all connections and asks no more. REQUIRES: no call is in flight.
  void Close();
  bool Answered();

 private:
  class Member;
  // The state that threads of one poller use, so that they do not meet those of others.
  struct Place {
    Mutex mu;
    std::shared_ptr<const ServerList> list CURTAIL_GUARDED_BY(mu);
    uint64_t version CURTAIL_GUARDED_BY(mu) = 0;
  };

  struct Chosen {
    std::shared_ptr<Subchannel> subchannel;  // null: none is up
    bool waits = false;  // the call waits for its connection, even if another server has one
  };

  // Plans a lookup for `when`. If there is no thread for it, the next failure asks again.
  void LookUpAt(TimePoint when);
  // A connection for a call, among the servers that are up.
  Connected Find(Place& place, const std::shared_ptr<Poller>& poller, TimePoint now,
                 const wire::Metadata& metadata, UsedServers used = {});
  Chosen Choose(Place& place, uint32_t poller, TimePoint now, const wire::Metadata& metadata);
  // Brings the place up to date; returns the list that it had, to be retired.
  std::shared_ptr<const ServerList> Refresh(Place& place) CURTAIL_REQUIRES(place.mu);
  absl::Status NoneUp(uint32_t poller, TimePoint now);
  // True if `*next` has passed; then it is set to `now` and `period`, for one thread.
  static bool Due(std::atomic<int64_t>* next, TimePoint now, Nanos period);
  // Ends an interval of outlier detection.
  void Sweep(TimePoint now);
  // The present servers. REQUIRES: they are known.
  Backends AllBackends();
  // Hears anew, on `poller`, of the health of servers that do not serve. True if there are any.
  bool LookAtHealth(const std::shared_ptr<Poller>& poller, TimePoint now);
  // Does what outlier detection and health checks have to do when a call is made.
  void Observe(const std::shared_ptr<Poller>& poller, TimePoint now);
  std::shared_ptr<const ServerList> Current();
  std::shared_ptr<const ServerList> MakeList(const std::vector<Address>& addresses, const ServerList* before);

  // Immutable after construction.
  const std::shared_ptr<const ConnectSettings> settings_;
  const std::shared_ptr<Resolver> resolver_;
  PartialResolver* const partial_;  // the same, if it is one
  const BalancerOptions balancer_;
  const bool observes_;  // outlier detection, or health checks
  NameLookups* const lookups_;

  // Thread-safe by itself.
  PollerTable<Place> places_;

  // Atomic. version_ counts lists; written under mu_ (release), read per call (acquire). asked_: a lookup is due.
  std::atomic<uint64_t> version_{0};
  std::atomic<bool> asked_{false};
  std::atomic<bool> closed_{false};
  // Atomic, relaxed: times in ns; the thread that moves one does what was due.
  std::atomic<int64_t> next_sweep_{0};
  std::atomic<int64_t> next_health_look_{0};

  Mutex sweep_mu_;
  TimePoint swept_at_ CURTAIL_GUARDED_BY(sweep_mu_);

  Mutex mu_;
  std::shared_ptr<const ServerList> list_ CURTAIL_GUARDED_BY(mu_);
  absl::Status wrong_ CURTAIL_GUARDED_BY(mu_);  // why there is no list
  Backoff backoff_ CURTAIL_GUARDED_BY(mu_);     // of lookups that failed, all or in part
  TimePoint next_lookup_ CURTAIL_GUARDED_BY(mu_);
};

}  // namespace curtail::internal
