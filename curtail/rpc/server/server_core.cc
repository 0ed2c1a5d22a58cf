// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The executor's threads call in here to wait for events and to handle them; connections and calls use the
// parts. Drain is a sequence, run by the thread that called it while the pools go on working:
//
//  D0  The policy's timer ends. Requests that still come may still switch the config.
//  D1  Listeners are closed: nobody connects any more. A connection accepted at that moment is told goodbye
//      as well.
//  D2  Every connection warns its client, which then opens new streams elsewhere. After the time that streams
//      already on their way need, it sends the GOAWAY that refuses later ones, and closes itself after its
//      last stream.
//  D3  The drainer waits until no connection is left, or the deadline.
//  D4  What is left is aborted: streams end, their contexts are cancelled, replies go nowhere.
//  D5  The pools stop. A handler that ignores its cancellation is waited for until the deadline, and for kStopGrace at
//      least, then reported.
#include "curtail/rpc/server/server_core.h"

#include <malloc.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "curtail/adapt/policy_kind.h"
#include "curtail/base/cpus.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/exec/internal/fair_order.h"
#include "curtail/exec/internal/fifo_order.h"
#include "curtail/exec/internal/priority_gate.h"
#include "curtail/exec/internal/spin_budget.h"
#include "curtail/rpc/server/adaptation/profile_file.h"
#include "curtail/rpc/server/server_connection.h"
#include "curtail/wire/metadata.h"

