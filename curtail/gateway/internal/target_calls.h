// SPDX-License-Identifier: Apache-2.0
//
// target_calls.h - the calls that a gateway's requests have become, until they are answered.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/timer_heap.h"
#include "curtail/gateway/gateway.h"
#include "curtail/gateway/internal/aside.h"
#include "curtail/gateway/internal/stream_call.h"
#include "curtail/gateway/transcoder.h"
#include "curtail/rpc/channel.h"

namespace curtail::gateway::internal {

// A request of HTTP, and where its answer goes.
struct Incoming {
  HttpRequest request;
  Asker asker;
};

// A call whose client leaves, or gives its request up, is cancelled. A unary call is in flight until its completion has
// run, a StreamCall until all of its answer has left. Thread-compatible: the gateway's thread owns it.
class TargetCalls {
 public:
  // The gateway.
  class Owner : public StreamCall::Owner {
   public:
    // A call is made again.
    virtual void OnRetry() = 0;
    // A request found no room.
    virtual void OnRefused() = 0;

   protected:
    ~Owner() = default;
  };

  // All outlive it. `channel` belongs to the client that the thread polls.
  // `wake`, for any thread, has the thread call Collect() soon.
  TargetCalls(const GatewayOptions& options, const Transcoder& transcoder, Channel* channel, Owner* owner,
              std::function<void()> wake)
      : options_(options),
        transcoder_(transcoder),
        channel_(*channel),
        owner_(*owner),
        aside_(std::move(wake)) {}

  // Calls the method of `match`. The owner gets the answer, later.
  // Errors: those of the request; UNAVAILABLE if it finds no room, as the target takes too little.
  absl::Status Begin(Incoming& in, Transcoder::Match match, std::string_view query, Metadata metadata);

  // The other thread has a long message in hand, and takes no other.
  bool busy() const { return aside_.busy(); }
  // Goes on with the messages that it has put into their form.
  void Collect() { aside_.Collect(); }
  // A long reply waits for that thread.
  bool owes_long() const { return !long_replies_.empty(); }
  // Gives it the one that has waited longest, if there is one. REQUIRES: !busy()
  void AnswerLong();

  // Calls in flight, and those that are about to begin, or whose replies wait.
  size_t size() const {
    return calls_.size() - free_calls_.size() + streams_.size() + (aside_.busy() ? 1 : 0);
  }
  // The bytes of requests on their way to the target have become more, or fewer.
  void AddUnderWay(ptrdiff_t change) { under_way_ += static_cast<size_t>(change); }

  // When a stream is due to end; infinite without one.
  Deadline first_deadline() const;
  // Ends the streams that are due.
  void ExpireStreams();
  // Ends all streams.
  void EndStreams(const absl::Status& why);
  // Does what no event calls for, and forgets the streams that are over. Call it now and then.
  void LookAtStreams();

 private:
  struct Call final : Completion, Answerer {
    void OnMetadata(ReplyMetadata&& m) override { metadata = std::move(m); }
    void OnRetry() override { all->owner_.OnRetry(); }
    void Done(absl::Status&& status, std::string&& message) override {
      all->OnDone(this, std::move(status), std::move(message));
    }
    void OnGivenUp() override { all->OnGivenUp(this); }

    TargetCalls* all = nullptr;
    std::optional<Asker> asker;  // nobody, once the client has left
    Channel::CallId id = nullptr;
    ReplyMetadata metadata;
    std::optional<std::string> reply;  // it waits, or is in hand
    ptrdiff_t under_way = 0;           // bytes of the request, and of a reply that waits
  };

  struct Converting;
  // A request whose message the other thread makes. Errors: it finds no room.
  absl::Status BeginAside(Incoming& in, Transcoder::Match match, std::string_view query, Metadata metadata,
                          Deadline deadline);
  void Converted(Converting& request);
  void BeginConverted(Converting& request);
  absl::Status BeginWith(const Asker& asker, const CatalogMethod& method, absl::StatusOr<std::string> message,
                         Metadata metadata, Deadline deadline);
  absl::Status BeginCall(const Asker& asker, const CatalogMethod& method, const std::string& message,
                         const Metadata& metadata, Deadline deadline);
  absl::Status BeginStream(const Asker& asker, const CatalogMethod& method, RequestSource requests,
                           Metadata metadata, Deadline deadline);
  // A place for a stream of this client. Errors: RESOURCE_EXHAUSTED.
  absl::Status TakePlace(const Asker& asker);
  absl::StatusOr<std::string> MessageOf(const Incoming& in, const Transcoder::Match& match,
                                        std::string_view query) const;
  // Errors: UNAVAILABLE if a request of `bytes` finds no room.
  absl::Status Admit(size_t bytes);
  void OnDone(Call* call, absl::Status&& status, std::string&& reply);
  void Answer(Call* call, const absl::Status& status, const std::string& reply);
  void AnswerWith(Call* call, const std::function<HttpReply()>& make);
  void OnGivenUp(Call* call);

  const GatewayOptions& options_;
  const Transcoder& transcoder_;
  Channel& channel_;
  Owner& owner_;
  size_t reserved_ = 0;   // of under_way_, for the request that begins
  size_t under_way_ = 0;  // bytes of requests on their way to the target, and of replies that wait
  TimerHeap deadlines_;   // of streams_
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> free_calls_;
  std::deque<Call*> long_replies_;  // these wait
  std::vector<std::unique_ptr<StreamCall>> streams_;
  size_t next_looked_at_ = 0;  // of streams_, by TakePlace()
  TimePoint looked_;           // when it looked at all
  Aside aside_;
};

}  // namespace curtail::gateway::internal
