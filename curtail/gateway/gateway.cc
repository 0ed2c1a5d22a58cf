// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: one thread runs everything: the sockets of the clients are watched by the poller of the Client that calls the
// target. The protocol:
//  G1. All fields belong to that thread but those named atomic. LastCall() and Stop() set `leaving_` and `stopping_`, and wake
//      the thread.
//  G2. A request becomes one of the TargetCalls, or is answered at once.
//  G3. An answer makes its connection dirty. Dirty connections send after each poll, so answers that come together
//      share a write. A connection's turn is short (http_connection.cc); with more to do, it is dirty again.
//  G4. Each bound has its place: connections in Accept(), requests in OnRequest(), time in Tick(). Bytes have two shares.
//      That of requests on their way to the target is kept by refusing more (target_calls.cc): only the target can free
//      them. The other has three steps. Streams that lag fill half of it, MayStream(); each is bounded, too (stream_call.cc).
//      Requests are read up to three quarters, MayRead(), beyond which MakeRoom() ends what makes no progress. The last
//      quarter is for whole answers, Answer(). A connection that holds little is served beyond all of it, so newcomers are.
#include "curtail/gateway/gateway.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>

#include "curtail/base/boundary.h"
#include "curtail/base/log.h"
#include "curtail/base/memory.h"
#include "curtail/base/strings.h"
#include "curtail/gateway/grpc_web.h"
#include "curtail/gateway/internal/answer_form.h"
#include "curtail/gateway/internal/http_connection.h"
#include "curtail/gateway/internal/request_rules.h"
#include "curtail/gateway/internal/target_calls.h"
#include "curtail/gateway/internal/token_bucket.h"
#include "curtail/gateway/transcoder.h"
#include "curtail/rpc/call/lane.h"
#include "curtail/rpc/retries.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::gateway {
namespace {

using curtail::internal::TlsStream;
using curtail::internal::UniqueFd;
using internal::AnswerForm;
using internal::Asker;
using internal::HeaderOf;
using internal::HttpConnection;
using internal::Incoming;
using internal::kJson;
using internal::kJsonLines;
using internal::SplitTarget;
using internal::TargetCalls;

constexpr Nanos kTick = std::chrono::milliseconds(100);
// While too much is held a reader that stalls for so long loses its answer. A request that is not whole is lost once too
// much is held for so long: none becomes whole while nothing is read.
constexpr Nanos kStallUnderLoad = std::chrono::seconds(1);
// Descriptors that are not for clients.
constexpr size_t kOwnDescriptors = 32;
// The target sends so much of an answer ahead of its reader.
constexpr uint32_t kTargetWindow = 256u << 10;

// Descriptors for clients.
size_t Descriptors() {
  const size_t all = curtail::internal::RaiseDescriptorLimit();
  return all > 2 * kOwnDescriptors ? all - kOwnDescriptors : all / 2;
}

}  // namespace

class Gateway::Impl final : private HttpConnection::Owner, private TargetCalls::Owner {
 public:
  Impl(GatewayOptions options, std::unique_ptr<Transcoder> transcoder, StaticFiles files, UniqueFd listener)
      : options_(std::move(options)),
        transcoder_(std::move(transcoder)),
        files_(std::move(files)),
        address_(curtail::internal::BoundAddress(listener.get())),
        hosts_(internal::HostsOf(options_)),
        most_connections_(std::min(options_.max_connections, Descriptors())),
        channel_(&client_, options_.target, options_.channel),
        listener_(std::make_shared<Listener>(this, std::move(listener))),
        calls_(options_, *transcoder_, &channel_, this),
        bucket_(options_.max_rate > 0 ? options_.max_rate : 1,
                options_.max_burst > 0 ? options_.max_burst : std::max(1.0, options_.max_rate)) {}

