// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The executor's threads call in here to wait for events and to handle them; connections call in to
// find their methods and to count. Drain is a sequence, run by the thread that called it while the pools go
// on working:
//
//  D0  The policy's timer ends. Requests that still come may still switch the config.
//  D1  Listeners are closed: nobody connects any more. A connection accepted at that moment is told goodbye
//      as well.
//  D2  Every connection warns its client, which then opens new streams elsewhere. After the time that streams
//      already on their way need, it sends the GOAWAY that refuses later ones, and closes itself after its
//      last stream.
//  D3  The drainer waits until no connection is left, or the deadline.
//  D4  What is left is aborted: streams end, their contexts are cancelled, replies go nowhere.
//  D5  The pools stop. A handler that ignores its cancellation is waited for a little, then reported.
#include "curtail/rpc/server/server_core.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "curtail/base/strings.h"
#include "curtail/rpc/server/server_call.h"

namespace curtail::internal {
namespace {

// How long output may wait for more to share its write, besides kPriceOfSend for each connection.
constexpr Nanos kMaxHold = std::chrono::microseconds(50);
// D2: from the warning to the GOAWAY; some round trips.
constexpr Nanos kNoticeTime = std::chrono::milliseconds(10);
// D5: how long a cancelled handler has to return.
constexpr Nanos kStopGrace = std::chrono::seconds(1);

std::string PeerName(int fd) {
  Address address;
  address.size = sizeof address.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) return "?";
  return address.ToString();
}

// Connections are file descriptors: use all that the hard limit allows.
void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Messages of 64 KiB and more are allocated and freed by the thousand. Left alone, glibc gives the memory back to the
// kernel each time, and the page faults cost more than the copying.
void KeepFreedMemory() {
#ifdef __GLIBC__
  constexpr int kKept = 64 << 20;
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
#endif
}

}  // namespace

// Accepts. Keeps a spare descriptor, so that when they run out a connection can still be accepted and closed
// instead of waiting in the backlog without an answer.
class ServerCore::Listener final : public PollHandler {
 public:
  Listener(ServerCore* core, UniqueFd fd) : core_(core), fd_(std::move(fd)), spare_(OpenSpare()) {}

  // Starts to accept.
  absl::Status Register(std::shared_ptr<Listener> self) {
    MutexLock lock(mu_);
    return core_->shared_poller()->Add(fd_.get(), std::move(self));
  }

