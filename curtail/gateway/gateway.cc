// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: one thread runs everything, but for what G3 says: the sockets of the clients are watched by the poller of the
// Client that calls the target. The protocol:
//  G1. All fields belong to that thread but those named atomic. LastCall() and Stop() set `leaving_` and `stopping_`, and wake
//      the thread.
//  G2. A request becomes one of the TargetCalls, or is answered at once.
//  G3. An answer makes its connection dirty. Dirty connections send after each poll, so answers that come together
//      share a write. A connection's turn is short (http_connection.cc); with more to do, it is dirty again. The more
//      connections want turns, the shorter these are. A long message, which costs milliseconds, is put into its form by
//      another thread, one at a time (aside.h); connections with long requests wait for that in line. The listener
//      accepts a batch of connections at a time, and has its next turn in a later poll.
//  G4. Each bound has its place: connections in Clients::Accept(), requests in OnRequest(), time in Clients::Look(). Bytes
//      have two shares. That of requests on their way to the target is kept by refusing more (target_calls.cc): only the
//      target can free them. The other has three steps. Streams that lag fill half of it, MayStream(); each is bounded, too
//      (stream_call.cc). Requests are read up to three quarters, MayRead(), beyond which Clients::MakeRoom() ends what makes
//      no progress. The last quarter is for whole answers, MayAnswer(). A connection that holds little is served beyond all
//      of it, so newcomers are.
#include "curtail/gateway/gateway.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "curtail/base/boundary.h"
#include "curtail/base/log.h"
#include "curtail/base/memory.h"
#include "curtail/base/strings.h"
#include "curtail/gateway/grpc_web.h"
#include "curtail/gateway/internal/answer_form.h"
#include "curtail/gateway/internal/clients.h"
#include "curtail/gateway/internal/request_rules.h"
#include "curtail/gateway/internal/target_calls.h"
#include "curtail/gateway/internal/token_bucket.h"
#include "curtail/gateway/transcoder.h"
#include "curtail/rpc/call/lane.h"
#include "curtail/rpc/retries.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::gateway {
namespace {

using curtail::internal::UniqueFd;
using internal::AnswerForm;
using internal::Asker;
using internal::Clients;
using internal::HeaderOf;
using internal::HttpConnection;
using internal::Incoming;
using internal::kJson;
using internal::kJsonLines;
using internal::SplitTarget;
using internal::TargetCalls;

constexpr Nanos kTick = std::chrono::milliseconds(100);
// The target sends so much of an answer ahead of its reader.
constexpr uint32_t kTargetWindow = 256u << 10;

}  // namespace

class Gateway::Impl final : private Clients::Owner, private TargetCalls::Owner {
 public:
  Impl(GatewayOptions options, std::unique_ptr<Transcoder> transcoder, StaticFiles files, UniqueFd listener)
      : options_(std::move(options)),
        transcoder_(std::move(transcoder)),
        files_(std::move(files)),
        hosts_(internal::HostsOf(options_)),
        channel_(&client_, options_.target, options_.channel),
        clients_(options_, std::move(listener), client_.lane(0).poller(), this),
        calls_(options_, *transcoder_, &channel_, this, [this] { client_.Wake(); }),
        bucket_(options_.max_rate > 0 ? options_.max_rate : 1,
                options_.max_burst > 0 ? options_.max_burst : std::max(1.0, options_.max_rate)) {}

  absl::Status Begin();
  void LastCall();
  bool Stop(Deadline deadline);

  const std::string& address() const { return clients_.address(); }
  size_t route_count() const { return transcoder_->routes().size(); }
  GatewayStats stats() const;

