// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/http_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "curtail/exec/address.h"

namespace curtail::gateway::internal {

using curtail::internal::TlsStream;

namespace {

// Of these a connection reads a few in its turn, which ends behind the request that it then has in hand.
constexpr size_t kReadChunk = 16u << 10;
constexpr int kReadBatch = 8;
// The same of a long request: a hundred of them do not hold up a short one.
constexpr int kLongReadBatch = 2;
// For so many looks a request keeps a connection from being silent.
constexpr int kLooks = 3;
constexpr size_t kWriteChunk = 256u << 10;
// Of an idle connection.
constexpr size_t kKeptBuffer = 16u << 10;

void GiveBack(std::string& buffer) {
  if (buffer.empty() && buffer.capacity() > kKeptBuffer) buffer.shrink_to_fit();
}

std::string HostOfPeer(int fd) {
  Address peer;
  peer.size = sizeof(peer.storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0 || peer.port() == 0)
    return {};
  const std::string text = peer.ToString();
  return text.substr(0, text.rfind(':'));
}

size_t BytesOf(const HttpRequest& request) {
  return request.target.size() + request.headers.bytes() + request.body.size();
}

}  // namespace

HttpConnection::HttpConnection(curtail::internal::UniqueFd fd, const HttpLimits& limits,
                               std::unique_ptr<TlsStream> tls, std::shared_ptr<Poller> poller, Owner* owner)
    : poller_(std::move(poller)),
      limits_(limits),
      owner_(owner),
      codec_(MakeAnyHttpCodec(limits)),
      tls_(std::move(tls)),
      fd_(std::move(fd)),
      client_(HostOfPeer(fd_.get())),
      since_(Now()) {}

HttpConnection::~HttpConnection() {
  if (fd_) poller_->Remove(fd_.get());
}

void HttpConnection::OnEvents(uint32_t events, TaskList*) {
  const std::shared_ptr<HttpConnection> self = shared_from_this();
  if (closed_) return;
  if ((events & EPOLLOUT) != 0) blocked_ = false;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return Close();
  if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) unread_ = true;
  if ((events & EPOLLRDHUP) != 0) hung_up_ = true;
  if (!dirty) Flush();  // else its turn comes
}

void HttpConnection::Flush() {
  const std::shared_ptr<HttpConnection> self = shared_from_this();
  dirty = false;
  if (closed_) return;
  if (unread_ && handshaking() && !owner_->MayShakeHands()) return owner_->OnTurnOver(shared_from_this());
  turn_ends_ = Now() + owner_->OnTurn();
  handed_ = 0;
  SendAll();
  if (!closed_ && !Receive({})) return;  // of what came behind a request that is answered now
  if (!closed_ && unread_) ReadAll();
  if (!closed_) SendAll();
  if (closed_) return;
  // A client that sends no more while it waits for an answer has left: only writing could tell otherwise.
  if ((hung_up_ || ended_) && !InTheMaking().empty()) return Close();
  if (leaving() == 0) out_.clear();
  GiveBack(out_);
  GiveBack(plain_);
  Account();
  Note();
  TellAnswers();
  if (owed() == 0 && (codec_->Finished() || (ended_ && codec_->in_flight() == 0))) Close();
}

void HttpConnection::LongTurn() {
  awaits_long_turn_ = false;
  may_hand_long_ = true;
  Flush();
  may_hand_long_ = false;
}

void HttpConnection::ReadAll() {
  std::array<char, kReadChunk> buffer;
  for (int i = 0; i < (held_ > kLittle ? kLongReadBatch : kReadBatch); ++i) {
    if (ended_ || !codec_->WantsInput() || blocked_ || !requests_.empty()) return;
    if (TurnOver()) break;
    const bool short_of_room = !owner_->MayRead();
    const bool full = short_of_room && held_ >= kLittle;
    if ((full && owed() == 0) || !codec_->RefuseBodies(full)) return;
    const size_t most = short_of_room && !full ? kLittle - held_ : buffer.size();
    const ssize_t n = recv(fd_.get(), buffer.data(), most, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      unread_ = false;
      return;
    }
    if (n < 0) return Close();
    if (n == 0) {
      ended_ = true;
      return;
    }
    if (!Take({buffer.data(), static_cast<size_t>(n)})) return;
    SendAll();
    if (closed_) return;
  }
  owner_->OnTurnOver(shared_from_this());
}

