// SPDX-License-Identifier: Apache-2.0
//
// http_connection.h - a socket, perhaps TLS, and an HttpCodec over it.
//
// Thread-compatible: its client's thread owns it. The poller holds it until it is closed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/exec/poller.h"
#include "curtail/rpc/transport/socket.h"
#include "curtail/rpc/transport/tls_stream.h"
#include "curtail/wire/http/http_client_codec.h"

namespace curtail::internal {

class HttpConnection final : public PollHandler, public std::enable_shared_from_this<HttpConnection> {
 public:
  // The Owner hears what happens. It may start and cancel requests meanwhile.
  class Owner {
   public:
    // The exchange is over, with its `error` set where the connection was the reason.
    virtual void OnEnded(HttpConnection& connection, HttpExchange* exchange) = 0;
    // The bytes of replies that are not whole have become more, or fewer. False: all connections hold too many.
    virtual bool OnHeld(ptrdiff_t change) = 0;
    // The connection is gone, after the ends of its exchanges. `stood`: it was ready for requests once.
    virtual void OnClosed(HttpConnection& connection, const absl::Status& why, bool stood) = 0;

   protected:
    ~Owner() = default;
  };

  struct Transport {
    UniqueFd fd;
    bool connected = false;
    std::unique_ptr<TlsStream> tls;  // null: plain text
  };

  // Until `give_up` the connection must stand.
  HttpConnection(Transport transport, std::unique_ptr<HttpCodec> codec, std::shared_ptr<Poller> poller,
                 TimePoint give_up, Owner* owner);
  ~HttpConnection() override;

  absl::Status Register() { return poller_->Add(fd_.get(), shared_from_this()); }

  // Before a request: finds out if a connection that was idle for some time is still there.
  void LookIfIdle(TimePoint now);
  bool CanStart() const { return !closed_ && codec_->CanStart(); }
  // Begins an exchange; Flush() sends it. REQUIRES: CanStart().
  void Start(HttpExchange* exchange) { codec_->Start(exchange); }
  // Forgets the exchange; may close the connection.
  void Cancel(HttpExchange* exchange);
  // Sends what is ready, as far as the socket takes it.
  void Flush();
  // Closes the connection if it does not stand and its time is over.
  void GiveUpIfLate(TimePoint now);
  // Closes without a word to the owner.
  void Drop();

  bool closed() const { return closed_; }
  // When to call GiveUpIfLate(); infinite once the connection stands.
  Deadline give_up() const { return standing() || closed_ ? Deadline::Infinite() : Deadline::At(give_up_); }

  void OnEvents(uint32_t events, TaskList* ready) override;
  void OnException() override {
    if (!closed_) Close(absl::InternalError("an exception on this side"));
  }

  // For the owner: the exchanges wait for a Flush(); which of the owner's slots this is.
  bool dirty = false;
  size_t target = 0;
  size_t slot = 0;

 private:
  bool standing() const { return connected_ && (tls_ == nullptr || tls_->standing()); }
  bool FinishConnect();
  void ReadAll(bool hangup);
  // False: the connection is closed.
  bool Receive(std::string_view bytes);
  bool ReceiveSealed(std::string_view bytes);
  // False: there is nothing to send.
  bool FillOutput();
  // The server sends no more.
  void Ended();
  // Tells the owner what the connection holds. False: that is too much.
  bool Account();
  void Tell(const HttpCodec::Ended& ended);
  void Close(const absl::Status& why);

  // Immutable after construction.
  const std::shared_ptr<Poller> poller_;
  const std::unique_ptr<TlsStream> tls_;
  const std::unique_ptr<HttpCodec> codec_;
  const TimePoint give_up_;

  Owner* owner_;  // null once dropped
  UniqueFd fd_;
  bool connected_;
  bool stood_ = false;
  bool heard_ = false;  // the server has said something
  bool closed_ = false;
  TimePoint last_used_;
  bool blocked_;       // the socket takes no output for now
  size_t held_ = 0;    // as the owner knows it
  std::string plain_;  // with TLS: what it has not taken yet
  std::string out_;
  size_t sent_ = 0;  // of out_
};

}  // namespace curtail::internal
