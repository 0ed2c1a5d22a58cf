// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: one thread, as in runner.cc. Requests begin in Start(), bytes move in Poll(): first what was begun since, then
// what the poller reports, then what that set free. Completions run last, from a list, so that none runs within a
// connection's work.
#include "curtail/load/target/http_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "curtail/base/boundary.h"
#include "curtail/base/strings.h"
#include "curtail/base/version.h"

namespace curtail::internal {
namespace {

// Attempts at one request that its server refuses unseen (HTTP/2).
constexpr int kMaxAttempts = 5;
constexpr std::string_view kPathField = ":path";
// So many of the longest replies that are allowed may be on their way at a time, or more that are shorter.
constexpr size_t kLongReplies = 4;
// A share of requests that waited for a connection which the reader should know of.
constexpr double kQueuedShare = 0.001;

}  // namespace

HttpClient::HttpClient(const TargetOptions& options)
    : options_(options.channel),
      http2_(options.http->http2),
      limits_{.max_body_bytes = options.channel.max_message_bytes} {
  for (const std::string& name : options.targets) {
    Target& target = targets_.emplace_back();
    target.name = name;
    target.endpoint.verb = options.http->verb;
    target.slots.resize(static_cast<size_t>(options_.connections));
    for (size_t i = 0; i < target.slots.size(); ++i) target.free.push_back(i);
  }
}

HttpClient::~HttpClient() {
  for (const auto& connection : open_) connection->Drop();
}

absl::Status HttpClient::Resolve() {
  for (Target& target : targets_) {
    absl::StatusOr<HttpUrl> url = HttpUrl::Parse(target.name);
    if (!url.ok()) return url.status();
    target.url = *std::move(url);
    target.endpoint.scheme = target.url.secure ? "https" : "http";
    target.endpoint.authority = target.url.authority;
    target.endpoint.path = target.url.path;
    absl::StatusOr<std::vector<Address>> addresses = Address::ResolveAll(target.url.Address());
    if (!addresses.ok()) return addresses.status();
    target.addresses = *std::move(addresses);
  }
  return absl::OkStatus();
}

HttpClient::Request* HttpClient::NewRequest() {
  if (free_requests_.empty()) return &requests_.emplace_back();
  Request* request = free_requests_.back();
  free_requests_.pop_back();
  request->error = absl::OkStatus();
  request->status = 0;
  request->reason.clear();
  request->reply.clear();
  request->unprocessed = request->timed_out = request->over = false;
  request->attempts = 0;
  request->connection = nullptr;
  return request;
}

void HttpClient::Start(size_t target, std::string_view, Deadline deadline, const Metadata& metadata,
                       std::string_view message, LoadCompletion* done) {
  Request* const request = NewRequest();
  request->target = target;
  request->endpoint = &targets_[target].endpoint;
  request->headers = metadata;
  if (const std::optional<std::string_view> path = metadata.Find(kPathField)) {
    request->drawn = targets_[target].endpoint;
    request->drawn.path = *path;
    request->endpoint = &request->drawn;
    request->headers.EraseIf([](std::string_view key) { return key == kPathField; });
  }
  if (!metadata.Find("user-agent")) request->headers.AddLowerCase("user-agent", UserAgent());
  request->body.assign(message);
  request->done = done;
  ++started_;
  if (deadline.Expired()) {
    request->timed_out = true;
    Over(request);
    return;
  }
  if (!deadline.infinite()) timers_.Insert(*request, deadline.when());
  if (targets_[target].free.empty()) ++queued_;
  targets_[target].waiting.push_back(request);
  Dispatch(target);
}

void HttpClient::Dispatch(size_t number) {
  Target& target = targets_[number];
  while (!target.waiting.empty() && !target.free.empty()) {
    const size_t index = target.free.front();
    target.free.pop_front();
    Request* const request = target.waiting.front();
    target.waiting.pop_front();
    const absl::StatusOr<HttpConnection*> acquired = Acquire(number, index);
    if (!acquired.ok()) {
      target.free.push_back(index);
      request->error = acquired.status();
      Over(request);
      continue;
    }
    HttpConnection* const connection = *acquired;
    ++request->attempts;
    request->connection = connection;
    connection->Start(request);
    if (!connection->dirty) dirty_.push_back(target.slots[index].connection);
    connection->dirty = true;
    target.slots[index].busy = !connection->CanStart();
    if (!target.slots[index].busy) target.free.push_back(index);
  }
}

absl::StatusOr<HttpConnection*> HttpClient::Acquire(size_t number, size_t index) {
  Target& target = targets_[number];
  Slot& slot = target.slots[index];
  const TimePoint now = Now();
  if (const std::shared_ptr<HttpConnection> connection = slot.connection; connection != nullptr) {
    connection->LookIfIdle(now);
    if (connection->CanStart()) return connection.get();
  }
  // One that takes no more requests lives on without a slot until its last reply.
  slot.connection.reset();
  if (now < slot.next_attempt)
    return absl::UnavailableError(Join(Message(slot.last_error), " (not tried again yet)"));
  absl::StatusOr<HttpConnection*> connection = Connect(number, index, now);
  if (!connection.ok()) return Failed(target, slot, connection.status());
  return connection;
}

absl::StatusOr<HttpConnection*> HttpClient::Connect(size_t number, size_t index, TimePoint now) {
  Target& target = targets_[number];
  Slot& slot = target.slots[index];
  HttpConnection::Transport transport;
  absl::StatusOr<UniqueFd> fd =
      StartConnect(target.addresses[slot.failures % target.addresses.size()], &transport.connected);
  if (!fd.ok()) return fd.status();
  transport.fd = *std::move(fd);
  if (const ClientTls* const tls = target.url.secure ? options_.tls.get() : nullptr) {
    const std::string& name = tls->options().server_name;
    transport.tls = TlsStream::Client(*tls->context(), name.empty() ? target.url.host : name,
                                      !tls->options().insecure_skip_verify,
                                      http2_ ? TlsStream::kHttp2 : TlsStream::kHttp1);
    if (!transport.tls->status().ok()) return transport.tls->status();
  }
  auto connection = std::make_shared<HttpConnection>(
      std::move(transport), http2_ ? MakeHttp2Codec(limits_) : MakeHttp1Codec(limits_), poller_,
      now + options_.connect_timeout, static_cast<HttpConnection::Owner*>(this));
  connection->target = number;
  connection->slot = index;
  if (absl::Status added = connection->Register(); !added.ok()) return added;
  open_.insert(connection);
  if (!connection->give_up().infinite()) connecting_.push_back(connection);
  slot.connection = std::move(connection);
  return slot.connection.get();
}

absl::Status HttpClient::Failed(Target& target, Slot& slot, absl::Status why) {
  slot.last_error = absl::UnavailableError(Join(target.name, ": ", Message(why)));
  // All addresses have their turn before a pause, which doubles each time.
  const size_t rounds = ++slot.failures / target.addresses.size();
  if (slot.failures % target.addresses.size() == 0) {
    const Nanos pause = options_.initial_backoff * (int64_t{1} << std::min<size_t>(rounds - 1, 20));
    slot.next_attempt = Now() + std::min(options_.max_backoff, pause);
  }
  return slot.last_error;
}

void HttpClient::OnEnded(HttpConnection& connection, HttpExchange* exchange) {
  auto* const request = static_cast<Request*>(exchange);
  Target& target = targets_[connection.target];
  Slot& slot = target.slots[connection.slot];
  request->connection = nullptr;
  target.answered |= request->error.ok() || (request->status > 0);
  if (slot.connection.get() == &connection && slot.busy && connection.CanStart()) {
    slot.busy = false;
    target.free.push_back(connection.slot);
  }
  if (request->unprocessed && request->attempts < kMaxAttempts && request->when() > Now()) {
    request->error = absl::OkStatus();
    request->unprocessed = false;
    target.waiting.push_front(request);
    return;
  }
  if (!request->error.ok()) {
    request->error = absl::Status(request->error.code(), Join(target.name, ": ", Message(request->error)));
  }
  Over(request);
}

bool HttpClient::OnHeld(ptrdiff_t change) {
  held_ += static_cast<size_t>(change);
  return held_ <= kLongReplies * limits_.max_body_bytes;
}

void HttpClient::OnClosed(HttpConnection& connection, const absl::Status& why, bool stood) {
  Target& target = targets_[connection.target];
  Slot& slot = target.slots[connection.slot];
  if (slot.connection.get() == &connection) {
    // A request that was given up says nothing of the server's address.
    if (stood) slot.failures = 0;
    else if (!absl::IsCancelled(why)) Failed(target, slot, why).IgnoreError();
    slot.connection.reset();
    if (std::exchange(slot.busy, false)) target.free.push_back(connection.slot);
  }
  open_.erase(connection.shared_from_this());
}

void HttpClient::Flush() {
  for (const auto& connection : std::exchange(dirty_, {})) {
    if (!Contain("load", [&] { connection->Flush(); })) connection->OnException();
  }
}

Deadline HttpClient::GiveUpConnecting() {
  Deadline next = Deadline::Infinite();
  const TimePoint now = Now();
  for (const auto& connection : connecting_) connection->GiveUpIfLate(now);
  std::erase_if(connecting_, [&](const auto& connection) {
    next = std::min(next, connection->give_up());
    return connection->give_up().infinite();
  });
  return next;
}

size_t HttpClient::Poll(Deadline deadline) {
  completed_ = 0;
  Flush();
  RunCompletions();
  if (!connecting_.empty()) deadline = std::min(deadline, GiveUpConnecting());
  if (!timers_.empty()) deadline = std::min(deadline, Deadline::At(timers_.first().when()));
  if (completed_ > 0 || !dirty_.empty() || !over_.empty()) deadline = Deadline::At(TimePoint());
  poller_->Wait(deadline, nullptr, &events_);
  for (const Poller::Ready& ready : events_) ready.Handle(nullptr);
  events_.clear();
  ExpireTimers();
  for (size_t target = 0; target < targets_.size(); ++target) Dispatch(target);
  Flush();
  RunCompletions();
  return completed_;
}

void HttpClient::ExpireTimers() {
  if (timers_.empty()) return;
  const TimePoint now = Now();
  while (!timers_.empty() && timers_.first().when() <= now) {
    auto* const request = static_cast<Request*>(&timers_.first());
    timers_.Remove(*request);
    request->timed_out = true;
    if (request->over) continue;
    if (request->connection != nullptr) {
      std::exchange(request->connection, nullptr)->Cancel(request);
    } else {
      // The oldest is the first whose time is over.
      std::deque<Request*>& waiting = targets_[request->target].waiting;
      waiting.erase(std::find(waiting.begin(), waiting.end(), request));
    }
    Over(request);
  }
}

void HttpClient::Over(Request* request) {
  request->over = true;
  over_.push_back(request);
}

void HttpClient::RunCompletions() {
  // Calls that completions begin meanwhile are for the next time.
  over_before_.swap(over_);
  for (Request* request : over_before_) Finish(request);
  over_before_.clear();
}

void HttpClient::Finish(Request* request) {
  ++completed_;
  // A reply may have come with the timer, or after it.
  const bool late = request->timed_out || (request->armed() && request->when() <= Now());
  timers_.Remove(*request);
  absl::Status status = request->error;
  if (late && (status.ok() || request->timed_out)) {
    status = absl::DeadlineExceededError("deadline exceeded");
  } else if (status.ok() && (request->status < 200 || request->status > 299)) {
    status = absl::Status(static_cast<absl::StatusCode>(request->status), request->reason);
  }
  std::string reply;
  reply.swap(request->reply);  // a failed request gives its memory back, too
  if (!status.ok()) reply.clear();
  free_requests_.push_back(request);
  request->done->Done(std::move(status), std::move(reply));
}

std::vector<std::string> HttpClient::Warnings() const {
  if (static_cast<double>(queued_) <= kQueuedShare * static_cast<double>(started_)) return {};
  return {absl::StrFormat(
      "%.3g %% of the requests waited until one of %d connections was free: more connections may be faster",
      100 * static_cast<double>(queued_) / static_cast<double>(started_), options_.connections)};
}

}  // namespace curtail::internal
