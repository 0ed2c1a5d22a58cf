// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: one thread polls all sockets. A client is in one of five states, each with its bound:
//
//  reading  sends a request: client_time from its first byte, or from the connection's beginning
//  waiting  its request is whole and waits for the rate; of its socket only the end is looked at
//  writing  takes an answer: client_time for all of it
//  idle     has sent nothing since its last answer: idle_time
//  leaving  has its last answer; closing before it has sent all could lose that answer: client_time
//
// Memory: a client holds one request (HttpLimits) and one answer, whatever it sends behind it, and all of them together
// hold max_held_bytes and one answer. Of requests that wait, the one is next whose client was answered longest ago, so
// clients that ask without end do not hold others up. One that has ended its side may have left: it is answered behind all
// others, and gives its place to any newcomer.
//
// Places: a newcomer is read at once, since its request has often come with it. Then a client that has not sent a whole
// request is evicted before any other, so crowds of silent clients keep out neither newcomers nor those who are known. Where
// all are at work, the one that was answered last gives its place: it has had its share, and a newcomer is answered once.
#include "curtail/observe/http_admin.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "curtail/base/boundary.h"
#include "curtail/base/strings.h"
#include "curtail/exec/signals.h"

namespace curtail::observe {

using curtail::internal::UniqueFd;
using wire::HttpReply;
using wire::HttpRequest;
using wire::HttpServerCodec;

namespace {

constexpr size_t kChunk = 4096;
// At most so many newcomers are accepted before the connections have a turn.
constexpr int kAcceptBatch = 16;
// The pause after accept() has failed, for want of descriptors.
constexpr Nanos kAcceptPause = std::chrono::milliseconds(100);

enum class ClientState : uint8_t { kReading, kWaiting, kWriting, kIdle, kLeaving };

struct Client {
  UniqueFd fd;
  std::unique_ptr<HttpServerCodec> codec;
  ClientState state = ClientState::kReading;
  bool known = false;                  // it has sent a whole request
  bool served = false;                 // it has had an answer
  bool ended = false;                  // it sends no more, which showed while it waited
  TimePoint since;                     // in this state
  TimePoint heard;                     // when it last sent or took a byte
  TimePoint answered;                  // when it last was, or came
  std::optional<HttpRequest> request;  // waiting
  std::string out;                     // writing
  size_t sent = 0;                     // of it