namespace curtail::internal {
namespace {

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

// Messages of 64 KiB and more are allocated and freed by the thousand. Left alone, glibc gives the memory back to the
// kernel each time, and the page faults cost more than the copying. It keeps that much for each arena, and
// malloc_trim() does not return the end of one: so there are as many arenas as CPUs, unless the environment says.
void KeepFreedMemory() {
#ifdef __GLIBC__
  constexpr int kKept = 64 << 20;
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
  if (std::getenv("MALLOC_ARENA_MAX") == nullptr) mallopt(M_ARENA_MAX, std::max(2, UsableCpus()));
#endif
}

void WarnOfBlocking(const TaskKind& kind) {
  Log(Severity::kWarning,
      Join(
          kind.name,
          " sleeps outside of curtail's waits, in a lock, a file or a blocking call; from now on each of its "
          "calls has a thread of its own"),
      {{"path", kind.name}});
}

}  // namespace

ServerCore::ServerCore(ServerOptions options) : options_(std::move(options)), parts_(options_) {}

ServerCore::~ServerCore() {
  for (const auto& connection : parts_.connections.All()) connection->Kick(Connection::kAbort, nullptr);
  if (executor_ == nullptr) return;
  if (adaptation_ != nullptr) adaptation_->Stop();
  parts_.output.StopMessages();
  TaskList left_over;
  executor_->Stop(Deadline::Infinite(), &left_over);
  while (Task* task = left_over.Pop()) task->Drop();
  parts_.output.FlushAll();
}

absl::Status ServerCore::SwitchTo(const Config& config) {
  if (adaptation() != nullptr) {
    return absl::FailedPreconditionError(
        Join("the policy ", options_.policy,
             " chooses this server's config; to choose it by hand, start the server with the policy ",
             FixedPolicy(config)));
  }
  if (absl::Status checked = parts_.methods.CheckModel(config); !checked.ok()) return checked;
  return executor_->SwitchTo(config);
}

absl::Status ServerCore::Bind() {
  RaiseDescriptorLimit();
  KeepFreedMemory();
  if (!poller_->status().ok()) return poller_->status();
  if (!response_.poller().status().ok()) return response_.poller().status();
  if (options_.listen.empty()) return absl::InvalidArgumentError("no address to listen on");
  if (absl::Status checked = options_.queue.Check(); !checked.ok()) return checked;
  if (absl::Status checked = options_.priorities.Check(); !checked.ok()) return checked;
  if (absl::Status checked = options_.admission.Check(); !checked.ok()) return checked;
  if (absl::Status checked = options_.fence.Check(); !checked.ok()) return checked;
  for (const std::string& key : options_.forward_metadata) {
    if (wire::IsCustomKey(key)) continue;
    return absl::InvalidArgumentError(
        Join("cannot forward metadata \"", key,
             "\": a key has a-z, 0-9, '-', '_' and '.', and is not gRPC's own"));
  }
  for (const std::string& text : options_.listen) {
    absl::StatusOr<Address> address = Address::Resolve(text);
    if (!address.ok()) return absl::InvalidArgumentError(address.status().message());
    absl::StatusOr<UniqueFd> fd = Listen(*address);
    if (!fd.ok()) return fd.status();
    addresses_.push_back(BoundAddress(fd->get()));
    listeners_.push_back(
        std::make_shared<Listener>(*std::move(fd), poller_, parts_.clock, [this](UniqueFd accepted) {
          if (accepted) return Accepted(std::move(accepted));
          parts_.limits.Reached(ServerLimit::kDescriptors, "all of them");
          Evict();
        }));
  }
  return absl::OkStatus();
}

absl::Status ServerCore::Run() {
  if (options_.config.stand_ins && !parts_.methods.CheckModel(options_.config).ok()) {
    options_.config = *Config::Parse("AIB1-1");
  }
  const absl::StatusOr<std::optional<Profile>> profile =
      ReadServerProfile(options_, parts_.methods.ServiceNames());
  if (!profile.ok()) return profile.status();
  auto adaptation = Adaptation::Make(options_, *profile ? &**profile : nullptr,
                                     [this](const Config& c) { return parts_.methods.CheckModel(c).ok(); });
  if (!adaptation.ok()) return adaptation.status();
  adaptation_ = *std::move(adaptation);
  if (parts_.fence != nullptr) {
    if (*profile) parts_.fence->BeginWith(LimitsOf(**profile));
    for (ServedMethod* method : parts_.methods.InOrder()) {
      parts_.fence->AddMethod(method->path, method->handler, method->calls, &method->kind);
    }
    if (absl::Status known = parts_.fence->CheckLimits(); !known.ok()) return known;
  }
  if (absl::Status started = StartExecutor(); !started.ok()) return started;
  std::vector<CallObserver*> observers = options_.observers;
  if (adaptation_ != nullptr) {
    if (absl::Status started = adaptation_->Start(executor_.get()); !started.ok()) return started;
    if (adaptation_->switches()) observers.push_back(adaptation_.get());
  }
  for (CallObserver* observer : observers) {
    if (absl::Status added = parts_.observers.Add(observer); !added.ok()) return added;
  }
  if (absl::Status added = parts_.clock->Register(parts_.clock, *poller_); !added.ok()) return added;
  parts_.budget.OnRise([this] { housekeeper_->Rouse(); });
  housekeeper_->Start();
  if (options_.fence.follows()) {
    fence_limits_ =
        std::make_shared<FenceLimits>(&parts_.fence->fence(), parts_.clock.get(), executor_.get());
    fence_limits_->Start();
  }
  for (const auto& listener : listeners_) {
    if (absl::Status added = listener->Register(listener); !added.ok()) return added;
  }
  return absl::OkStatus();
}

absl::Status ServerCore::StartExecutor() {
  const Config& config = adaptation_ == nullptr ? options_.config : adaptation_->first_config();
  if (absl::Status checked = parts_.methods.CheckModel(config); !checked.ok()) return checked;
  // With one that has no role: reflection is a stream, which takes a thread under synchronous models.
  const int threads = std::max(options_.max_threads, config.threads() + 1);
  ExecutorOptions pools{.max_threads = static_cast<uint32_t>(threads),
                        .fiber = {.stack_bytes = options_.fiber_stack_bytes, .max_live = options_.max_fibers},
                        .watcher = adaptation_ == nullptr ? nullptr : adaptation_->watcher(),
                        .on_blocking = WarnOfBlocking};
  pools.order = [this] {
    const bool plain = parts_.fence == nullptr && !options_.queue.any();
    std::unique_ptr<Order> order = plain                     ? MakeFairOrder()
                                   : parts_.fence == nullptr ? MakeFifoOrder(options_.queue)
                                                             : parts_.fence->NewOrder();
    if (parts_.priorities == nullptr) return order;
    return MakePriorityGate(parts_.priorities.get(), std::move(order));
  };
  executor_ = std::make_unique<Executor>(config, pools, this, &parts_.output, &response_);
  parts_.output.SubmitTo(executor_.get());
  if (parts_.fence != nullptr) parts_.fence->SubmitTo(executor_.get());
  return executor_->status();
}

void ServerCore::Accepted(UniqueFd fd) {
  SetTcpOptions(fd.get());
  std::string peer = PeerName(fd.get());
  std::unique_ptr<TlsStream> tls;
  if (options_.tls != nullptr) tls = TlsStream::Server(*options_.tls->context());
  const auto connection =
      std::make_shared<ServerConnection>(parts_, std::move(fd), poller_, std::move(tls), std::move(peer));
  const ConnectionSet::Added added = parts_.connections.Add(connection);
  if (added == ConnectionSet::Added::kFull || added == ConnectionSet::Added::kCrowded) Evict();
  if (added == ConnectionSet::Added::kFull)
    return parts_.limits.Reached(ServerLimit::kConnections, "a newcomer");  // closes it
  connection->StartClock();
  if (!connection->Register().ok()) return parts_.connections.Remove(connection.get());
  if (added == ConnectionSet::Added::kDraining) parts_.output.Kick(*connection, Connection::kDrain);  // D1
}

void ServerCore::Evict() {
  if (const auto oldest = parts_.connections.OldestSilent()) parts_.output.Kick(*oldest, Connection::kEvict);
}

void ServerCore::Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) {
  poller_->Wait(deadline, spin, events);
}

