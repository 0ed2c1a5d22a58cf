// SPDX-License-Identifier: Apache-2.0
//
// A client of any kind on one end of a pair of sockets, an HttpConnection on the other. The input says what the client
// sends, when it reads, half-closes or leaves, and how requests are answered: at once, late, in parts, never. Properties:
// what the connection says that it holds is true and bounded, each answer hears of the end of its reader, and the
// connection ends with its client.
#include <sys/socket.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/base/boundary.h"
#include "curtail/gateway/internal/http_connection.h"
#include "curtail/wire/fuzz/http_pieces.h"

namespace curtail::gateway::internal {
namespace {

using curtail::internal::UniqueFd;
using wire::fuzz::Input;
using wire::fuzz::Pieces;
using wire::fuzz::Require;

constexpr HttpLimits kLimits{
    .max_head_bytes = 1024, .max_body_bytes = 4096, .max_streams = 4, .max_partial_bytes = 8192};
constexpr ptrdiff_t kMostHeld = 1 << 20;

class Fuzz final : private HttpConnection::Owner {
 public:
  explicit Fuzz(Input input) : input_(input), pieces_(input_, input_.Byte() % 2 == 1) {
    int ends[2];
    Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    client_.Reset(ends[0]);
    connection_ = std::make_shared<HttpConnection>(UniqueFd(ends[1]), kLimits, nullptr, poller_,
                                                   static_cast<HttpConnection::Owner*>(this));
    Require(connection_->Register().ok());
  }

  void Run() {
    if (pieces_.http2()) Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    while (!input_.empty() && !closed_) {
      Act(input_.Byte());
      Turn();
    }
    client_.Reset();
    for (int i = 0; i < 100 && !closed_; ++i) Turn();
    Require(closed_ && held_ == 0 && makers_.empty());
    Require(ContainedExceptions() == 0);
  }

 private:
  // An answer that comes later.
  struct Maker final : Answerer {
    void OnRoom() override { ++rooms; }
    void OnGivenUp() override { fuzz->makers_.erase(stream); }
    Fuzz* fuzz = nullptr;
    int32_t stream = 0;
    bool begun = false;
    int rooms = 0;
  };

  void Act(uint8_t choice) {
    switch (choice % 16) {
      case 0:
        return Read();
      case 1:
        shutdown(client_.get(), SHUT_WR);
        return;
      case 2:
        return connection_->LastCall();
      case 3:
        if (choice >= 192) connection_->Drain();
        return;
      case 4:
        connection_->CutStalled(Now(), choice % 32 == 4 ? Nanos::zero() : std::chrono::hours(1));
        return;
      case 5:
        may_read_ = !may_read_;
        return;
      case 6:
        connection_->RefuseUnfinished();
        return;
      case 7:
      case 8:
        return GoOn(choice);
      default:
        return Send(pieces_.Next());
    }
  }
  void Send(std::string_view bytes) {
    if (send(client_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) Read();
  }
  void Read() {
    std::array<char, 8192> buffer;
    while (recv(client_.get(), buffer.data(), buffer.size(), 0) > 0) {
    }
  }
  void Turn() {
    const std::shared_ptr<HttpConnection> again = std::move(again_);
    if (again != nullptr) again->Flush();
    if (const std::shared_ptr<HttpConnection> late = std::move(long_)) late->LongTurn();
    poller_->Wait(Deadline::At(TimePoint()), nullptr, &events_);
    for (const Poller::Ready& event : events_) event.Handle(nullptr);
    events_.clear();
    Require(held_ == static_cast<ptrdiff_t>(connection_->held()) && held_ < kMostHeld);
  }
  // Of the first answer that is to come, the next part, the end, or a break.
  void GoOn(uint8_t choice) {
    if (makers_.empty()) return;
    Maker& maker = *makers_.begin()->second;
    const int32_t stream = maker.stream;
    if (!std::exchange(maker.begun, true)) {
      connection_->Reply(stream, {.status = 200, .headers = {}, .body = "begin", .more = true});
    } else if (choice < 128) {
      if (connection_->unsent(stream) < 10'000) connection_->AddBody(stream, "part", /*last=*/false);
    } else {
      connection_->Detach(stream);
      makers_.erase(stream);
      if (choice < 192) connection_->Abort(stream);
      else connection_->AddBody(stream, "end", /*last=*/true);
    }
    if (!closed_) connection_->Flush();
  }

  void OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) override {
    Require(!closed_ && !request.verb.empty() && request.body.size() <= kLimits.max_body_bytes);
    const uint8_t choice = input_.Byte();
    if (choice % 2 == 0) {
      connection->Reply(request.stream,
                        {.status = 404, .headers = {{"x", "y"}}, .body = std::string(choice * 40u, 'b')});
      again_ = connection;
      return;
    }
    auto maker = std::make_unique<Maker>();
    maker->fuzz = this;
    maker->stream = request.stream;
    connection->Attach(request.stream, maker.get());
    Require(makers_.emplace(request.stream, std::move(maker)).second);
  }
  void OnClosed(HttpConnection&) override { Require(!std::exchange(closed_, true)); }
  void OnTurnOver(const std::shared_ptr<HttpConnection>& connection) override { again_ = connection; }
  void OnLongRequest(const std::shared_ptr<HttpConnection>& connection) override { long_ = connection; }
  void OnHeld(ptrdiff_t change) override {
    held_ += change;
    Require(held_ >= 0);
  }
  void OnRefused(uint64_t) override {}
  Nanos OnTurn() override { return std::chrono::microseconds(200); }
  bool MayShakeHands() override { return true; }
  bool MayRead() const override { return may_read_; }

  Input input_;
  Pieces pieces_;
  const std::shared_ptr<Poller> poller_ = std::make_shared<Poller>();
  std::vector<Poller::Ready> events_;
  UniqueFd client_;
  std::shared_ptr<HttpConnection> connection_, again_, long_;
  std::map<int32_t, std::unique_ptr<Maker>> makers_;
  ptrdiff_t held_ = 0;
  bool closed_ = false;
  bool may_read_ = true;
};

}  // namespace
}  // namespace curtail::gateway::internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  curtail::gateway::internal::Fuzz(curtail::wire::fuzz::Input(data, size)).Run();
  return 0;
}