  size_t held() const { return codec->held_bytes() + out.size() + (request ? request->body.size() : 0); }
};

}  // namespace

class HttpAdmin::Impl {
 public:
  Impl(UniqueFd listener, HttpAdminOptions options, std::vector<HttpAdminPage> pages)
      : options_(std::move(options)),
        pages_(std::move(pages)),
        interval_(std::chrono::nanoseconds(std::chrono::seconds(1)) / options_.rate),
        listener_(std::move(listener)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Impl();

  absl::Status Begin();
  HttpAdminStats stats() const;

 private:
  using Clients = std::vector<std::unique_ptr<Client>>;

  void Run();
  // Waits for events, and handles them.
  void Turn();
  // Waits for the next event, and accepts; marks what each client may do in `ready_`.
  void Poll();
  TimePoint NextLook(TimePoint now) const;
  bool MayAccept(TimePoint now) const;
  void Accept(TimePoint now);
  // The client that a newcomer may replace at `now`, if there is one.
  Clients::const_iterator Evictable(TimePoint now) const;
  // Has taken nothing of its answer for too long, while others wait for room.
  bool Stalls(const Client& client, TimePoint now) const {
    return client.state == ClientState::kWriting && now - client.heard >= options_.eviction_time;
  }
  // False: no room for an answer.
  bool HasRoom(TimePoint now);
  size_t Held() const;
  // The bounds of time. False: the client has exceeded its own.
  bool InTime(const Client& client, TimePoint now) const { return now < DueTime(client); }
  TimePoint DueTime(const Client& client) const;

  static void Enter(Client& client, ClientState state, TimePoint now);
  // Each returns false when the connection is over.
  // `events` of poll().
  bool OnReady(Client& client, short events, TimePoint now);
  bool Read(Client& client, TimePoint now);
  // Takes bytes, or what came behind the last request.
  bool Receive(Client& client, std::string_view bytes, TimePoint now);
  bool Write(Client& client, TimePoint now);

  // Answers requests that wait, as far as the rate allows.
  void AnswerWaiting(TimePoint now);
  bool RateAllows(TimePoint now) const { return next_ - now <= interval_ * options_.burst; }
  HttpReply Answer(const HttpRequest& request);
  HttpReply AnswerPage(const HttpRequest& request);

  // Immutable.
  const HttpAdminOptions options_;
  const std::vector<HttpAdminPage> pages_;
  const Nanos interval_;
  const UniqueFd listener_;
  const UniqueFd wake_;

  // Owned by the thread.
  Clients clients_;
  std::vector<pollfd> sockets_;  // wake_, listener_, then the clients
  TimePoint next_;               // when the request is due that keeps exactly to the rate
  TimePoint look_for_room_;      // while requests wait for it
  TimePoint accept_after_;

  // Atomic: set once, release; the thread reads it, acquire.
  std::atomic<bool> stopping_{false};
  // Atomic, relaxed: written by the thread, read for statistics.
  std::atomic<uint64_t> open_{0}, requests_{0}, refused_{0}, malformed_{0}, paced_{0}, held_back_{0},
      evicted_{0}, timed_out_{0}, held_{0};

  std::thread thread_;
};

namespace {

void AddOne(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

absl::Status HttpAdmin::Impl::Begin() {
  if (!wake_) return absl::ResourceExhaustedError("no file descriptor is left for the HTTP admin port");
  const SignalsKeptOut keep_out;
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "http-admin");
  return absl::OkStatus();
}

HttpAdmin::Impl::~Impl() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

HttpAdminStats HttpAdmin::Impl::stats() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {open_.load(kRelaxed),      requests_.load(kRelaxed),  refused_.load(kRelaxed),
          malformed_.load(kRelaxed), paced_.load(kRelaxed),     held_back_.load(kRelaxed),
          evicted_.load(kRelaxed),   timed_out_.load(kRelaxed), held_.load(kRelaxed)};
}

void HttpAdmin::Impl::Run() {
  while (!stopping_.load(std::memory_order_acquire)) {
    Contain("http-admin", [this] { Turn(); });
  }
}

void HttpAdmin::Impl::Turn() {
  Poll();
  const TimePoint now = Now();
  for (size_t i = 0; i < clients_.size(); ++i) {
    Client& client = *clients_[i];
    bool stays = true;
    if (sockets_[i + 2].revents != 0) {
      stays = Contain("http-admin", [&] { stays = OnReady(client, sockets_[i + 2].revents, now); }) && stays;
    }
    if (stays && !InTime(client, now)) {
      AddOne(timed_out_);
      stays = false;
    }
    if (!stays) clients_[i].reset();
  }
  std::erase(clients_, nullptr);
  if (sockets_[1].revents != 0) Accept(now);
  AnswerWaiting(now);
  open_.store(clients_.size(), std::memory_order_relaxed);
  held_.store(Held(), std::memory_order_relaxed);
}

void HttpAdmin::Impl::Poll() {
  const TimePoint now = Now();
  sockets_.clear();
  sockets_.push_back({wake_.get(), POLLIN, 0});
  sockets_.push_back({MayAccept(now) ? listener_.get() : -1, POLLIN, 0});
  for (const auto& client : clients_) {
    const bool waits = client->state == ClientState::kWaiting;
    const short events = waits ? POLLRDHUP : client->state == ClientState::kWriting ? POLLOUT : POLLIN;
    sockets_.push_back({waits && client->ended ? -1 : client->fd.get(), events, 0});
  }
  const Nanos wait = std::clamp<Nanos>(NextLook(now) - now, Nanos::zero(), std::chrono::hours(1));
  const timespec timeout = {.tv_sec = static_cast<time_t>(wait / std::chrono::seconds(1)),
                            .tv_nsec = static_cast<long>((wait % std::chrono::seconds(1)).count())};
  if (ppoll(sockets_.data(), sockets_.size(), &timeout, nullptr) > 0) return;
  for (pollfd& socket : sockets_) socket.revents = 0;
}

TimePoint HttpAdmin::Impl::NextLook(TimePoint now) const {
  TimePoint next = now + std::chrono::hours(1);
  if (accept_after_ > now) next = std::min(next, accept_after_);
  for (const auto& client : clients_) {
    if (client->state == ClientState::kWaiting) {
      next = std::min(next, std::max(next_ - interval_ * options_.burst, look_for_room_));
      continue;
    }
    next = std::min(next, DueTime(*client));
    const bool full = clients_.size() >= options_.max_connections;
    if (full && client->heard + options_.eviction_time > now) {
      next = std::min(next, client->heard + options_.eviction_time);
    }
  }
  return next;
}

size_t HttpAdmin::Impl::Held() const {
  size_t held = 0;
  for (const auto& client : clients_) held += client->held();
  return held;
}

TimePoint HttpAdmin::Impl::DueTime(const Client& client) const {
  switch (client.state) {
    case ClientState::kWaiting:
      return TimePoint::max();
    case ClientState::kIdle:
      return client.since + options_.idle_time;
    case ClientState::kReading:
    case ClientState::kWriting:
    case ClientState::kLeaving:
      break;
  }
  return client.since + options_.client_time;
}

bool HttpAdmin::Impl::MayAccept(TimePoint now) const {
  if (now < accept_after_) return false;
  return clients_.size() < options_.max_connections || Evictable(now) != clients_.end();
}

HttpAdmin::Impl::Clients::const_iterator HttpAdmin::Impl::Evictable(TimePoint now) const {
  auto found = clients_.end();
  const auto rank = [](const Client& client) {
    return std::pair(client.known && !client.ended, client.heard);
  };
  for (auto at = clients_.begin(); at != clients_.end(); ++at) {
    const Client& client = **at;
    if (client.state == ClientState::kWaiting && !client.ended) continue;
    if (client.known && !client.ended && now - client.heard < options_.eviction_time) continue;
    if (found == clients_.end() || rank(client) < rank(**found)) found = at;
  }
  if (found != clients_.end()) return found;
  for (auto at = clients_.begin(); at != clients_.end(); ++at) {
    const Client& client = **at;
    const bool waits = client.state == ClientState::kWaiting && client.served;
    if (waits && (found == clients_.end() || client.answered > (*found)->answered)) found = at;
  }
  return found;
}

void HttpAdmin::Impl::Accept(TimePoint now) {
  for (int i = 0; i < kAcceptBatch; ++i) {
    const bool full = clients_.size() >= options_.max_connections;
    const auto evictable = full ? Evictable(now) : clients_.cend();
    if (full && evictable == clients_.cend()) return;
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) accept_after_ = now + kAcceptPause;
      return;
    }
    if (full) {
      AddOne(evicted_);
      clients_.erase(evictable);
    }
    auto client = std::make_unique<Client>();
    client->fd = std::move(fd);
    client->codec = wire::MakeHttp1Codec(options_.http);
    client->since = client->heard = client->answered = now;
    if (Read(*client, now)) clients_.push_back(std::move(client));
  }
}