  absl::Status Begin();
  void LastCall();
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
  void Run();
  void Turn();
  void Accept();
  // Closes the connection that has been silent longest. False: none is.
  bool Evict();
  void Open(UniqueFd fd);
  void Tick(TimePoint now);
  void MakeRoom(TimePoint now);
  void CloseLate(HttpConnection& connection);
  Deadline NextLook() const;
  // LastCall() was called.
  void TellAll();
  // Stop() was called. True: all is done, or out of time.
  bool Drained(TimePoint now);
  void FlushDirty();
  void OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) override;
  void OnClosed(HttpConnection& connection) override;
  void OnTurnOver(const std::shared_ptr<HttpConnection>& connection) override { OnOutput(connection); }
  void OnLongRequest(const std::shared_ptr<HttpConnection>& one) override { long_turns_.push_back(one); }
  size_t share() const { return options_.max_held_bytes / 2; }
  void OnHeld(ptrdiff_t change) override {
    held_bytes_.fetch_add(static_cast<size_t>(change), std::memory_order_relaxed);
    paused_ |= !MayRead();  // a pause may be over before the next tick
  }
  void OnRefused(uint64_t requests) override { refused_.fetch_add(requests, std::memory_order_relaxed); }
  void OnUnderWay(ptrdiff_t change) override { calls_.AddUnderWay(change); }
  size_t held() const { return held_bytes_.load(std::memory_order_relaxed); }
  bool MayRead() const override { return held() < share() / 4 * 3; }
  bool MayStream() const override { return held() < share() / 2; }
  void Answer(const Asker& asker, HttpReply reply) override;
  void OnOutput(const std::shared_ptr<HttpConnection>& connection) override;
  void OnStreamEnd(const absl::Status& status) override;
  void OnCutShort() override { timed_out_.fetch_add(1, std::memory_order_relaxed); }
  void OnRetry() override { retried_.fetch_add(1, std::memory_order_relaxed); }
  void OnCancelled() override { cancelled_.fetch_add(1, std::memory_order_relaxed); }
  void OnRefused() override { OnRefused(1); }

  absl::Status Serve(Incoming& in);
  void Fail(const Incoming& in, const absl::Status& status);

  // Immutable after construction.
  const GatewayOptions options_;
  const std::unique_ptr<Transcoder> transcoder_;
  const StaticFiles files_;
  const std::string address_;
  const internal::Hosts hosts_;
  const size_t most_connections_;

  Client client_;
  Channel channel_;
  const std::shared_ptr<Listener> listener_;
  std::unordered_set<std::shared_ptr<HttpConnection>> connections_;
  curtail::internal::SilentList<HttpConnection> silent_;
  std::vector<std::shared_ptr<HttpConnection>> dirty_;
  std::deque<std::shared_ptr<HttpConnection>> long_turns_;  // these await one
  TargetCalls calls_;
  internal::TokenBucket bucket_;  // with max_rate
  bool paused_ = false;           // connections may have input that they did not read
  bool accept_later_ = false;     // there was no descriptor for a connection
  bool last_call_ = false;
  bool draining_ = false;
  TimePoint next_tick_;
  TimePoint full_since_ = TimePoint::max();  // the first tick at which too much was held; never: not now

  // Atomic: set once by LastCall().
  std::atomic<bool> leaving_{false};
  // Atomic: set once by Stop(), the times first (release), and read by the thread (acquire).
  std::atomic<bool> stopping_{false};
  std::atomic<TimePoint::rep> stop_by_{0}, end_streams_at_{0};
  std::atomic<bool> all_answered_{true};  // read after the join
  // Atomic: bytes of unfinished requests, and of answers; relaxed.
  std::atomic<size_t> held_bytes_{0};
  // Atomic: counters, and the number of connections; relaxed.
  std::atomic<uint64_t> open_{0}, requests_{0}, failed_{0}, refused_{0}, retried_{0}, cancelled_{0},
      timed_out_{0}, evicted_{0};

  std::thread thread_;
};

absl::Status Gateway::Impl::Begin() {
  Poller& poller = *client_.lane(0).poller();
  if (!poller.status().ok()) return poller.status();
  if (absl::Status status = poller.Add(listener_->fd.get(), listener_); !status.ok()) return status;
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Gateway::Impl::LastCall() {
  leaving_.store(true, std::memory_order_relaxed);
  client_.Wake();
}

bool Gateway::Impl::Stop(Deadline deadline) {
  if (thread_.joinable()) {
    const TimePoint now = Now();
    const Nanos left = std::max(deadline.when() - now, Nanos::zero());
    stop_by_.store(deadline.when().time_since_epoch().count(), std::memory_order_relaxed);
    end_streams_at_.store((now + left / 2).time_since_epoch().count(), std::memory_order_relaxed);
    stopping_.store(true, std::memory_order_release);
    client_.Wake();
    thread_.join();
  }
  return all_answered_.load(std::memory_order_relaxed);
}

GatewayStats Gateway::Impl::stats() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {open_.load(kRelaxed),      requests_.load(kRelaxed), failed_.load(kRelaxed),
          refused_.load(kRelaxed),   retried_.load(kRelaxed),  cancelled_.load(kRelaxed),
          timed_out_.load(kRelaxed), evicted_.load(kRelaxed),  held()};
}

