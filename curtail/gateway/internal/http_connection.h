// SPDX-License-Identifier: Apache-2.0
//
// http_connection.h - a client's socket and an HttpServerCodec over it, with TLS between them or not.
//
// Thread-compatible: the gateway's thread owns it. The poller holds it until it is closed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "curtail/base/boundary.h"
#include "curtail/base/clock.h"
#include "curtail/base/internal/silent_list.h"
#include "curtail/exec/poller.h"
#include "curtail/gateway/http_codec.h"
#include "curtail/gateway/internal/pace.h"
#include "curtail/rpc/transport/socket.h"
#include "curtail/rpc/transport/tls_stream.h"

namespace curtail::gateway::internal {

// An Answerer makes an answer, at once or in parts. The connection tells it what the reader does.
class Answerer {
 public:
  // Bytes of the connection have left.
  virtual void OnRoom() {}
  // The reader has left, or has reset its request. The connection no longer refers to the answerer.
  virtual void OnGivenUp() = 0;

 protected:
  ~Answerer() = default;
};

class HttpConnection final : public PollHandler, public std::enable_shared_from_this<HttpConnection> {
 public:
  // A connection that holds less is read, and gets its answers, whatever the others hold.
  static constexpr size_t kLittle = 8u << 10;

  // The Owner answers requests, at once or later.
  class Owner {
   public:
    virtual void OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) = 0;
    virtual void OnClosed(HttpConnection& connection) = 0;
    // Its turn has ended before its work: it wants a Flush() once others have had theirs.
    virtual void OnTurnOver(const std::shared_ptr<HttpConnection>& connection) = 0;
    // Its next request is long: it wants a LongTurn() once others have had theirs.
    virtual void OnLongRequest(const std::shared_ptr<HttpConnection>& connection) = 0;
    // A turn begins: how long it may last.
    virtual Nanos OnTurn() = 0;
    // False: in this round enough connections have done a part of TLS's handshake, which costs as much as many requests.
    virtual bool MayShakeHands() = 0;
    // The bytes that the connection holds have become more, or fewer.
    virtual void OnHeld(ptrdiff_t change) = 0;
    // So many requests were refused for a limit.
    virtual void OnRefused(uint64_t requests) = 0;
    // False: all connections together hold too much. Those that hold kLittle are not read for now if they owe their
    // readers nothing; if they do, they take no bodies.
    virtual bool MayRead() const = 0;

   protected:
    ~Owner() = default;
  };

  // `tls` is null for plain text. With it ALPN says which version of HTTP the client speaks.
  HttpConnection(curtail::internal::UniqueFd fd, const HttpLimits& limits,
                 std::unique_ptr<curtail::internal::TlsStream> tls, std::shared_ptr<Poller> poller,
                 Owner* owner);
  ~HttpConnection() override;

  absl::Status Register() { return poller_->Add(fd_.get(), shared_from_this()); }
  void OnEvents(uint32_t events, TaskList* ready) override;
  void OnException() override { Close(); }

  // Answers a request of this connection. Output leaves with Flush().
  void Reply(int32_t stream, HttpReply reply);
  // As those of the codec.
  void AddBody(int32_t stream, std::string_view bytes, bool last);
  void Abort(int32_t stream);
  // Until Detach() `answerer` hears of the reader of that stream. REQUIRES: not closed
  void Attach(int32_t stream, Answerer* answerer) { AnswerOf(stream).maker = answerer; }
  void Detach(int32_t stream) { AnswerOf(stream).maker = nullptr; }
  // Bytes that have to leave before all of the stream's body has.
  size_t unsent(int32_t stream) const { return codec_->unsent(stream) + leaving(); }
  // Does `work` for this connection, which is closed after an exception.
  template <class Work>
  void Within(const Work& work) {
    if (!Contain("gateway", work)) Contain("gateway", [this] { Close(); });
  }
  // A turn: sends what is ready, goes on reading, and hands requests to the owner. May close the connection.
  void Flush();
  // A turn that may begin with a request of more than kLittle, which costs a thread milliseconds.
  void LongTurn();
  void LastCall();
  void Drain();
  // If an answer has not left in full, by a reset, which no client takes for the end of the answer.
  void Close();

