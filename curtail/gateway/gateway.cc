// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: one thread runs everything: the sockets of the clients are watched by the poller of the Client that calls the
// target. The protocol:
//  G1. All fields belong to that thread but those named atomic. Stop() sets `stopping_` and wakes the thread.
//  G2. A request becomes a Call, or is answered at once. A Call is in flight until its completion has run; its connection
//      may close before, and its answer is dropped then.
//  G3. An answer makes its connection dirty. Dirty connections send after each poll, so answers that come together
//      share a write.
//  G4. Each bound has its place: connections in Accept(), requests in OnRequest(), bytes in MayRead(), time in Tick().
#include "curtail/gateway/gateway.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/gateway/grpc_web.h"
#include "curtail/gateway/internal/http_connection.h"
#include "curtail/gateway/transcoder.h"
#include "curtail/rpc/client/lane.h"
#include "curtail/rpc/transport/socket.h"
#include "curtail/wire/metadata.h"

namespace curtail::gateway {
namespace {

using curtail::internal::UniqueFd;
using internal::HttpConnection;

constexpr Nanos kTick = std::chrono::milliseconds(100);
constexpr std::string_view kJson = "application/json";

std::string_view HeaderOf(const HttpRequest& request, std::string_view key) {
  return request.headers.Find(key).value_or("");
}

// The path of a target, and what follows '?'.
std::pair<std::string_view, std::string_view> SplitTarget(std::string_view target) {
  const size_t mark = std::min(target.find('?'), target.size());
  return {target.substr(0, mark), target.substr(std::min(mark + 1, target.size()))};
}

void AddMetadata(const Metadata& metadata, HttpReply* reply) {
  for (const auto& [key, value] : metadata) {
    reply->headers.emplace_back(Join("grpc-metadata-", key),
                                key.ends_with("-bin") ? wire::Base64Encode(value) : std::string(value));
  }
}

}  // namespace

class Gateway::Impl final : private HttpConnection::Owner {
 public:
  Impl(GatewayOptions options, std::unique_ptr<Transcoder> transcoder, UniqueFd listener)
      : options_(std::move(options)),
        transcoder_(std::move(transcoder)),
        address_(curtail::internal::BoundAddress(listener.get())),
        channel_(&client_, options_.target, options_.channel),
        listener_(std::make_shared<Listener>(this, std::move(listener))) {}

  absl::Status Begin();
  bool Stop(Deadline deadline);

  const std::string& address() const { return address_; }
  size_t route_count() const { return transcoder_->routes().size(); }
  GatewayStats stats() const;

 private:
  struct Listener final : PollHandler {
    Listener(Impl* i, UniqueFd f) : impl(i), fd(std::move(f)) {}
    void OnEvents(uint32_t, TaskList*) override { impl->Accept(); }
    Impl* const impl;
    UniqueFd fd;
  };
  // A request that waits for the target.
  struct Call final : Completion {
    void OnMetadata(ReplyMetadata&& m) override { metadata = std::move(m); }
    void Done(absl::Status&& status, std::string&& reply) override { impl->OnDone(this, status, reply); }

    Impl* impl = nullptr;
    std::weak_ptr<HttpConnection> connection;
    int32_t stream = 0;
    const Route* route = nullptr;
    std::optional<WebForm> web;
    std::string origin;  // to be named in the answer
    ReplyMetadata metadata;
  };
  // A request on its way to a Call, with what its answer needs.
  struct Incoming {
    const std::shared_ptr<HttpConnection>& connection;
    HttpRequest request;
    std::optional<WebForm> web;
    std::string origin;
  };

  void Run();
  void Accept();
  void Tick(TimePoint now);
  void FlushDirty();
  void OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) override;
  void OnClosed(HttpConnection& connection) override;
  void OnHeld(ptrdiff_t change) override { held_bytes_ += static_cast<size_t>(change); }
  bool MayRead() const override { return held_bytes_ < options_.max_held_bytes; }

  // OK, and the answer's origin, if the page that sent the request may.
  absl::Status CheckOrigin(Incoming* in) const;
  bool Preflight(const Incoming& in);
  absl::Status Serve(Incoming& in);
  absl::StatusOr<std::string> MessageOf(const Incoming& in, const Transcoder::Match& match,
                                        std::string_view query) const;
  absl::StatusOr<Metadata> MetadataOf(const HttpRequest& request) const;
  Deadline DeadlineOf(const HttpRequest& request) const;
  void Fail(const Incoming& in, const absl::Status& status);
  void OnDone(Call* call, const absl::Status& status, const std::string& reply);
  HttpReply ReplyOf(const Call& call, const absl::Status& status, const std::string& bytes) const;
  void Send(const std::shared_ptr<HttpConnection>& connection, int32_t stream, const std::string& origin,
            HttpReply reply);

