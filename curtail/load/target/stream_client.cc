// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Streams without threads: one thread owns all, drives lane 0 and so is the holder of each connection's strand
// whenever something happens. What is to be sent lies in the stream until the connection's turn; the operation that
// asks for the turn lies in the stream, too, so a stream is used again only when none of its operations is under way.
//
// A stream of both ways answers its messages in order. So the requests on it queue, and a reply belongs to the oldest.
// One that is given up at its deadline keeps its place: its reply may still come, and is not taken for the next one's.
#include "curtail/load/target/stream_client.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/call/lane.h"
#include "curtail/rpc/client/channel_impl.h"

namespace curtail {

std::string Describe(const StreamOptions& options) {
  switch (options.kind) {
    case StreamOptions::Kind::kBoth:
      return absl::StrFormat("a request is a message and its answer, on %d stream%s", options.count,
                             options.count == 1 ? "" : "s in turn");
    case StreamOptions::Kind::kRequests:
      return absl::StrFormat("a request is a stream of %d message%s and its reply", options.count,
                             options.count == 1 ? "" : "s");
    case StreamOptions::Kind::kReplies:
      return "a request is a message and the stream of its replies";
  }
  return "";
}

namespace internal {

using Kind = StreamOptions::Kind;

class StreamClient::Stream final : public ClientCall, public ClientStreamEvents, public Timer {
 public:
  // Makes it ready for a call, whose first operation is to be posted next.
  void Begin(StreamClient& client, size_t target, std::shared_ptr<ClientConnection> to, Stream** slot) {
    Reset();
    stream = this;
    owner_ = &client;
    target_ = target;
    connection = std::move(to);
    slot_ = slot;
    open_ = true;
    turn_posted_ = cancel_posted_ = ended_ = answered_ = false;
    why_ = absl::OkStatus();
    waiting_.clear();
    given_up_ = left_ = 0;
    out_.clear();
  }

  // A request on a stream of both ways.
  void Ask(std::string_view bytes, Deadline deadline, Completion* done) {
    out_.emplace_back(bytes);
    waiting_.push_back({done, deadline.when()});
    Arm();
    PostTurn();
  }
  // The only request: `count` messages.
  void Run(std::string_view bytes, int count, Deadline deadline, Completion* done) {
    message.assign(bytes);
    left_ = count;
    waiting_.push_back({done, deadline.when()});
    Arm();
    PostTurn();
  }

  // The oldest request is late.
  void Expire() {
    if (owner_->options_.kind != Kind::kBoth)
      return CancelFor(absl::DeadlineExceededError("deadline exceeded"));
    Completion* const done = std::exchange(waiting_[given_up_].done, nullptr);
    const size_t sent = waiting_.size() - out_.size();
    if (given_up_ < sent) {
      ++given_up_;  // it keeps its place, as its answer may come
    } else {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(given_up_));
      out_.pop_front();
    }
    owner_->End(done, absl::DeadlineExceededError("no answer to the message in time"));
    Arm();
  }
  void CancelFor(absl::Status why) {
    if (!open_ || std::exchange(cancel_posted_, true)) return;
    why_ = std::move(why);
    connection->Post(&cancel);
    owner_->Touch(connection);
  }

  // No connection refers to it.
  bool idle() const { return !open_ && !turn_posted_ && !cancel_posted_; }

  std::shared_ptr<ClientConnection> connection;

 private:
  struct Waiting {
    Completion* done;  // null: given up
    TimePoint due;
  };

  bool both() const { return owner_->options_.kind == Kind::kBoth; }

  void Arm() {
    owner_->timers_.Remove(*this);
    if (given_up_ < waiting_.size()) owner_->timers_.Insert(*this, waiting_[given_up_].due);
  }
  void PostTurn() {
    if (std::exchange(turn_posted_, true)) return;
    connection->Post(&turn_);
    owner_->Touch(connection);
  }

  // ClientStreamEvents.
  void OnStanding() override {}
  void OnHead() override {}
  void OnTurn(wire::Session& session, wire::StreamId id, bool posted) override {
    if (posted) turn_posted_ = false;
    if (!open_) return;
    const auto room = [&] { return session.queued_bytes(id) <= wire::kWritableBytes; };
    for (; !out_.empty() && room(); out_.pop_front()) session.SendMessage(id, std::move(out_.front()));
    for (; left_ > 0 && room(); --left_) session.SendMessage(id, std::string(message));
    if (!both() && left_ == 0 && !std::exchange(ended_, true)) session.EndRequest(id);
  }
  void OnMessage(std::string&& bytes, wire::Session& session, wire::StreamId id) override {
    owner_->answered_[target_] = true;
    if (!both()) {
      reply.swap(bytes);
      answered_ = true;
      return;
    }
    if (waiting_.empty()) {
      why_ = absl::InternalError("a message that answers none: the method does not answer each with one");
      return session.Cancel(id);
    }
    Completion* const done = waiting_.front().done;
    waiting_.pop_front();
    if (given_up_ > 0) --given_up_;
    Arm();
    if (done != nullptr) owner_->End(done, absl::OkStatus(), std::move(bytes));
  }

  // ClientCall.
  void Finished() override {
    open_ = false;
    owner_->timers_.Remove(*this);
    if (slot_ != nullptr) *slot_ = nullptr;
    absl::Status end = !why_.ok() ? why_ : status;
    if (both() && end.ok()) end = absl::UnavailableError("the server ended the stream");
    if (end.ok() && !answered_ && owner_->options_.kind == Kind::kRequests)
      end = absl::UnimplementedError("no message in answer to the stream");
    for (const Waiting& waiting : std::exchange(waiting_, {})) {
      if (waiting.done != nullptr)
        owner_->End(waiting.done, end, end.ok() ? std::move(reply) : std::string());
    }
    owner_->over_.push_back(this);
  }
  void CancelHandled() override { cancel_posted_ = false; }