Deadline Gateway::Impl::NextLook() const {
  if (!dirty_.empty() || !long_turns_.empty()) return Deadline::At(TimePoint());
  return std::min(Deadline::In(kTick), calls_.first_deadline());
}

void Gateway::Impl::Run() {
  do {
    Contain("gateway", [this] { Turn(); });
  } while (!stopping_.load(std::memory_order_acquire) || !Drained(Now()));
  const auto open = std::exchange(connections_, {});
  for (const auto& connection : open) connection->Close();
  // Calls end with their connections; their completions run in a later Poll().
  while (calls_.size() > 0) {
    client_.Poll(Deadline::In(kTick));
    calls_.LookAtStreams();
  }
}

void Gateway::Impl::Turn() {
  client_.Poll(NextLook());
  calls_.ExpireStreams();
  FlushDirty();
  const TimePoint now = Now();
  if (now >= next_tick_) Tick(now);
  if (leaving_.load(std::memory_order_relaxed) && !last_call_) TellAll();
}

void Gateway::Impl::TellAll() {
  last_call_ = true;
  const auto open = connections_;
  for (const auto& connection : open) connection->LastCall();
}

bool Gateway::Impl::Drained(TimePoint now) {
  const auto passed = [now](const std::atomic<TimePoint::rep>& when) {
    return now.time_since_epoch().count() >= when.load(std::memory_order_relaxed);
  };
  if (!std::exchange(draining_, true)) {
    client_.lane(0).poller()->Remove(listener_->fd.get());
    listener_->fd.Reset();
    const auto open = connections_;
    for (const auto& connection : open) connection->Drain();
  }
  if (calls_.size() == 0 && connections_.empty()) return true;
  if (passed(end_streams_at_)) calls_.EndStreams(absl::UnavailableError("the gateway is going away"));
  if (!passed(stop_by_)) return false;
  all_answered_.store(calls_.size() == 0, std::memory_order_relaxed);
  return true;
}

void Gateway::Impl::Accept() {
  accept_later_ = false;
  while (true) {
    UniqueFd fd(accept4(listener_->fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if ((errno == EMFILE || errno == ENFILE) && Evict()) continue;
      accept_later_ = true;  // at the next tick
      return;
    }
    if (connections_.size() >= most_connections_ && !Evict()) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    Open(std::move(fd));
  }
}

bool Gateway::Impl::Evict() {
  HttpConnection* const oldest = silent_.Oldest([](HttpConnection& one) { return one.TakeActive(); });
  if (oldest == nullptr) return false;
  evicted_.fetch_add(1, std::memory_order_relaxed);
  oldest->Close();
  return true;
}

void Gateway::Impl::Open(UniqueFd fd) {
  curtail::internal::SetTcpOptions(fd.get());
  HttpConnection::Owner* const owner = this;
  std::unique_ptr<TlsStream> tls;
  if (options_.tls != nullptr) tls = TlsStream::Server(*options_.tls->context(), /*http1=*/true);
  auto connection = std::make_shared<HttpConnection>(std::move(fd), options_.http, std::move(tls),
                                                     client_.lane(0).poller(), owner);
  connection->place = silent_.Add(connection.get());
  connections_.insert(connection);
  open_.store(connections_.size(), std::memory_order_relaxed);
  if (!connection->Register().ok()) return connection->Close();
  if (last_call_) connection->LastCall();
}

void Gateway::Impl::OnClosed(HttpConnection& connection) {
  silent_.Remove(connection.place);
  connections_.erase(std::static_pointer_cast<HttpConnection>(connection.shared_from_this()));
  open_.store(connections_.size(), std::memory_order_relaxed);
}

void Gateway::Impl::Tick(TimePoint now) {
  next_tick_ = now + kTick;
  if (accept_later_ && listener_->fd) Accept();
  const std::vector<std::shared_ptr<HttpConnection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) {
    const size_t stalled = connection->CutStalled(now, options_.idle_timeout);
    timed_out_.fetch_add(stalled, std::memory_order_relaxed);
    const Nanos silent = now - connection->since();
    const bool idle = connection->codec().in_flight() == 0 && silent > options_.idle_timeout;
    const bool slow = connection->in_request() && silent > options_.request_timeout;
    if (idle || slow) CloseLate(*connection);
  }
  calls_.LookAtStreams();
  if (MayRead()) {
    full_since_ = TimePoint::max();
  } else {
    full_since_ = std::min(full_since_, now);
    MakeRoom(now);
  }
  // Those that read nothing, as all held too much, go on.
  if (MayRead() && std::exchange(paused_, false)) {
    for (const auto& connection : all) connection->Flush();
  }
}

