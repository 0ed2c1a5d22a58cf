// SPDX-License-Identifier: Apache-2.0
//
// pool.h - a bounded pool of connections to one store.
//
// The fibers of each thread share connections of their own, as a Stream belongs to a poller. All
// threads that run no fiber share one more set. A request that finds every connection in use waits
// for one, as its threading model waits. A connection whose request failed does not come back.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/sync.h"
#include "curtail/store/stream.h"

namespace curtail {

// A StreamPool opens connections when they are needed. Thread-safe.
class StreamPool {
  struct Part;

 public:
  // A Lease is one request's hold on a connection. Its end gives the connection back. For one
  // thread or fiber.
  class Lease {
   public:
    Lease() = default;
    ~Lease() { Return(); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    // REQUIRES: Take() gave one.
    Stream& operator*() const { return *stream_; }
    Stream* operator->() const { return stream_.get(); }
    // The connection served a request before, so the store may have closed it meanwhile.
    bool reused() const { return reused_; }
    // Takes the connection out of the pool: it is of no more use to others.
    std::unique_ptr<Stream> Remove();

   private:
    friend class StreamPool;
    void Return();

    Part* part_ = nullptr;
    std::unique_ptr<Stream> stream_;
    bool reused_ = false;
  };

  // `store` names the store in messages; `limit` bounds the connections of each set.
  StreamPool(StoreAddress address, std::string store, int limit);
  // REQUIRES: no lease is held.
  ~StreamPool();
  StreamPool(const StreamPool&) = delete;
  StreamPool& operator=(const StreamPool&) = delete;

  const StoreAddress& address() const { return address_; }

  // Takes an idle connection, opens one, or waits for one. `fresh`: opens one, and closes the idle
  // ones. Errors: DEADLINE_EXCEEDED, and as Stream::Open(). REQUIRES: `lease` holds none.
  [[nodiscard]] absl::Status Take(bool fresh, Deadline deadline, Lease* lease);
  // True if the store closed an idle connection, or spoke on it unasked.
  bool AnyIdleBroken();

 private:
  Part& PartOfCaller();

  // Immutable after construction.
  const StoreAddress address_;
  const std::string store_;
  const int limit_;

  Mutex mu_;
  std::deque<Part> parts_ CURTAIL_GUARDED_BY(mu_);  // each stays where it is
};

}  // namespace curtail