  StreamClient* owner_ = nullptr;
  size_t target_ = 0;
  Stream** slot_ = nullptr;  // kBoth: refers to this while it is open
  ClientOp turn_{ClientOp::Kind::kTurn, this};
  bool open_ = false;
  bool turn_posted_ = false;
  bool cancel_posted_ = false;
  bool ended_ = false;     // the requests
  bool answered_ = false;  // a message has come
  absl::Status why_;       // of an end that is ours
  std::deque<Waiting> waiting_;
  size_t given_up_ = 0;          // the oldest of these
  std::deque<std::string> out_;  // kBoth: to be sent
  int left_ = 0;                 // the others: how often `message` is still to be sent
};

StreamClient::StreamClient(const TargetOptions& options)
    : GrpcClient(options), options_(*options.stream), encoding_(options.channel.encoding) {
  answered_.resize(options.targets.size());
  if (options_.kind != Kind::kBoth) return;
  slots_.resize(options.targets.size());
  for (Slots& slots : slots_) slots.streams.resize(static_cast<size_t>(std::max(1, options_.count)));
}

StreamClient::~StreamClient() {
  dropping_ = true;
  for (Stream& stream : pool_) stream.CancelFor(absl::CancelledError("the run is over"));
  KickTouched();
}

void StreamClient::Start(size_t target, std::string_view method, Deadline deadline, const Metadata& metadata,
                         std::string_view message, LoadCompletion* done) {
  absl::Status status;
  if (options_.kind == Kind::kBoth) {
    Slots& slots = slots_[target];
    Stream*& stream = slots.streams[slots.next++ % slots.streams.size()];
    if (stream == nullptr) {
      stream = Open(target, method, metadata, Deadline::Infinite(), &stream, &status);
    }
    if (stream != nullptr) return stream->Ask(message, deadline, done);
  } else if (Stream* const stream = Open(target, method, metadata, deadline, nullptr, &status);
             stream != nullptr) {
    return stream->Run(message, options_.kind == Kind::kReplies ? 1 : options_.count, deadline, done);
  }
  failed_.push_back({done, std::move(status)});
}

StreamClient::Stream* StreamClient::Open(size_t target, std::string_view method, const Metadata& metadata,
                                         Deadline deadline, Stream** slot, absl::Status* status) {
  const TimePoint now = Now();
  absl::StatusOr<std::shared_ptr<ClientConnection>> connection =
      channel(target).impl().Acquire(client().lane(0).poller(), now, metadata);
  if (!connection.ok()) {
    *status = connection.status();
    return nullptr;
  }
  Stream* const stream = Take();
  stream->Begin(*this, target, *std::move(connection), slot);
  stream->head.path.assign(method);
  stream->head.metadata = metadata;
  stream->head.encoding = encoding_;
  stream->SetTimeout(deadline, now);
  stream->connection->Begin(*stream);
  Touch(stream->connection);
  return stream;
}

StreamClient::Stream* StreamClient::Take() {
  if (free_.empty()) return &pool_.emplace_back();
  Stream* const stream = free_.back();
  free_.pop_back();
  return stream;
}

void StreamClient::Touch(const std::shared_ptr<ClientConnection>& connection) {
  if (std::exchange(connection->dirty, true)) return;
  touched_.push_back(connection);
  if (!std::exchange(connection->watched, true)) connecting_.push_back(connection);
}

void StreamClient::KickTouched() {
  for (const auto& connection : std::exchange(touched_, {})) {
    connection->dirty = false;
    connection->Kick(Connection::kPosted, nullptr);
  }
}

// Gives up attempts to connect whose time is over; returns when the next is.
Deadline StreamClient::GiveUpConnecting() {
  Deadline next = Deadline::Infinite();
  std::vector<std::shared_ptr<ClientConnection>> late;
  std::erase_if(connecting_, [&](const std::shared_ptr<ClientConnection>& connection) {
    const Deadline deadline = connection->connect_deadline();
    if (deadline.infinite() || !connection->usable()) return true;
    if (deadline.Expired()) {
      late.push_back(connection);
      return true;
    }
    next = std::min(next, deadline);
    return false;
  });
  for (const auto& connection : late) connection->Kick(Connection::kGiveUp, nullptr);
  return next;
}

size_t StreamClient::Poll(Deadline deadline) {
  ended_ = 0;
  for (Failure& failure : std::exchange(failed_, {})) End(failure.done, std::move(failure.status));
  KickTouched();
  if (!connecting_.empty()) deadline = std::min(deadline, GiveUpConnecting());
  if (!timers_.empty()) deadline = std::min(deadline, Deadline::At(timers_.first().when()));
  if (ended_ > 0 || !touched_.empty() || !failed_.empty()) deadline = Deadline::At(TimePoint());
  client().Poll(deadline);
  ExpireTimers();
  Reap();
  return ended_;
}

void StreamClient::ExpireTimers() {
  if (timers_.empty()) return;
  const TimePoint now = Now();
  while (!timers_.empty() && timers_.first().when() <= now) {
    auto& stream = static_cast<Stream&>(timers_.first());
    timers_.Remove(stream);
    stream.Expire();
  }
}

void StreamClient::Reap() {
  std::erase_if(over_, [this](Stream* stream) {
    if (!stream->idle()) return false;
    stream->connection.reset();
    free_.push_back(stream);
    return true;
  });
}

void StreamClient::End(Completion* done, absl::Status status, std::string reply) {
  ++ended_;
  if (!dropping_) done->Done(std::move(status), std::move(reply));
}

}  // namespace internal
}  // namespace curtail