void HttpAdmin::Impl::Enter(Client& client, ClientState state, TimePoint now) {
  if (client.state == state && state == ClientState::kReading) return;  // the clock of a request runs on
  client.state = state;
  client.since = now;
}

bool HttpAdmin::Impl::OnReady(Client& client, short events, TimePoint now) {
  if (client.state == ClientState::kWaiting) {
    client.ended = true;
    return (events & (POLLERR | POLLHUP)) == 0;  // it may read, unless both sides have ended
  }
  if (client.state == ClientState::kWriting) return Write(client, now);
  return Read(client, now);
}

bool HttpAdmin::Impl::Read(Client& client, TimePoint now) {
  std::array<char, kChunk> buffer;
  const ssize_t n = recv(client.fd.get(), buffer.data(), buffer.size(), 0);
  if (n < 0) return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
  if (n == 0) return false;
  if (client.state == ClientState::kLeaving) return true;
  client.heard = now;
  Enter(client, ClientState::kReading, now);
  return Receive(client, {buffer.data(), static_cast<size_t>(n)}, now);
}

bool HttpAdmin::Impl::Receive(Client& client, std::string_view bytes, TimePoint now) {
  std::vector<HttpRequest> requests;
  if (!client.codec->Receive(bytes, &requests).ok()) return false;
  client.out.clear();
  client.sent = 0;
  client.codec->Pull(&client.out, SIZE_MAX);  // "100 Continue", or a refusal
  if (!requests.empty()) {
    client.known = true;
    client.request = std::move(requests.front());  // the codec takes one at a time
    Enter(client, ClientState::kWaiting, now);
    if (!RateAllows(now)) AddOne(paced_);
    return true;
  }
  if (client.out.empty()) return !client.codec->Finished();
  if (client.codec->Finished()) AddOne(malformed_);
  Enter(client, ClientState::kWriting, now);
  return Write(client, now);
}