bool HttpConnection::Take(std::string_view bytes) {
  return tls_ == nullptr ? Receive(bytes) : Decrypt(bytes);
}

bool HttpConnection::Decrypt(std::string_view bytes) {
  std::array<char, kReadChunk> buffer;
  tls_->Feed(bytes);
  while (const size_t n = tls_->Read(buffer.data(), buffer.size())) {
    if (!picked_) PickVersion();
    if (!Receive({buffer.data(), n})) return false;
  }
  if (tls_->standing() && !picked_) PickVersion();
  if (tls_->status().ok()) return true;
  SendAll();  // perhaps an alert
  Close();
  return false;
}

void HttpConnection::PickVersion() {
  picked_ = true;
  codec_ = tls_->protocol() == TlsStream::kHttp2 ? MakeHttp2Codec(limits_) : MakeHttp1Codec(limits_);
  if (last_call_) codec_->LastCall();
  if (draining_) codec_->Drain();
}

bool HttpConnection::Receive(std::string_view bytes) {
  std::vector<HttpRequest> taken;
  // Again after each answer: the next request may have come with the last one.
  do {
    taken.clear();
    const absl::Status status = codec_->Receive(std::exchange(bytes, {}), &taken);
    for (HttpRequest& request : taken) {
      took_request_ = true;
      looks_ = kLooks;
      requests_bytes_ += BytesOf(request);
      requests_.push_back(std::move(request));
    }
    TakeResets();  // of requests that came with these bytes, too
    Account();
    if (!status.ok()) {
      SendAll();  // perhaps a goodbye
      Close();
    } else {
      HandOver();
    }
  } while (!closed_ && !taken.empty() && requests_.empty());
  return !closed_;
}

void HttpConnection::HandOver() {
  while (!closed_ && !requests_.empty()) {
    if (TurnOver()) return owner_->OnTurnOver(shared_from_this());
    const bool is_long = BytesOf(requests_.front()) > kLittle;
    if (is_long && !std::exchange(may_hand_long_, false)) {
      if (!std::exchange(awaits_long_turn_, true)) owner_->OnLongRequest(shared_from_this());
      return;
    }
    HttpRequest request = std::move(requests_.front());
    requests_.pop_front();
    requests_bytes_ -= BytesOf(request);
    ++handed_;
    Account();
    owner_->OnRequest(shared_from_this(), std::move(request));
  }
}

void HttpConnection::Account() {
  const size_t held = closed_ ? 0 : codec_->held_bytes() + requests_bytes_ + leaving();
  owner_->OnHeld(static_cast<ptrdiff_t>(held) - static_cast<ptrdiff_t>(std::exchange(held_, held)));
  if (const uint64_t refused = codec_->refused(); refused > refused_) {
    owner_->OnRefused(refused - std::exchange(refused_, refused));
  }
}

void HttpConnection::SendAll() {
  while (!closed_ && !blocked_) {
    if (sent_ == out_.size() && !Refill()) return;
    const ssize_t n = send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n >= 0) {
      sent_ += static_cast<size_t>(n);
      taken_ += static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      blocked_ = true;
    } else if (errno != EINTR) {
      Close();
    }
  }
}

bool HttpConnection::Refill() {
  out_.clear();
  sent_ = 0;
  if (tls_ == nullptr) {
    codec_->Pull(&out_, kWriteChunk);
    return !out_.empty();
  }
  if (plain_.empty() && tls_->standing()) codec_->Pull(&plain_, kWriteChunk);
  if (tls_->Write(plain_) > 0) plain_.clear();
  tls_->TakeOutput(&out_);
  return !out_.empty();
}

void HttpConnection::Note() {
  if (handshaking()) return;  // it has the time since the connection's beginning
  const bool in_request = codec_->in_request();
  // A request in progress keeps the time of its beginning: its clock is not moved by single bytes.
  if (in_request && in_request_ && !took_request_) return;
  in_request_ = in_request;
  took_request_ = false;
  since_ = Now();
}

void HttpConnection::Reply(int32_t stream, HttpReply reply) {
  if (closed_) return;
  AnswerOf(stream).added += reply.body.size();
  codec_->Reply(stream, std::move(reply));
  Account();
}

void HttpConnection::AddBody(int32_t stream, std::string_view bytes, bool last) {
  if (closed_) return;
  AnswerOf(stream).added += bytes.size();
  codec_->AddBody(stream, bytes, last);
  Account();
}

