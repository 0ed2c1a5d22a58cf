// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The members of wire::Session that a connection and a stream call, over the peer's window and ours; and those
// of classes that a stream's sources name but never meet here. Nothing here gives way to other threads but where a
// program waits for the peer, so the stand-in has no races of its own.
#include "tests/model/stream_world.h"

#include <sys/epoll.h>

#include <cstdlib>
#include <span>
#include <utility>

#include "curtail/rpc/call/parsed_size.h"
#include "curtail/rpc/call/server_fence.h"
#include "curtail/rpc/transport/peer_identity.h"
#include "curtail/rpc/transport/tls_stream.h"
#include "curtail/rpc/transport/transport_error.h"
#include "tests/model/kernel.h"
#include "tests/model/scheduler.h"

namespace curtail::wire {

class Session::Impl {
 public:
  Events* events;
};

Session::Session(Role, const SessionOptions&, Events* events) : impl_(new Impl{events}) {}
Session::~Session() = default;
absl::Status Session::Receive(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) model::Link::Of(impl_->events).Receive();
  return absl::OkStatus();
}
bool Session::Pull(std::string*, size_t) { return model::Link::Of(impl_->events).Pull(), false; }
bool Session::Gather(Output*, size_t) { return model::Link::Of(impl_->events).Pull(), false; }
void Session::Written() {}
bool Session::HasOutput() const { return true; }
std::string_view Session::Ready() const { return {}; }
bool Session::TookReady() { std::abort(); }
// No message here is long.
std::span<char> Session::Room(size_t) { return {}; }
absl::Status Session::ReceivedInRoom(size_t) { std::abort(); }
bool Session::TookLong() { return false; }
absl::Status Session::GoOn() { std::abort(); }  // none is compressed
void Session::SendMessage(StreamId, std::string&& message) {
  model::Link::Of(impl_->events).Queue(std::move(message));
}
void Session::EndRequest(StreamId) { model::Link::Of(impl_->events).QueueEnd(); }
void Session::EndCall(StreamId, const absl::Status&, const Metadata&) {
  model::Link::Of(impl_->events).QueueEnd();
}
void Session::SetReading(StreamId, bool reading) { model::Link::Of(impl_->events).SetReading(reading); }
void Session::Cancel(StreamId) { model::Link::Of(impl_->events).End(absl::CancelledError("cancelled")); }
void Session::Abort(const absl::Status& why) { model::Link::Of(impl_->events).End(why); }
size_t Session::queued_bytes() const { return model::Link::Of(impl_->events).queued_; }
size_t Session::queued_bytes(StreamId) const { return queued_bytes(); }
bool Session::Finished() const { return false; }

absl::Status CheckMetadata(const Metadata&) { return absl::OkStatus(); }

}  // namespace curtail::wire

namespace curtail::internal {

int ConnectError(int) { return 0; }
// No connection here notes arrivals.
ssize_t ReceiveStamped(int, std::span<char>, std::span<char>, TimePoint*) { std::abort(); }
std::string ExplainOpening(std::string_view, bool) { return {}; }
std::string_view ExplainEnd(const Progress&) { return {}; }

// Nothing here is parsed.
ParsedSizes ParsedSize(std::string_view, const google::protobuf::MessageLite&, const ParsedSizes&) {
  std::abort();
}
void ServerFence::Return(uint8_t, PermitEnd) {}
const PeerCertificate& PeerIdentity::certificate() const { std::abort(); }

// No connection here has TLS.
TlsStream::~TlsStream() = default;
void TlsStream::Feed(std::string_view) {}
size_t TlsStream::Read(char*, size_t) { return 0; }
size_t TlsStream::Write(std::string_view) { return 0; }
void TlsStream::Shutdown() {}
void TlsStream::TakeOutput(std::string*) {}
x509_st* TlsStream::PeerX509() const { return nullptr; }

}  // namespace curtail::internal

namespace curtail::model {

// Link ---------------------------------------------------------------------------------------------------

Link::Link(wire::Role role, int window, std::shared_ptr<Poller> poller)
    : Link(role, window, model::EventFd(), poller != nullptr,
           poller != nullptr ? poller : std::make_shared<Poller>()) {}

Link::Link(wire::Role role, int window, int socket, bool polled, std::shared_ptr<Poller> poller)
    : Connection(role, {}, internal::UniqueFd(socket), std::move(poller), /*connected=*/true, nullptr),
      socket_(socket),
      role_(role),
      polled_(polled),
      window_(window) {}

void Link::Send(size_t bytes) {
  Block("wait for the window", nullptr, [this] { return window_ > 0 || over_; });
  --window_;
  Arrive({Act::kMessage, bytes});
}

void Link::WaitUntilTaken(int messages) {
  Block("wait for messages", nullptr, [this, messages] { return taken_ >= messages; });
}

void Link::WaitForEnd() {
  Block("wait for the end", nullptr, [this] { return ended_ || over_; });
}

void Link::Arrive(Act act) {
  acts_.push_back(act);
  model::Write(socket_);
  if (!polled_) OnEvents(EPOLLIN, nullptr);
}

void Link::Receive() {
  const Act act = acts_.front();
  acts_.pop_front();
  if (over_) return;
  switch (act.kind) {
    case Act::kMessage:
      user_->Come(Numbered(sent_++, act.size), session());
      ++(reading_ ? window_ : withheld_);
      return;
    case Act::kEnd:
      if (role_ == wire::Role::kServer) return user_->PeerEnded();
      return End(absl::OkStatus());
    case Act::kTake:
      room_ += static_cast<int>(act.size);
      return;
    case Act::kReset:
      return End(absl::CancelledError("reset by the peer"));
  }
}

void Link::Queue(std::string&& message) {
  if (over_) return;
  Check(!end_queued_, "a message behind the end");
  queued_ += message.size();
  queue_.push_back(std::move(message));
}

void Link::QueueEnd() {
  if (over_) return;
  Check(!std::exchange(end_queued_, true), "an end was sent twice");
}

void Link::Pull() {
  while (!queue_.empty() && room_ > 0) {
    const std::string message = std::move(queue_.front());
    queue_.pop_front();
    --room_;
    Check(message[0] == '0' + taken_, "a message was lost, doubled or overtaken");
    ++taken_;
    const bool was_full = queued_ > wire::kWritableBytes;
    queued_ -= message.size();
    if (was_full && queued_ <= wire::kWritableBytes && !end_queued_) user_->Room(session());
  }
  if (!end_queued_ || !queue_.empty() || std::exchange(ended_, true)) return;
  if (role_ == wire::Role::kServer) End(absl::OkStatus());
}

void Link::SetReading(bool reading) {
  if (over_) return;
  Check(std::exchange(reading_, reading) != reading, "credit was stopped or given twice");
  if (reading) window_ += std::exchange(withheld_, 0);
}

void Link::End(absl::Status status) {
  if (std::exchange(over_, true)) return;
  queue_.clear();
  queued_ = 0;
  user_->Over(std::move(status));
}

// World --------------------------------------------------------------------------------------------------

World::World(wire::Role role, int window, Deadline deadline, bool holds, std::shared_ptr<Poller> poller)
    : ctx(deadline),
      held([](PollHandler& connection) { connection.OnEvents(0, nullptr); }),
      link(std::make_shared<Link>(role, window, std::move(poller))) {
  if (!holds) held.Stop();
}

}  // namespace curtail::model