bool HttpAdmin::Impl::Write(Client& client, TimePoint now) {
  while (client.sent < client.out.size()) {
    const ssize_t n =
        send(client.fd.get(), client.out.data() + client.sent, client.out.size() - client.sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    client.sent += static_cast<size_t>(n);
    client.heard = now;
  }
  std::string().swap(client.out);
  client.sent = 0;
  if (client.codec->Finished()) {
    shutdown(client.fd.get(), SHUT_WR);
    Enter(client, ClientState::kLeaving, now);
    return true;
  }
  const bool answered = client.codec->WantsInput() && !client.codec->in_request();
  Enter(client, answered ? ClientState::kIdle : ClientState::kReading, now);
  return Receive(client, {}, now);
}

void HttpAdmin::Impl::AnswerWaiting(TimePoint now) {
  while (RateAllows(now)) {
    Client* first = nullptr;
    for (const auto& client : clients_) {
      if (client->state != ClientState::kWaiting) continue;
      const auto turn = [](const Client& one) { return std::pair(one.ended, one.answered); };
      if (first == nullptr || turn(*client) < turn(*first)) first = client.get();
    }
    if (first == nullptr || !HasRoom(now)) return;
    next_ = std::max(next_, now) + interval_;
    const HttpRequest request = *std::exchange(first->request, std::nullopt);
    first->codec->Reply(request.stream, Answer(request));
    first->codec->Pull(&first->out, SIZE_MAX);
    first->heard = first->answered = now;
    first->served = true;
    Enter(*first, ClientState::kWriting, now);
    if (Write(*first, now)) continue;
    std::erase_if(clients_, [first](const auto& client) { return client.get() == first; });
  }
}

bool HttpAdmin::Impl::HasRoom(TimePoint now) {
  if (Held() < options_.max_held_bytes) return true;
  AddOne(held_back_);
  const size_t before = clients_.size();
  std::erase_if(clients_, [&](const auto& client) { return Stalls(*client, now); });
  evicted_.fetch_add(before - clients_.size(), std::memory_order_relaxed);
  look_for_room_ = now + options_.eviction_time;
  return Held() < options_.max_held_bytes;
}

HttpReply HttpAdmin::Impl::Answer(const HttpRequest& request) {
  AddOne(requests_);
  if (const std::string_view why = WhyRefused(request, options_.access); !why.empty()) {
    AddOne(refused_);
    return HttpAdminReply(403, "text/plain", Join(why, "\n"));
  }
  HttpReply reply = HttpAdminReply(500, "text/plain", "the page failed: see the log of the process\n");
  Contain("a page", [&] { reply = AnswerPage(request); });
  reply.headers.emplace_back("cache-control", "no-store");
  reply.headers.emplace_back("x-content-type-options", "nosniff");
  return reply;
}

HttpReply HttpAdmin::Impl::AnswerPage(const HttpRequest& request) {
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  const auto page =
      std::find_if(pages_.begin(), pages_.end(), [path](const auto& p) { return p.path == path; });
  if (page == pages_.end()) {
    std::string text = "there is no such page; there are:\n";
    for (const HttpAdminPage& each : pages_) text += Join(each.path, "\n");
    return HttpAdminReply(404, "text/plain", std::move(text));
  }
  if (request.verb == "GET" || request.verb == "HEAD") return page->get(request, stats());
  if (request.verb == "POST" && page->post) return page->post(request, stats());
  HttpReply reply = HttpAdminReply(405, "text/plain", "the page has no such method\n");
  reply.headers.emplace_back("allow", page->post ? "GET, HEAD, POST" : "GET, HEAD");
  return reply;
}

HttpReply HttpAdminReply(int status, std::string_view type, std::string body) {
  HttpReply reply;
  reply.status = status;
  reply.headers.emplace_back("content-type", type);
  reply.body = std::move(body);
  return reply;
}

absl::StatusOr<std::unique_ptr<HttpAdmin>> HttpAdmin::Start(UniqueFd listener, HttpAdminOptions options,
                                                            std::vector<HttpAdminPage> pages) {
  auto impl = std::make_unique<Impl>(std::move(listener), std::move(options), std::move(pages));
  if (absl::Status begun = impl->Begin(); !begun.ok()) return begun;
  return std::unique_ptr<HttpAdmin>(new HttpAdmin(std::move(impl)));
}

HttpAdmin::HttpAdmin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpAdmin::~HttpAdmin() = default;
HttpAdminStats HttpAdmin::stats() const { return impl_->stats(); }

}  // namespace curtail::observe