  // Immutable after construction.
  const GatewayOptions options_;
  const std::unique_ptr<Transcoder> transcoder_;
  const std::string address_;

  Client client_;
  Channel channel_;
  const std::shared_ptr<Listener> listener_;
  std::unordered_set<std::shared_ptr<HttpConnection>> connections_;
  std::vector<std::shared_ptr<HttpConnection>> dirty_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> free_calls_;
  size_t held_bytes_ = 0;
  bool paused_ = false;        // connections may have input that they did not read
  bool accept_later_ = false;  // there was no descriptor for a connection
  bool draining_ = false;
  TimePoint next_tick_;

  // Atomic: set once by Stop(), the deadline first (release), and read by the thread (acquire).
  std::atomic<bool> stopping_{false};
  std::atomic<TimePoint::rep> stop_by_{0};
  std::atomic<bool> all_answered_{true};  // read after the join
  // Atomic: counters, and the number of connections; relaxed.
  std::atomic<uint64_t> open_{0}, requests_{0}, failed_{0}, refused_{0}, timed_out_{0};

  std::thread thread_;
};

absl::Status Gateway::Impl::Begin() {
  Poller& poller = *client_.lane(0).poller();
  if (!poller.status().ok()) return poller.status();
  if (absl::Status status = poller.Add(listener_->fd.get(), listener_); !status.ok()) return status;
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

bool Gateway::Impl::Stop(Deadline deadline) {
  if (thread_.joinable()) {
    stop_by_.store(deadline.when().time_since_epoch().count(), std::memory_order_relaxed);
    stopping_.store(true, std::memory_order_release);
    client_.Wake();
    thread_.join();
  }
  return all_answered_.load(std::memory_order_relaxed);
}

GatewayStats Gateway::Impl::stats() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {open_.load(kRelaxed), requests_.load(kRelaxed), failed_.load(kRelaxed), refused_.load(kRelaxed),
          timed_out_.load(kRelaxed)};
}

void Gateway::Impl::Run() {
  const auto busy = [this] { return calls_.size() > free_calls_.size(); };
  while (true) {
    client_.Poll(Deadline::In(kTick));
    FlushDirty();
    const TimePoint now = Now();
    if (now >= next_tick_) Tick(now);
    if (!stopping_.load(std::memory_order_acquire)) continue;
    if (!std::exchange(draining_, true)) {
      client_.lane(0).poller()->Remove(listener_->fd.get());
      listener_->fd.Reset();
      const auto open = connections_;
      for (const auto& connection : open) connection->Drain();
    }
    if (!busy() && connections_.empty()) break;
    if (now.time_since_epoch().count() < stop_by_.load(std::memory_order_relaxed)) continue;
    all_answered_.store(!busy(), std::memory_order_relaxed);
    break;
  }
  const auto open = std::exchange(connections_, {});
  for (const auto& connection : open) connection->Close();
  // The channel's calls end at their deadline; their completions live until then.
  while (busy()) client_.Poll(Deadline::In(kTick));
}

