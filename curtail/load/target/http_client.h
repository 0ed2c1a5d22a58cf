// SPDX-License-Identifier: Apache-2.0
//
// http_client.h - the LoadClient of HTTP/1.1 and HTTP/2.
//
// A request takes the next connection of its target that is free. Over HTTP/1.1 a connection carries one request at a
// time, so a request may have to wait for one; its latency counts all the same from its intended send time.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "curtail/base/timer_heap.h"
#include "curtail/load/target/http_connection.h"
#include "curtail/load/target/load_client.h"
#include "curtail/wire/http_url.h"

namespace curtail::internal {

class HttpClient final : public LoadClient, private HttpConnection::Owner {
 public:
  // REQUIRES: options.http is set.
  explicit HttpClient(const TargetOptions& options);
  ~HttpClient() override;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  absl::Status Resolve() override;
  void Start(size_t target, std::string_view method, Deadline deadline, const Metadata& metadata,
             std::string_view message, LoadCompletion* done) override;
  size_t Poll(Deadline deadline) override;
  bool Answered(size_t target) const override { return targets_[target].answered; }
  std::vector<std::string> Warnings() const override;

 private:
  // A request of the driver. The timer is its deadline.
  struct Request : HttpExchange, Timer {
    Completion* done = nullptr;
    size_t target = 0;
    HttpEndpoint drawn;  // where the metadata have a path
    int attempts = 0;
    HttpConnection* connection = nullptr;  // null while it waits for one
    bool timed_out = false;
    bool over = false;  // it stands in over_
  };

  // A place for one connection.
  struct Slot {
    std::shared_ptr<HttpConnection> connection;
    bool busy = false;    // takes no request, and is not in Target::free
    size_t failures = 0;  // in a row
    TimePoint next_attempt;
    absl::Status last_error;
  };

  struct Target {
    std::string name;  // the URL
    HttpUrl url;
    HttpEndpoint endpoint;
    std::vector<Address> addresses;
    std::vector<Slot> slots;
    std::deque<size_t> free;       // slots that may take a request, in turn
    std::deque<Request*> waiting;  // for a slot, the oldest first
    bool answered = false;
  };

  void OnEnded(HttpConnection& connection, HttpExchange* exchange) override;
  bool OnHeld(ptrdiff_t change) override;
  void OnClosed(HttpConnection& connection, const absl::Status& why, bool stood) override;

  Request* NewRequest();
  // Gives waiting requests to free slots.
  void Dispatch(size_t target);
  // A connection for the slot: the one it has, or a new one. Errors: UNAVAILABLE.
  absl::StatusOr<HttpConnection*> Acquire(size_t target, size_t slot);
  absl::StatusOr<HttpConnection*> Connect(size_t target, size_t slot, TimePoint now);
  // Counts a failed attempt: the next one takes another address, or has to wait.
  absl::Status Failed(Target& target, Slot& slot, absl::Status why);
  void Flush();
  void ExpireTimers();
  // Gives up attempts to connect whose time is over; returns when the next is.
  Deadline GiveUpConnecting();
  // The request's completion is next.
  void Over(Request* request);
  void RunCompletions();
  void Finish(Request* request);

  // Immutable after construction.
  const ChannelOptions options_;
  const bool http2_;
  const HttpLimits limits_;
  const std::shared_ptr<Poller> poller_ = std::make_shared<Poller>();

  std::vector<Target> targets_;
  std::unordered_set<std::shared_ptr<HttpConnection>> open_;
  std::vector<std::shared_ptr<HttpConnection>> connecting_;
  std::vector<std::shared_ptr<HttpConnection>> dirty_;
  std::deque<Request> requests_;
  std::vector<Request*> free_requests_;
  std::vector<Request*> over_;         // completions to be run
  std::vector<Request*> over_before_;  // those that are being run
  TimerHeap timers_;
  std::vector<Poller::Ready> events_;
  size_t held_ = 0;  // bytes of replies that are not whole
  size_t completed_ = 0;
  uint64_t started_ = 0;
  uint64_t queued_ = 0;  // that found no connection free
};

}  // namespace curtail::internal