void ServerCore::Handle(const std::vector<Poller::Ready>& events, TaskList* ready) {
  for (const Poller::Ready& event : events) event.Handle(ready);
}

ServerStats ServerCore::Sample(bool process) {
  ServerStats stats{.pools = executor_->Sample(),
                    .connections = parts_.connections.size(),
                    .open_calls = parts_.places.open_calls(),
                    .held_bytes = static_cast<size_t>(std::max<int64_t>(parts_.budget.held(), 0))};
  if (process) stats.process = ReadThreadStats().value_or(ThreadStats());
  if (adaptation_ != nullptr) stats.policy = adaptation_->Stats();
  stats.held_up = parts_.methods.HeldUp();
  stats.limits = parts_.limits.Sample();
  stats.refusals = parts_.refusals.Sample();
  if (parts_.credits != nullptr) stats.credits = parts_.credits->Sample();
  if (parts_.fence != nullptr) stats.fences = parts_.fence->Sample();
  return stats;
}

absl::Status ServerCore::Drain(Deadline deadline) {
  ConnectionSet& connections = parts_.connections;
  const auto kick_all = [&](uint32_t bits) {
    for (const auto& connection : connections.All()) parts_.output.Kick(*connection, bits);
  };
  draining_.store(true, std::memory_order_relaxed);
  if (adaptation_ != nullptr) adaptation_->Stop();            // D0
  for (const auto& listener : listeners_) listener->Close();  // D1
  connections.BeginDrain();
  kick_all(Connection::kNotice);  // D2
  connections.WaitUntilEmpty(std::min(deadline, Deadline::In(kNoticeTime)));
  kick_all(Connection::kDrain);
  size_t cut_off = 0;
  if (!connections.WaitUntilEmpty(deadline)) {  // D3
    cut_off = parts_.places.open_calls();
    kick_all(Connection::kAbort);  // D4
  }
  parts_.output.StopMessages();
  TaskList left_over;
  const Deadline stop = std::max(deadline, Deadline::In(kStopGrace));
  const bool stopped = executor_->Stop(stop, &left_over);  // D5
  while (Task* task = left_over.Pop()) task->Drop();
  if (!stopped) return absl::AbortedError("a handler did not return although its request was cancelled");
  parts_.output.FlushAll();
  if (cut_off == 0) return absl::OkStatus();
  return absl::DeadlineExceededError(Join(cut_off, " request(s) were cut off"));
}

}  // namespace curtail::internal