// Ends what makes no progress, first of the connections that hold most.
void Gateway::Impl::MakeRoom(TimePoint now) {
  const bool lasts = now - full_since_ > kStallUnderLoad;
  std::vector<std::shared_ptr<HttpConnection>> holders;
  for (const auto& connection : connections_) {
    if (connection->held() > 0) holders.push_back(connection);
  }
  std::sort(holders.begin(), holders.end(),
            [](const auto& one, const auto& other) { return one->held() > other->held(); });
  for (const auto& connection : holders) {
    if (MayRead()) return;
    const size_t stalled = connection->CutStalled(now, kStallUnderLoad);
    timed_out_.fetch_add(stalled, std::memory_order_relaxed);
    if (lasts && !MayRead() && !connection->RefuseUnfinished()) CloseLate(*connection);
  }
}

void Gateway::Impl::CloseLate(HttpConnection& connection) {
  if (connection.closed()) return;
  timed_out_.fetch_add(1, std::memory_order_relaxed);
  connection.Close();
}

void Gateway::Impl::FlushDirty() {
  const auto dirty = std::exchange(dirty_, {});
  for (const auto& connection : dirty) connection->Within([&] { connection->Flush(); });
  if (long_turns_.empty()) return;
  long_turns_.front()->Within([&] { long_turns_.front()->LongTurn(); });
  long_turns_.pop_front();
}

void Gateway::Impl::OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) {
  requests_.fetch_add(1, std::memory_order_relaxed);
  const AnswerForm form(*transcoder_, WebFormOf(HeaderOf(request, "content-type")));
  const int32_t stream = request.stream;
  Incoming in{std::move(request), {connection, stream, {}, form}};
  if (!internal::MayAsk(in.request, hosts_)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    HttpReply reply = form.Whole(
        absl::PermissionDeniedError("the Host is not a name of this gateway: see --allow-host"), {}, {});
    reply.status = 421;
    return Answer(in.asker, std::move(reply));
  }
  absl::StatusOr<std::string> origin = internal::CheckOrigin(in.request, options_.allowed_origins);
  absl::Status status = origin.status();
  if (origin.ok()) in.asker.origin = *std::move(origin);
  if (status.ok() && internal::IsPreflight(in.request)) {
    return Answer(in.asker, internal::PreflightReply(options_.forward_headers));
  }
  if (status.ok() && calls_.size() >= options_.max_requests) {
    status = absl::UnavailableError("too many requests are in flight");
  }
  if (!status.ok()) refused_.fetch_add(1, std::memory_order_relaxed);
  if (status.ok()) status = Serve(in);
  if (!status.ok()) Fail(in, status);
}

absl::Status Gateway::Impl::Serve(Incoming& in) {
  const auto [path, query] = SplitTarget(in.request.target);
  if (const StaticFiles::File* const file = files_.Find(path)) {
    absl::StatusOr<HttpReply> reply = StaticFiles::Answer(*file, in.request);
    if (reply.ok()) Answer(in.asker, *std::move(reply));
    return reply.status();
  }
  absl::StatusOr<Transcoder::Match> match = transcoder_->Find(in.request.verb, path);
  if (!match.ok()) return match.status();
  in.asker.form.SetRoute(match->route);
  const CatalogMethod& method = match->route->method;
  const std::string_view type = HeaderOf(in.request, "content-type");
  const bool taken = match->route->raw_body || IsMediaType(type, kJson) ||
                     (method.client_streaming && IsMediaType(type, kJsonLines)) ||
                     (options_.accept_forms && method.unary() && IsMediaType(type, kForm));
  if (!in.asker.form.web() && !in.request.body.empty() && !taken) {
    return absl::InvalidArgumentError(
        Join("the body must be ", method.client_streaming ? kJsonLines : kJson, ", or gRPC-Web"));
  }
  auto metadata = internal::MetadataOf(in.request, options_.forward_headers, in.asker.client());
  if (!metadata.ok()) return metadata.status();
  if (options_.max_rate > 0) {
    if (const Nanos wait = bucket_.Take(Now()); wait > Nanos::zero()) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      Answer(in.asker, in.asker.form.TooMany(wait));
      return absl::OkStatus();
    }
  }
  return calls_.Begin(in, *std::move(match), query, *std::move(metadata));
}