  bool closed() const { return closed_; }
  const HttpServerCodec& codec() const { return *codec_; }
  // When the client sent its first byte of the request in progress, or has last done anything.
  TimePoint since() const { return since_; }
  // The client's address, without its port; empty for a Unix socket.
  const std::string& client() const { return client_; }
  bool in_request() const { return in_request_ || handshaking(); }
  // Bytes that it holds, requests and answers.
  size_t held() const { return held_; }
  // Cuts short the answers of which the reader has taken next to nothing for `limit`, and closes the
  // connection if it takes nothing at all. Returns how many it ended. Call it now and then.
  size_t CutStalled(TimePoint now, Nanos limit);
  // Answers 503 to requests that are not whole, if there are any. False: it cannot, and holds them.
  bool RefuseUnfinished();

  // True unless it has been silent: nothing is in flight, and no request has come since the last few looks.
  bool TakeActive();

  // The owner's notes.
  bool dirty = false;  // it waits for a Flush()
  size_t streams = 0;  // calls of it that stream
  curtail::internal::SilentList<HttpConnection>::Place place;

 private:
  // One that is to come, or has not left in full.
  struct Answer {
    int32_t stream = 0;
    Answerer* maker = nullptr;  // more of it comes
    uint64_t added = 0;         // bytes of its body
    Pace pace;
  };
  Answer& AnswerOf(int32_t stream);
  // The streams of answers of which more comes.
  std::vector<int32_t> InTheMaking() const;
  bool handshaking() const { return tls_ != nullptr && !tls_->standing(); }
  // Bytes that have left the codec.
  size_t leaving() const { return plain_.size() + out_.size() - sent_; }
  size_t owed() const { return codec_->owed_bytes() + leaving(); }
  // True once others have waited long enough.
  bool TurnOver() { return handed_ > 0 && Now() >= turn_ends_; }
  void ReadAll();
  // Takes bytes of the socket. False: the connection is closed.
  bool Take(std::string_view bytes);
  bool Decrypt(std::string_view bytes);
  // The handshake is over.
  void PickVersion();
  // Makes what goes to the socket next. False: there is nothing.
  bool Refill();
  // False: the connection is closed.
  bool Receive(std::string_view bytes);
  // Hands over the requests that were taken, until the turn is over.
  void HandOver();
  void SendAll();
  // Notes what the client does, for the clocks.
  void Note();
  // Tells the owner what the connection holds, and has refused.
  void Account();
  // Gives up the streams that the client has reset.
  void TakeResets();
  // Tells answerers what their readers have done, and forgets answers that have left.
  void TellAnswers();
  // Drops the request of a stream, and tells its answerer that the reader has gone.
  void GiveUp(int32_t stream);

  const std::shared_ptr<Poller> poller_;
  const HttpLimits limits_;
  Owner* const owner_;
  std::unique_ptr<HttpServerCodec> codec_;
  const std::unique_ptr<curtail::internal::TlsStream> tls_;
  curtail::internal::UniqueFd fd_;
  bool closed_ = false;
  bool last_call_ = false;
  bool draining_ = false;
  bool picked_ = false;   // the version of HTTP
  bool blocked_ = false;  // the socket takes no output for now
  bool unread_ = false;   // the socket may have input that was not read
  bool ended_ = false;    // the client sends no more
  bool hung_up_ = false;  // it has said so, behind what may not have been read
  bool in_request_ = false;
  bool took_request_ = false;  // a request was taken since the last Note()
  int looks_ = 0;              // that find it active
  TimePoint turn_ends_;
  size_t handed_ = 0;                 // requests, in this turn
  bool may_hand_long_ = false;        // a long one, in this turn
  bool awaits_long_turn_ = false;     // the owner knows
  std::deque<HttpRequest> requests_;  // taken and not handed over
  size_t requests_bytes_ = 0;         // of them
  size_t held_ = 0;                   // as the owner knows it
  uint64_t refused_ = 0;              // likewise
  const std::string client_;
  TimePoint since_;
  std::string plain_;  // with TLS: of the codec, to be encrypted
  std::string out_;
  size_t sent_ = 0;     // of out_
  uint64_t taken_ = 0;  // bytes that the socket took
  uint64_t told_ = 0;   // of these, when the answers were told of room
  Pace pace_;
  std::vector<Answer> answers_;
};

}  // namespace curtail::gateway::internal