void HttpConnection::Abort(int32_t stream) {
  if (!closed_ && !codec_->Abort(stream)) Close();
}

HttpConnection::Answer& HttpConnection::AnswerOf(int32_t stream) {
  const auto at = std::find_if(answers_.begin(), answers_.end(),
                               [stream](const Answer& answer) { return answer.stream == stream; });
  return at != answers_.end() ? *at : answers_.emplace_back(stream);
}

std::vector<int32_t> HttpConnection::InTheMaking() const {
  std::vector<int32_t> streams;
  for (const Answer& answer : answers_) {
    if (answer.maker != nullptr) streams.push_back(answer.stream);
  }
  return streams;
}

void HttpConnection::GiveUp(int32_t stream) {
  const auto is_it = [stream](const auto& it) { return it.stream == stream; };
  if (const auto at = std::find_if(requests_.begin(), requests_.end(), is_it); at != requests_.end()) {
    requests_bytes_ -= BytesOf(*at);
    requests_.erase(at);
  }
  const auto at = std::find_if(answers_.begin(), answers_.end(), is_it);
  Answerer* const maker = at == answers_.end() ? nullptr : std::exchange(at->maker, nullptr);
  if (maker != nullptr) maker->OnGivenUp();
}

void HttpConnection::TakeResets() {
  for (const int32_t stream : codec_->TakeGivenUp()) GiveUp(stream);
}

void HttpConnection::TellAnswers() {
  TakeResets();
  std::erase_if(answers_, [this](const Answer& answer) {
    return answer.maker == nullptr && codec_->unsent(answer.stream) == 0;
  });
  if (taken_ == std::exchange(told_, taken_)) return;
  // OnRoom() may close the connection, or detach.
  for (const int32_t stream : InTheMaking()) {
    if (Answerer* const maker = AnswerOf(stream).maker) maker->OnRoom();
  }
}

bool HttpConnection::TakeActive() {
  const bool asked = looks_ > 0;
  if (asked) --looks_;
  return asked || codec_->in_flight() > 0 || !requests_.empty() || owed() > 0;
}

size_t HttpConnection::CutStalled(TimePoint now, Nanos limit) {
  std::vector<int32_t> stalled;
  for (Answer& answer : answers_) {
    const size_t left = codec_->unsent(answer.stream) == 0 ? 0 : unsent(answer.stream);
    const uint64_t taken = answer.added - std::min<uint64_t>(left, answer.added);
    if (answer.pace.Look(left, taken, now) <= limit) continue;
    answer.pace = {};  // its reset may have to wait for the socket
    stalled.push_back(answer.stream);
  }
  for (const int32_t stream : stalled) {
    Abort(stream);
    GiveUp(stream);
  }
  if (!stalled.empty()) Flush();
  size_t rest = owed();  // by the socket
  for (const Answer& answer : answers_) rest -= codec_->unsent(answer.stream);
  if (closed_ || pace_.Look(rest, taken_, now) <= limit) return stalled.size();
  Close();
  return stalled.size() + 1;
}

bool HttpConnection::RefuseUnfinished() {
  const auto unfinished = [this] { return held_ > owed() + requests_bytes_; };
  if (unfinished() && codec_->RefuseBodies(true)) Flush();
  return closed_ || !unfinished();
}

void HttpConnection::LastCall() {
  if (closed_) return;
  last_call_ = true;
  codec_->LastCall();
  Flush();
}

void HttpConnection::Drain() {
  if (closed_) return;
  draining_ = true;
  codec_->Drain();
  Flush();
}

void HttpConnection::Close() {
  if (closed_) return;
  const std::shared_ptr<HttpConnection> self = shared_from_this();
  closed_ = true;
  requests_.clear();
  if (codec_->in_flight() > 0 || owed() > 0) {
    const linger reset{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  } else if (tls_ != nullptr && sent_ == out_.size()) {  // a goodbye, if the socket takes it
    tls_->Shutdown();
    out_.clear();
    sent_ = 0;
    tls_->TakeOutput(&out_);
    if (!out_.empty()) send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
  }
  poller_->Remove(fd_.get());
  fd_.Reset();
  Account();
  for (const int32_t stream : InTheMaking()) GiveUp(stream);
  owner_->OnClosed(*this);
}

}  // namespace curtail::gateway::internal