void Gateway::Impl::Accept() {
  accept_later_ = false;
  while (true) {
    UniqueFd fd(accept4(listener_->fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      accept_later_ = errno != EAGAIN && errno != EWOULDBLOCK;  // EMFILE and others: again at the next tick
      return;
    }
    if (connections_.size() >= options_.max_connections) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    curtail::internal::SetTcpOptions(fd.get());
    HttpConnection::Owner* const owner = this;
    auto connection = std::make_shared<HttpConnection>(std::move(fd), MakeAnyHttpCodec(options_.http),
                                                       client_.lane(0).poller(), owner);
    connections_.insert(connection);
    open_.store(connections_.size(), std::memory_order_relaxed);
    if (!connection->Register().ok()) connection->Close();
  }
}

void Gateway::Impl::OnClosed(HttpConnection& connection) {
  connections_.erase(std::static_pointer_cast<HttpConnection>(connection.shared_from_this()));
  open_.store(connections_.size(), std::memory_order_relaxed);
}

void Gateway::Impl::Tick(TimePoint now) {
  next_tick_ = now + kTick;
  if (accept_later_ && listener_->fd) Accept();
  std::vector<std::shared_ptr<HttpConnection>> late;
  std::vector<std::shared_ptr<HttpConnection>> all;
  for (const auto& connection : connections_) {
    const Nanos limit = connection->in_request() ? options_.request_timeout : options_.idle_timeout;
    const bool waits = connection->codec().in_flight() > 0;
    if (!waits && now - connection->since() > limit) {
      late.push_back(connection);
    } else if (!connection->codec().Finished()) {
      all.push_back(connection);
    }
  }
  timed_out_.fetch_add(late.size(), std::memory_order_relaxed);
  for (const auto& connection : late) connection->Close();
  // Those that read nothing, as all held too much, go on.
  if (MayRead() && std::exchange(paused_, false)) {
    for (const auto& connection : all) connection->Flush();
  }
  paused_ = !MayRead();
}

void Gateway::Impl::FlushDirty() {
  const auto dirty = std::exchange(dirty_, {});
  for (const auto& connection : dirty) connection->Flush();
}

absl::Status Gateway::Impl::CheckOrigin(Incoming* in) const {
  const std::string_view origin = HeaderOf(in->request, "origin");
  if (origin.empty()) return absl::OkStatus();
  const std::string_view host = HeaderOf(in->request, "host");
  if (!host.empty() && (origin == Join("http://", host) || origin == Join("https://", host))) {
    return absl::OkStatus();
  }
  for (const std::string& allowed : options_.allowed_origins) {
    if (allowed != "*" && allowed != origin) continue;
    in->origin = origin;
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError("web pages of this origin may not call: see --allow-origin");
}

bool Gateway::Impl::Preflight(const Incoming& in) {
  if (in.request.verb != "OPTIONS" || HeaderOf(in.request, "access-control-request-method").empty()) {
    return false;
  }
  HttpReply reply;
  reply.status = 204;
  std::string headers = "content-type, grpc-timeout, x-grpc-web, x-user-agent";
  for (const std::string& header : options_.forward_headers) headers += Join(", ", header);
  reply.headers = {{"access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE"},
                   {"access-control-allow-headers", headers},
                   {"access-control-max-age", "600"}};
  Send(in.connection, in.request.stream, in.origin, std::move(reply));
  return true;
}

void Gateway::Impl::OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) {
  requests_.fetch_add(1, std::memory_order_relaxed);
  Incoming in{connection, std::move(request), std::nullopt, {}};
  in.web = WebFormOf(HeaderOf(in.request, "content-type"));
  absl::Status status = CheckOrigin(&in);
  if (status.ok() && Preflight(in)) return;
  if (status.ok() && calls_.size() - free_calls_.size() >= options_.max_requests) {
    status = absl::UnavailableError("too many requests are in flight");
  }
  if (!status.ok()) refused_.fetch_add(1, std::memory_order_relaxed);
  if (status.ok()) status = Serve(in);
  if (!status.ok()) Fail(in, status);
}

absl::StatusOr<std::string> Gateway::Impl::MessageOf(const Incoming& in, const Transcoder::Match& match,
                                                     std::string_view query) const {
  if (in.web) return WebMessage(*in.web, in.request.body);
  return transcoder_->Request(match, query, in.request.body);
}

absl::StatusOr<Metadata> Gateway::Impl::MetadataOf(const HttpRequest& request) const {
  Metadata metadata;
  for (const std::string& key : options_.forward_headers) {
    for (const auto& [name, value] : request.headers) {
      if (name != key) continue;
      if (!key.ends_with("-bin")) {
        metadata.Add(key, value);
      } else if (const std::optional<std::string> bytes = wire::Base64Decode(value)) {
        metadata.Add(key, *bytes);
      } else {
        return absl::InvalidArgumentError(Join("header ", key, " is no base64"));
      }
    }
  }
  if (absl::Status status = wire::CheckMetadata(metadata); !status.ok()) return status;
  return metadata;
}

Deadline Gateway::Impl::DeadlineOf(const HttpRequest& request) const {
  const std::optional<Nanos> asked = wire::ParseTimeout(HeaderOf(request, "grpc-timeout"));
  return Deadline::In(std::min(asked.value_or(options_.timeout), options_.timeout));
}

absl::Status Gateway::Impl::Serve(Incoming& in) {
  const auto [path, query] = SplitTarget(in.request.target);
  const absl::StatusOr<Transcoder::Match> match = transcoder_->Find(in.request.verb, path);
  if (!match.ok()) return match.status();
  if (!in.web && !in.request.body.empty() && !HeaderOf(in.request, "content-type").starts_with(kJson)) {
    return absl::InvalidArgumentError("the body must be application/json, or gRPC-Web");
  }
  const absl::StatusOr<std::string> message = MessageOf(in, *match, query);
  if (!message.ok()) return message.status();
  const absl::StatusOr<Metadata> metadata = MetadataOf(in.request);
  if (!metadata.ok()) return metadata.status();
  if (free_calls_.empty()) {
    calls_.push_back(std::make_unique<Call>());
    free_calls_.push_back(calls_.back().get());
  }
  Call* const call = free_calls_.back();
  free_calls_.pop_back();
  call->impl = this;
  call->connection = in.connection;
  call->stream = in.request.stream;
  call->route = match->route;
  call->web = in.web;
  call->origin = in.origin;
  channel_.Start(match->route->method.path, DeadlineOf(in.request), *metadata, *message, call);
  return absl::OkStatus();
}

void Gateway::Impl::Fail(const Incoming& in, const absl::Status& status) {
  HttpReply reply;
  if (in.web) {
    reply = WebReply(*in.web, status, {}, {});
  } else {
    const bool wrong_verb = status.code() == absl::StatusCode::kUnimplemented;
    reply.status = wrong_verb ? 405 : HttpStatusOf(status.code());
    if (wrong_verb) reply.headers.emplace_back("allow", std::string(Message(status)));
    reply.headers.emplace_back("content-type", kJson);
    reply.body = transcoder_->Error(
        wrong_verb ? absl::UnimplementedError(Join("this path is for ", Message(status))) : status);
  }
  Send(in.connection, in.request.stream, in.origin, std::move(reply));
}

HttpReply Gateway::Impl::ReplyOf(const Call& call, const absl::Status& status,
                                 const std::string& bytes) const {
  if (call.web) return WebReply(*call.web, status, bytes, call.metadata);
  HttpReply reply;
  absl::StatusOr<std::string> json = std::string();
  if (status.ok()) {
    json = transcoder_->Reply(*call.route, bytes);
  } else {
    json = status;
  }
  reply.status = HttpStatusOf(json.status().code());
  AddMetadata(call.metadata.initial, &reply);
  AddMetadata(call.metadata.trailing, &reply);
  reply.headers.emplace_back("content-type", kJson);
  reply.body = json.ok() ? *std::move(json) : transcoder_->Error(json.status());
  return reply;
}

void Gateway::Impl::OnDone(Call* call, const absl::Status& status, const std::string& reply) {
  if (const std::shared_ptr<HttpConnection> connection = call->connection.lock()) {
    if (!connection->closed()) Send(connection, call->stream, call->origin, ReplyOf(*call, status, reply));
  }
  call->connection.reset();
  call->metadata.Clear();
  free_calls_.push_back(call);
}

void Gateway::Impl::Send(const std::shared_ptr<HttpConnection>& connection, int32_t stream,
                         const std::string& origin, HttpReply reply) {
  if (reply.status >= 500) failed_.fetch_add(1, std::memory_order_relaxed);
  reply.headers.emplace_back("x-content-type-options", "nosniff");
  if (!options_.allowed_origins.empty()) reply.headers.emplace_back("vary", "origin");
  if (!origin.empty()) {
    reply.headers.emplace_back("access-control-allow-origin", origin);
    reply.headers.emplace_back("access-control-expose-headers", "grpc-status, grpc-message");
  }
  connection->Reply(stream, std::move(reply));
  if (!std::exchange(connection->dirty, true)) dirty_.push_back(connection);
}

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(GatewayOptions options, Catalog catalog) {
  for (std::string& header : options.forward_headers) {
    std::transform(header.begin(), header.end(), header.begin(),
                   [](unsigned char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (!wire::IsCustomKey(header)) {
      return absl::InvalidArgumentError(Join("header \"", header, "\" cannot be forwarded as metadata"));
    }
  }
  absl::StatusOr<std::unique_ptr<Transcoder>> transcoder = Transcoder::Make(std::move(catalog));
  if (!transcoder.ok()) return transcoder.status();
  const absl::StatusOr<Address> address = Address::Resolve(options.listen);
  if (!address.ok()) return address.status();
  absl::StatusOr<UniqueFd> listener = curtail::internal::Listen(*address);
  if (!listener.ok()) return listener.status();
  auto impl = std::make_unique<Impl>(std::move(options), *std::move(transcoder), *std::move(listener));
  if (absl::Status status = impl->Begin(); !status.ok()) return status;
  return std::unique_ptr<Gateway>(new Gateway(std::move(impl)));
}

Gateway::Gateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Gateway::~Gateway() { impl_->Stop(Deadline::In(Nanos::zero())); }
const std::string& Gateway::address() const { return impl_->address(); }
size_t Gateway::route_count() const { return impl_->route_count(); }
GatewayStats Gateway::stats() const { return impl_->stats(); }
bool Gateway::Stop(Deadline deadline) { return impl_->Stop(deadline); }

}  // namespace curtail::gateway