  void OnEvents(uint32_t events, TaskList*) override {
    if (!(events & EPOLLIN)) return;
    MutexLock lock(mu_);
    if (!spare_) spare_.Reset(OpenSpare());
    for (int i = 0; fd_ && i < kAcceptBatch; ++i) {
      const int accepted = accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (accepted >= 0) {
        core_->Accepted(UniqueFd(accepted));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return;
      } else if ((errno == EMFILE || errno == ENFILE) && spare_) {
        spare_.Reset();
        UniqueFd refused(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        refused.Reset();
        spare_.Reset(OpenSpare());
      }
      // Any other error is that connection's own (accept(2)), or passes.
    }
    if (fd_) core_->shared_poller()->Rearm(fd_.get());  // let others have a turn
  }

  void Close() {
    MutexLock lock(mu_);
    if (!fd_) return;
    core_->shared_poller()->Remove(fd_.get());
    const std::string address = BoundAddress(fd_.get());
    fd_.Reset();
    if (address.starts_with("unix:")) unlink(address.c_str() + 5);
  }

 private:
  static constexpr int kAcceptBatch = 64;

  static int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

  ServerCore* const core_;
  Mutex mu_;
  UniqueFd fd_ CURTAIL_GUARDED_BY(mu_);
  UniqueFd spare_ CURTAIL_GUARDED_BY(mu_);
};

ServerCore::ServerCore(ServerOptions options) : options_(std::move(options)) {
  session_options_.max_message_bytes = options_.max_message_bytes;
  session_options_.max_partial_bytes =
      std::max(session_options_.max_partial_bytes, options_.max_message_bytes);
}

ServerCore::~ServerCore() {
  for (const auto& connection : Connections()) connection->Kick(Connection::kAbort, nullptr);
  if (executor_ == nullptr) return;
  if (adaptation_ != nullptr) adaptation_->Stop();
  TaskList left_over;
  executor_->Stop(Deadline::Infinite(), &left_over);
  while (Task* task = left_over.Pop()) task->Drop();
  for (size_t i = 0; i < held_.size(); ++i) Flush(static_cast<uint32_t>(i));
}

absl::Status ServerCore::AddService(std::unique_ptr<Service> service) {
  for (MethodHandler& method : service->Handlers()) {
    std::string path = Join("/", service->FullName(), "/", method.name);
    const auto [place, added] = methods_.try_emplace(path);
    MethodHandler& served = place->second.handler;
    place->second.path = place->first;
    if (added) {
      served = std::move(method);
    } else if (!served.handler && method.handler) {
      served.handler = std::move(method.handler);
    } else if (!served.continuation && method.continuation) {
      served.continuation = std::move(method.continuation);  // its straight-line form, if any, is not needed
    } else {
      return absl::InvalidArgumentError(Join("method ", path, " is served twice"));
    }
  }
  services_.push_back(std::move(service));
  return absl::OkStatus();
}

absl::Status ServerCore::CheckModel(const Config& config) const {
  const bool async = config.model.waiting == Waiting::kAsync;
  for (const auto& [path, method] : methods_) {
    const MethodHandler& handler = method.handler;
    if (async && !handler.continuation && !handler.never_waits) {
      return absl::InvalidArgumentError(Join(
          "config ", config.ToString(), ": ", path,
          " has a straight-line handler; asynchronous models need a coroutine or a continuation handler"));
    }
    if (!async && !handler.handler) {
      return absl::InvalidArgumentError(
          Join("config ", config.ToString(), ": ", path,
               " has a continuation handler only, which runs under asynchronous models (A...)"));
    }
  }
  return absl::OkStatus();
}

absl::Status ServerCore::SwitchTo(const Config& config) {
  if (told_ != nullptr) {
    return absl::FailedPreconditionError(
        Join("the policy ", options_.policy,
             " chooses this server's config; to choose it by hand, start the server with the policy static:",
             config.ToString()));
  }
  if (absl::Status checked = CheckModel(config); !checked.ok()) return checked;
  return executor_->SwitchTo(config);
}

absl::Status ServerCore::Bind() {
  RaiseDescriptorLimit();
  KeepFreedMemory();
  if (!poller_->status().ok()) return poller_->status();
  if (!response_.poller().status().ok()) return response_.poller().status();
  if (options_.listen.empty()) return absl::InvalidArgumentError("no address to listen on");
  for (const std::string& text : options_.listen) {
    absl::StatusOr<Address> address = Address::Resolve(text);
    if (!address.ok()) return absl::InvalidArgumentError(address.status().message());
    absl::StatusOr<UniqueFd> fd = Listen(*address);
    if (!fd.ok()) return fd.status();
    addresses_.push_back(BoundAddress(fd->get()));
    listeners_.push_back(std::make_shared<Listener>(this, *std::move(fd)));
  }
  return absl::OkStatus();
}

absl::Status ServerCore::Run() {
  std::vector<std::string> names;
  for (const auto& service : services_) names.emplace_back(service->FullName());
  auto adaptation = Adaptation::Make(options_, names, [this](const Config& c) { return CheckModel(c).ok(); });
  if (!adaptation.ok()) return adaptation.status();
  adaptation_ = *std::move(adaptation);
  const Config& config = adaptation_ == nullptr ? options_.config : adaptation_->first_config();
  if (absl::Status checked = CheckModel(config); !checked.ok()) return checked;
  const int threads = std::max(options_.max_threads, config.network + config.workers + config.response);
  held_ = std::vector<Held>(threads);
  const ExecutorOptions pools{
      .max_threads = static_cast<uint32_t>(threads),
      .fiber = {.stack_bytes = options_.fiber_stack_bytes, .max_live = options_.max_fibers},
      .watcher = adaptation_ == nullptr ? nullptr : adaptation_->watcher()};
  executor_ = std::make_unique<Executor>(config, pools, this, this, &response_);
  if (!executor_->status().ok()) return executor_->status();
  if (adaptation_ != nullptr) {
    if (absl::Status started = adaptation_->Start(executor_.get()); !started.ok()) return started;
    if (adaptation_->switches()) told_ = adaptation_.get();
  }
  for (const auto& listener : listeners_) {
    if (absl::Status added = listener->Register(listener); !added.ok()) return added;
  }
  return absl::OkStatus();
}

ServerCore::Method* ServerCore::FindMethod(std::string_view path) {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : &found->second;
}

void ServerCore::Accepted(UniqueFd fd) {
  SetTcpOptions(fd.get());
  std::string peer = PeerName(fd.get());
  std::unique_ptr<TlsStream> tls;
  if (options_.tls != nullptr) tls = TlsStream::Server(options_.tls->context());
  auto connection = std::make_shared<ServerConnection>(this, session_options_, std::move(fd), std::move(tls),
                                                       std::move(peer));
  bool draining = false;
  {
    MutexLock lock(mu_);
    if (connections_.size() >= static_cast<size_t>(options_.max_connections)) return;  // closes it
    connections_.emplace(connection.get(), connection);
    draining = draining_;
  }
  if (!connection->Register().ok()) return Closed(connection.get());
  if (draining) Kick(*connection, Connection::kDrain);  // D1
}

void ServerCore::Closed(ServerConnection* connection) {
  std::shared_ptr<ServerConnection> last;  // destroyed outside the lock
  MutexLock lock(mu_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  last = std::move(found->second);
  connections_.erase(found);
  if (draining_ && connections_.empty()) drained_.Notify();
}

bool ServerCore::TryQueue(size_t bytes) {
  const size_t requests = queued_.fetch_add(1, std::memory_order_relaxed);
  const size_t queued = queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  // One request always fits, however large.
  if (requests < options_.max_queue && (requests == 0 || queued + bytes <= options_.max_queue_bytes))
    return true;
  Dequeued(bytes);
  return false;
}

void ServerCore::BeforeHandler(const Method& method, const WaitHint& hint) {
  // What is held need not wait for a handler that will take longer than the writes.
  if (method.took() >= held_[hint.thread_index].handlers.size() * kPriceOfSend) Flush(hint.thread_index);
}

void ServerCore::Output(std::shared_ptr<ServerConnection> connection) {
  const WaitHint& hint = CurrentWait();
  if (hint.outbox != this) return Kick(*connection, Connection::kPosted);
  if (!hint.more_ready && held_[hint.thread_index].handlers.empty()) {
    return Kick(*connection, Connection::kPosted);
  }
  Hold(hint.thread_index, std::move(connection));
  if (hint.more_ready) return FlushIfDue(hint.thread_index);
  Flush(hint.thread_index);
}

void ServerCore::Hold(uint32_t thread_index, std::shared_ptr<PollHandler> handler) {
  static std::atomic<uint64_t> lists{0};
  Held& held = held_[thread_index];
  if (held.handlers.empty()) {
    held.since = Now();
    held.list = lists.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  if (handler->held_in.load(std::memory_order_relaxed) == held.list) return;
  handler->held_in.store(held.list, std::memory_order_relaxed);
  held.handlers.push_back(std::move(handler));
}

void ServerCore::FlushIfDue(uint32_t thread_index) {
  const Held& held = held_[thread_index];
  if (held.handlers.empty()) return;
  if (Now() - held.since > kMaxHold + held.handlers.size() * kPriceOfSend) Flush(thread_index);
}

void ServerCore::Flush(uint32_t thread_index) {
  Held& held = held_[thread_index];
  if (held.handlers.empty()) return;
  TaskList ready;
  for (const auto& handler : held.handlers) handler->OnEvents(0, &ready);
  held.handlers.clear();
  if (!ready.empty()) executor_->Submit(ready);
}

void ServerCore::Kick(Connection& connection, uint32_t bits) {
  TaskList ready;
  connection.Kick(bits, &ready);
  if (!ready.empty()) executor_->Submit(ready);
}

void ServerCore::Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) {
  poller_->Wait(deadline, spin, events);
}

void ServerCore::Handle(const std::vector<Poller::Ready>& events, TaskList* ready) {
  for (const Poller::Ready& event : events) event.handler->OnEvents(event.events, ready);
}

std::vector<std::shared_ptr<ServerConnection>> ServerCore::Connections() {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<ServerConnection>> all;
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
}

bool ServerCore::WaitForConnections(Deadline deadline) {
  while (true) {
    const uint32_t ticket = drained_.Ticket();
    {
      MutexLock lock(mu_);
      if (connections_.empty()) return true;
    }
    if (deadline.Expired()) return false;
    drained_.Wait(ticket, deadline);
  }
}

ServerStats ServerCore::Sample(bool process) {
  ServerStats stats{.pools = executor_->Sample(), .open_calls = open_calls_.load(std::memory_order_relaxed)};
  if (process) stats.process = ReadThreadStats().value_or(ThreadStats());
  if (adaptation_ != nullptr) stats.policy = adaptation_->Stats();
  MutexLock lock(mu_);
  stats.connections = connections_.size();
  return stats;
}

absl::Status ServerCore::Drain(Deadline deadline) {
  if (adaptation_ != nullptr) adaptation_->Stop();            // D0
  for (const auto& listener : listeners_) listener->Close();  // D1
  {
    MutexLock lock(mu_);
    draining_ = true;
  }
  for (const auto& connection : Connections()) Kick(*connection, Connection::kNotice);  // D2
  WaitForConnections(std::min(deadline, Deadline::In(kNoticeTime)));
  for (const auto& connection : Connections()) Kick(*connection, Connection::kDrain);
  size_t cut_off = 0;
  if (!WaitForConnections(deadline)) {  // D3
    cut_off = open_calls_.load(std::memory_order_relaxed);
    for (const auto& connection : Connections()) Kick(*connection, Connection::kAbort);  // D4
  }
  TaskList left_over;
  const bool stopped = executor_->Stop(Deadline::In(kStopGrace), &left_over);  // D5
  while (Task* task = left_over.Pop()) task->Drop();
  if (!stopped) return absl::AbortedError("a handler did not return although its request was cancelled");
  for (size_t i = 0; i < held_.size(); ++i) Flush(static_cast<uint32_t>(i));
  if (cut_off == 0) return absl::OkStatus();
  return absl::DeadlineExceededError(Join(cut_off, " request(s) were cut off"));
}

ServerConnection::ServerConnection(ServerCore* core, const wire::SessionOptions& options, UniqueFd fd,
                                   std::unique_ptr<TlsStream> tls, std::string peer)
    : Connection(wire::Role::kServer, options, std::move(fd), core->shared_poller(), /*connected=*/true,
                 std::move(tls)),
      core_(core),
      peer_(std::move(peer)) {}

void ServerConnection::HandleOp(Op* op) {
  auto* reply = static_cast<ServerCall::Reply*>(op);
  reply->call->Send(*reply, session());
}

void ServerConnection::HandleGoodbye(uint32_t bits) {
  if (bits & kDrain) {
    session().SendGoaway();
  } else {
    session().SendShutdownNotice();
  }
}

void ServerConnection::OnClosed(const absl::Status&, bool) { core_->Closed(this); }

void* ServerConnection::OnRequest(wire::StreamId id, wire::RequestHead&& head) {
  ServerCore::Method* method = core_->FindMethod(head.path);
  if (method == nullptr) {
    session().EndCall(id, absl::UnimplementedError(Join("unknown method ", head.path)));
    return nullptr;
  }
  return ServerCall::New(std::static_pointer_cast<ServerConnection>(shared_from_this()), method, id, head,
                         now());
}

void ServerConnection::OnMessage(wire::StreamId, void* tag, std::string&& message) {
  if (tag == nullptr) return;
  auto* call = static_cast<ServerCall*>(tag);
  if (call->OnMessage(std::move(message))) Queue(*call);
}

void ServerConnection::OnRequestEnd(wire::StreamId, void* tag) {
  if (tag == nullptr) return;
  auto* call = static_cast<ServerCall*>(tag);
  if (call->OnRequestEnd()) Queue(*call);
}

void ServerConnection::Queue(ServerCall& call) {
  if (core_->TryQueue(call.queued_bytes())) return ready()->Push(&call);
  call.Refuse(absl::ResourceExhaustedError("too many requests are waiting on this server"), session());
  call.Drop();
}

void ServerConnection::OnCallEnd(wire::StreamId, void* tag, absl::Status&& status, Metadata&&) {
  if (tag != nullptr) static_cast<ServerCall*>(tag)->OnStreamEnd(status.ok());
}

}  // namespace curtail::internal
