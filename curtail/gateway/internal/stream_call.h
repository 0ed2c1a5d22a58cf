// SPDX-License-Identifier: Apache-2.0
//
// stream_call.h - a request of HTTP whose method streams: its call to the target, and the answer in parts.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "curtail/gateway/internal/answer_form.h"
#include "curtail/gateway/internal/http_connection.h"
#include "curtail/gateway/internal/target_stream.h"
#include "curtail/gateway/transcoder.h"
#include "curtail/rpc/stream/message_queue.h"

namespace curtail::gateway::internal {

// The request that an answer belongs to.
struct Asker {
  std::weak_ptr<HttpConnection> connection;
  int32_t stream = 0;
  std::string origin;  // to be named in the answer
  AnswerForm form;

  // As HttpConnection::client(); empty if it is gone.
  std::string client() const {
    const std::shared_ptr<HttpConnection> asks = connection.lock();
    return asks == nullptr ? std::string() : asks->client();
  }
};

// The requests of a call: one message, or the lines of a body of JSON.
class RequestSource {
 public:
  explicit RequestSource(std::string message) : body_(std::move(message)), size_(body_.size()), one_(true) {}
  RequestSource(const Transcoder* transcoder, Transcoder::Match match, std::string query, std::string body)
      : transcoder_(transcoder),
        match_(std::move(match)),
        query_(std::move(query)),
        body_(std::move(body)),
        size_(body_.size()) {}

  // False: no request is left. Errors: those of Transcoder::Request(); INVALID_ARGUMENT: a line is too long.
  absl::StatusOr<bool> Next(std::string* message);
  // Bytes of all requests together.
  size_t size() const { return size_; }

 private:
  const Transcoder* transcoder_ = nullptr;
  Transcoder::Match match_;
  std::string query_;
  std::string body_;
  size_t size_;
  size_t at_ = 0;
  bool one_ = false;
};

// A StreamCall is one request. Its messages wait here in the target's form, and become parts of the
// answer as its reader takes them. Thread-compatible.
class StreamCall final : public TargetStream, private Answerer {
 public:
  // The gateway.
  class Owner {
   public:
    // The answer, or its head.
    virtual void Answer(const Asker& asker, HttpReply reply) = 0;
    // The connection has output.
    virtual void OnOutput(const std::shared_ptr<HttpConnection>& connection) = 0;
    virtual void OnHeld(ptrdiff_t change) = 0;
    // The bytes of requests on their way to the target have become more, or fewer.
    virtual void OnUnderWay(ptrdiff_t change) = 0;
    // There is room to read requests, and for streams that lag to grow.
    virtual bool MayRead() const = 0;
    virtual bool MayStream() const = 0;
    // The answer, begun with 200, has ended with `status`.
    virtual void OnStreamEnd(const absl::Status& status) = 0;
    virtual void OnCutShort() = 0;
    // A call is cancelled, as its client has left.
    virtual void OnCancelled() = 0;

   protected:
    ~Owner() = default;
  };

  StreamCall(Owner* owner, Asker asker, RequestSource requests);
  ~StreamCall();

  // Does what no event calls for. Call it now and then.
  void Look();
  // Ends the call; its reader hears `why`.
  void End(absl::Status why);
  // The call has ended, or nobody reads its answer any more.
  bool ended() const { return given_up_ || end_.has_value(); }
  // Null: it is gone.
  std::shared_ptr<HttpConnection> reader() const { return asker_.connection.lock(); }
  // True if it may be destroyed.
  bool over() const;

 private:
  bool streams() const { return asker_.form.route()->method.server_streaming; }
  size_t unsent() const;
  // Makes parts of messages while the reader takes them. An exception closes the connection.
  void Pump();
  void MakeParts();
  void SendHead(const Metadata& initial, std::string_view type);
  void AddBody(std::string_view bytes, bool last);
  void Finish();
  // Drops all, and says so by the connection's means.
  void BreakOff(absl::Status why);
  void Account();

  // TargetStream.
  bool NextRequest(std::string* message) override;
  void OnRequestsLeft() override {
    owner_->OnUnderWay(-static_cast<ptrdiff_t>(std::exchange(under_way_, 0)));
  }
  void OnReplyHead() override { head_come_ = true; }
  void OnReply(std::string&& message) override;
  void OnEnd(const absl::Status& status, ReplyMetadata&& metadata) override;
  // Answerer.
  void OnRoom() override { Pump(); }
  void OnGivenUp() override;
  // Nobody reads the answer any more.
  void GiveUp();

  Owner* const owner_;
  const Asker asker_;
  RequestSource requests_;
  curtail::internal::MessageQueue replies_;
  size_t held_ = 0;       // of replies, as the owner knows it
  size_t under_way_ = 0;  // of requests, likewise
  bool head_come_ = false;
  bool head_sent_ = false;
  bool given_up_ = false;
  bool answered_ = false;
  std::optional<absl::Status> end_;  // of the call
  ReplyMetadata metadata_;           // with it
};

}  // namespace curtail::gateway::internal