void Gateway::Impl::Fail(const Incoming& in, const absl::Status& status) {
  const bool wrong_verb = status.code() == absl::StatusCode::kUnimplemented && !in.asker.form.route();
  if (in.asker.form.web() || !wrong_verb) return Answer(in.asker, in.asker.form.Whole(status, {}, {}));
  Answer(in.asker, in.asker.form.WrongVerb(Message(status)));
}

void Gateway::Impl::OnStreamEnd(const absl::Status& status) {
  if (HttpStatusOf(status.code()) >= 500) failed_.fetch_add(1, std::memory_order_relaxed);
}

void Gateway::Impl::Answer(const Asker& asker, HttpReply reply) {
  const std::shared_ptr<HttpConnection> connection = asker.connection.lock();
  if (connection == nullptr || connection->closed()) return;
  const size_t size = reply.body.size();
  if (connection->held() + size > HttpConnection::kLittle && held() > 0 && held() + size > share()) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    // The call may have had its effect: UNAVAILABLE would ask for it again.
    reply = asker.form.Whole(absl::ResourceExhaustedError("the gateway holds too much to keep the answer"),
                             {}, {});
  }
  if (reply.status >= 500) failed_.fetch_add(1, std::memory_order_relaxed);
  reply.headers.emplace_back("x-content-type-options", "nosniff");
  if (!options_.allowed_origins.empty()) reply.headers.emplace_back("vary", "origin");
  if (!asker.origin.empty()) {
    reply.headers.emplace_back("access-control-allow-origin", asker.origin);
    reply.headers.emplace_back("access-control-expose-headers", "grpc-status, grpc-message");
  }
  connection->Reply(asker.stream, std::move(reply));
  OnOutput(connection);
}

void Gateway::Impl::OnOutput(const std::shared_ptr<HttpConnection>& connection) {
  if (!std::exchange(connection->dirty, true)) dirty_.push_back(connection);
}

size_t UsualHeldBytes(const std::string& root) {
  constexpr double kMost = 256u << 20;
  return static_cast<size_t>(std::min(kMost, MemoryLimit(root) / 2));
}

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(GatewayOptions options, Catalog catalog) {
  if (absl::Status keys = internal::MakeKeys(&options.forward_headers); !keys.ok()) return keys;
  options.channel.stream_window_bytes = std::min(options.channel.stream_window_bytes, kTargetWindow);
  if (const std::vector<std::string> methods = catalog.IdempotentMethods();
      !methods.empty() && options.channel.service_config.empty()) {
    options.channel.service_config = RetryConfig(options.retries, methods);
  }
  absl::StatusOr<std::unique_ptr<Transcoder>> transcoder =
      Transcoder::Make(std::move(catalog), options.services);
  if (!transcoder.ok()) return transcoder.status();
  for (const std::string& warning : (*transcoder)->warnings())
    Log(Severity::kWarning, warning, {}, "curtail-gateway");
  absl::StatusOr<StaticFiles> files = StaticFiles::Make(std::exchange(options.files, {}));
  if (!files.ok()) return files.status();
  for (const std::string_view path : files->paths()) {
    if (absl::IsNotFound((*transcoder)->Find("GET", path).status())) continue;
    return absl::InvalidArgumentError(Join("the file at ", path, " hides a method's path"));
  }
  const absl::StatusOr<Address> address = Address::Resolve(options.listen);
  if (!address.ok()) return address.status();
  absl::StatusOr<UniqueFd> listener = curtail::internal::Listen(*address);
  if (!listener.ok()) return listener.status();
  auto impl = std::make_unique<Impl>(std::move(options), *std::move(transcoder), *std::move(files),
                                     *std::move(listener));
  if (absl::Status status = impl->Begin(); !status.ok()) return status;
  return std::unique_ptr<Gateway>(new Gateway(std::move(impl)));
}

Gateway::Gateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Gateway::~Gateway() { impl_->Stop(Deadline::In(Nanos::zero())); }
const std::string& Gateway::address() const { return impl_->address(); }
size_t Gateway::route_count() const { return impl_->route_count(); }
GatewayStats Gateway::stats() const { return impl_->stats(); }
void Gateway::LastCall() { impl_->LastCall(); }
bool Gateway::Stop(Deadline deadline) { return impl_->Stop(deadline); }

}  // namespace curtail::gateway