 private:
  void Run();
  void Turn();
  Deadline NextLook() const;
  // Stop() was called. True: all is done, or out of time.
  bool Drained(TimePoint now);
  void OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) override;
  void OnHeld(ptrdiff_t change) override { clients_.OnHeld(change); }
  void OnUnderWay(ptrdiff_t change) override { calls_.AddUnderWay(change); }
  bool MayRead() const override { return clients_.MayRead(); }
  bool MayStream() const override { return clients_.MayStream(); }
  void Answer(const Asker& asker, HttpReply reply) override;
  void OnOutput(const std::shared_ptr<HttpConnection>& connection) override { clients_.OnOutput(connection); }
  void OnStreamEnd(const absl::Status& status) override;
  void OnCutShort() override { clients_.OnLate(); }
  void OnRetry() override { retried_.fetch_add(1, std::memory_order_relaxed); }
  void OnCancelled() override { cancelled_.fetch_add(1, std::memory_order_relaxed); }
  void OnRefused() override { clients_.OnRefused(1); }

  absl::Status Serve(Incoming& in);
  void Fail(const Incoming& in, const absl::Status& status);

  // Immutable after construction.
  const GatewayOptions options_;
  const std::unique_ptr<Transcoder> transcoder_;
  const StaticFiles files_;
  const internal::Hosts hosts_;

  Client client_;
  Channel channel_;
  Clients clients_;
  TargetCalls calls_;
  internal::TokenBucket bucket_;  // with max_rate
  bool reply_is_next_ = false;
  bool last_call_ = false;
  bool draining_ = false;

  // Atomic: set once by LastCall().
  std::atomic<bool> leaving_{false};
  // Atomic: set once by Stop(), the times first (release), and read by the thread (acquire).
  std::atomic<bool> stopping_{false};
  std::atomic<TimePoint::rep> stop_by_{0}, end_streams_at_{0};
  std::atomic<bool> all_answered_{true};  // read after the join
  // Atomic: counters; relaxed.
  std::atomic<uint64_t> requests_{0}, failed_{0}, retried_{0}, cancelled_{0};

  std::thread thread_;
};

absl::Status Gateway::Impl::Begin() {
  if (absl::Status status = client_.lane(0).poller()->status(); !status.ok()) return status;
  if (absl::Status status = clients_.Begin(); !status.ok()) return status;
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
  GatewayStats stats{.requests = requests_.load(kRelaxed),
                     .failed = failed_.load(kRelaxed),
                     .retried = retried_.load(kRelaxed),
                     .cancelled = cancelled_.load(kRelaxed)};
  clients_.Count(&stats);
  return stats;
}

Deadline Gateway::Impl::NextLook() const {
  const bool long_ones = clients_.want_long_turns() || calls_.owes_long();
  if (clients_.want_turns() || (long_ones && !calls_.busy())) return Deadline::At(TimePoint());
  return std::min(Deadline::In(kTick), calls_.first_deadline());
}

void Gateway::Impl::Run() {
  do {
    Contain("gateway", [this] { Turn(); });
  } while (!stopping_.load(std::memory_order_acquire) || !Drained(Now()));
  clients_.CloseAll();
  // Calls end with their connections; their completions run in a later Poll().
  while (calls_.size() > 0) {
    client_.Poll(Deadline::In(kTick));
    calls_.Collect();
    if (!calls_.busy()) calls_.AnswerLong();
    calls_.LookAtStreams();
  }
}

void Gateway::Impl::Turn() {
  client_.Poll(NextLook());
  calls_.ExpireStreams();
  calls_.Collect();
  clients_.GiveTurns();
  // Long requests and long replies take turns.
  for (int i = 0; i < 2 && !calls_.busy(); ++i) {
    if (std::exchange(reply_is_next_, !reply_is_next_)) {
      calls_.AnswerLong();
    } else {
      clients_.GiveLongTurn();
    }
  }
  if (clients_.Look(Now())) calls_.LookAtStreams();
  if (leaving_.load(std::memory_order_relaxed) && !std::exchange(last_call_, true)) clients_.LastCall();
}

bool Gateway::Impl::Drained(TimePoint now) {
  const auto passed = [now](const std::atomic<TimePoint::rep>& when) {
    return now.time_since_epoch().count() >= when.load(std::memory_order_relaxed);
  };
  if (!std::exchange(draining_, true)) clients_.Drain();
  if (calls_.size() == 0 && clients_.empty()) return true;
  if (passed(end_streams_at_)) calls_.EndStreams(absl::UnavailableError("the gateway is going away"));
  if (!passed(stop_by_)) return false;
  all_answered_.store(calls_.size() == 0, std::memory_order_relaxed);
  return true;
}

void Gateway::Impl::OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) {
  requests_.fetch_add(1, std::memory_order_relaxed);
  const AnswerForm form(*transcoder_, WebFormOf(HeaderOf(request, "content-type")));
  const int32_t stream = request.stream;
  Incoming in{std::move(request), {connection, stream, {}, form}};
  if (!internal::MayAsk(in.request, hosts_)) {
    clients_.OnRefused(1);
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
  if (!status.ok()) clients_.OnRefused(1);
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
      clients_.OnRefused(1);
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
  if (!clients_.MayAnswer(*connection, size)) {
    clients_.OnRefused(1);
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

size_t UsualHeldBytes(const std::string& root) {
  constexpr double kMost = 256u << 20;
  return static_cast<size_t>(std::min(kMost, MemoryLimit(root) / 2));
}

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(GatewayOptions options, Catalog catalog) {
  if (absl::Status good = CheckOptions(options); !good.ok()) return good;
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
