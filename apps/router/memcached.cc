// SPDX-License-Identifier: Apache-2.0
#include "apps/router/memcached.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "apps/router/versions.h"
#include "curtail/base/strings.h"
#include "curtail/exec/fiber.h"
#include "curtail/exec/wait.h"

namespace curtail::router {

// A connection taken from its pool; goes back, or is closed, when this is destroyed.
class Memcached::Lease {
 public:
  Lease() = default;
  ~Lease() { Return(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // Takes an idle one, opens one, or waits for one. `fresh`: only a new one.
  absl::Status Take(Memcached& memcached, bool fresh, Deadline deadline);
  void Return();
  Connection& operator*() const { return *connection_; }
  Connection* operator->() const { return connection_.get(); }
  bool reused() const { return reused_; }
  // It is of no more use to others.
  std::unique_ptr<Connection> Remove() {
    auto connection = std::move(connection_);
    Return();
    return connection;
  }

 private:
  Pool* pool_ = nullptr;
  std::unique_ptr<Connection> connection_;
  bool reused_ = false;
};

absl::Status Memcached::Lease::Take(Memcached& memcached, bool fresh, Deadline deadline) {
  Pool& pool = memcached.PoolOfCaller();
  {
    std::vector<std::unique_ptr<Connection>> dead;  // closed without the lock
    std::unique_lock<FiberMutex> lock(pool.mu);
    if (fresh) {
      dead.swap(pool.idle);
      pool.open -= static_cast<int>(dead.size());
    }
    while (pool.idle.empty() && pool.open >= memcached.options_.connections) {
      if (!pool.freed.wait_until(lock, deadline) && deadline.Expired()) {
        return absl::DeadlineExceededError(
            Join("all ", pool.open, " connections to memcached ", memcached.address(), " are in use"));
      }
    }
    pool_ = &pool;
    reused_ = !pool.idle.empty();
    if (reused_) {
      connection_ = std::move(pool.idle.back());
      pool.idle.pop_back();
      return absl::OkStatus();
    }
    ++pool.open;
  }
  auto opened = Connection::Open(memcached.address_, pool.poller, deadline);
  if (!opened.ok()) {
    Return();
    return opened.status();
  }
  connection_ = *std::move(opened);
  return absl::OkStatus();
}

void Memcached::Lease::Return() {
  if (pool_ == nullptr) return;
  const std::lock_guard<FiberMutex> lock(pool_->mu);
  if (connection_ == nullptr) {
    --pool_->open;
  } else {
    pool_->idle.push_back(std::move(connection_));
  }
  pool_->freed.notify_one();
  pool_ = nullptr;
}

Memcached::Memcached(Address address, MemcachedOptions options)
    : address_(std::move(address)), options_(options) {}

Memcached::~Memcached() = default;

Memcached::Pool& Memcached::PoolOfCaller() {
  const FiberLoop* const loop = Fiber::Current() == nullptr ? nullptr : CurrentWait().loop;
  const Poller* const poller = loop == nullptr ? nullptr : loop->poller().get();
  const MutexLock lock(mu_);
  for (Pool& pool : pools_) {
    if (pool.poller.get() == poller) return pool;
  }
  Pool& pool = pools_.emplace_back();
  if (loop != nullptr) pool.poller = loop->poller();
  return pool;
}

absl::Status Memcached::RunOnce(const Command& command, Deadline deadline, Answer* answer, Lease* lease,
                                bool* again) {
  // Nobody waits for it any more.
  if (deadline.Expired()) {
    return absl::DeadlineExceededError(Join("memcached ", address(), " was not asked: no time is left"));
  }
  const Connection::Outcome outcome =
      (*lease)->Exchange(command.head, command.body, command.tail, deadline, answer);
  if (outcome.state == Connection::State::kUsable) {
    if (answer->kind == command.yes || answer->kind == command.no || answer->kind == Answer::Kind::kRefused) {
      return absl::OkStatus();
    }
    const std::string text =
        Join("memcached ", address(), " answered another command than it was asked, with \"",
             answer->kind == Answer::Kind::kValue ? "a value" : answer->text, "\"");
    lease->Remove();
    return absl::UnavailableError(text);
  }
  if (outcome.closed) lost_.store(VersionOfNow(), std::memory_order_relaxed);
  *again = outcome.closed && lease->reused();
  std::unique_ptr<Connection> connection = lease->Remove();
  if (outcome.state == Connection::State::kUnanswered && command.writes) KeepAside(std::move(connection));
  return outcome.status;
}

absl::Status Memcached::Run(const Command& command, Deadline deadline, Answer* answer, Lease* lease) {
  if (command.writes) {
    if (absl::Status status = CheckNoneUnanswered(); !status.ok()) return status;
  }
  if (absl::Status status = lease->Take(*this, false, deadline); !status.ok()) {
    if (absl::IsUnavailable(status)) lost_.store(VersionOfNow(), std::memory_order_relaxed);
    return status;
  }
  bool again = false;
  const absl::Status status = RunOnce(command, deadline, answer, lease, &again);
  // memcached was restarted since the connection was used last. All commands may be repeated: what the first
  // try did, if anything, went with the old memcached or is what this one does.
  if (!again) return status;
  if (absl::Status fresh = lease->Take(*this, true, deadline); !fresh.ok()) return fresh;
  return RunOnce(command, deadline, answer, lease, &again);
}

absl::Status Memcached::CheckNoneUnanswered() {
  if (!any_unanswered_.load(std::memory_order_relaxed)) return absl::OkStatus();
  const MutexLock lock(mu_);
  std::erase_if(unanswered_, [](const auto& connection) { return connection->Resolved(); });
  any_unanswered_.store(!unanswered_.empty(), std::memory_order_relaxed);
  if (unanswered_.empty()) return absl::OkStatus();
  return absl::UnavailableError(Join("memcached ", address(), " has not answered ", unanswered_.size(),
                                     " earlier writes yet; no other may overtake them"));
}

void Memcached::KeepAside(std::unique_ptr<Connection> connection) {
  const MutexLock lock(mu_);
  unanswered_.push_back(std::move(connection));
  any_unanswered_.store(true, std::memory_order_relaxed);
}

absl::Status Memcached::Refused(const Answer& answer) const {
  const std::string text = Join("memcached ", address(), " refused: ", answer.text);
  if (answer.text.find("too large") != std::string_view::npos) {
    return absl::InvalidArgumentError(Join(text, "; start it with -I 2m for values of up to 1 MiB"));
  }
  return absl::ResourceExhaustedError(text);
}

absl::Status Memcached::Get(std::string_view key, Deadline deadline, bool* found, std::string* value) {
  std::string head;
  AppendGet(key, &head);
  const Command command{.head = head, .yes = Answer::Kind::kValue, .no = Answer::Kind::kMiss};
  Answer answer;
  Lease lease;
  if (absl::Status status = Run(command, deadline, &answer, &lease); !status.ok()) return status;
  if (answer.kind == Answer::Kind::kRefused) return Refused(answer);
  *found = answer.kind == Answer::Kind::kValue;
  if (*found) value->assign(answer.value);
  return absl::OkStatus();
}

absl::Status Memcached::Set(std::string_view key, std::string_view value, bool if_absent, Deadline deadline,
                            bool* stored) {
  std::string head;
  AppendSetHead(key, value.size(), if_absent, &head);
  Answer answer;
  Lease lease;
  const Command command{.head = head,
                        .body = value,
                        .tail = kLineEnd,
                        .writes = true,
                        .no = if_absent ? Answer::Kind::kNotStored : Answer::Kind::kDone};
  if (absl::Status status = Run(command, deadline, &answer, &lease); !status.ok()) return status;
  if (answer.kind == Answer::Kind::kRefused) return Refused(answer);
  *stored = answer.kind == Answer::Kind::kDone;
  return absl::OkStatus();
}

absl::Status Memcached::Delete(std::string_view key, Deadline deadline, bool* found) {
  std::string head;
  AppendDelete(key, &head);
  Answer answer;
  Lease lease;
  const Command command{.head = head, .writes = true, .no = Answer::Kind::kMiss};
  if (absl::Status status = Run(command, deadline, &answer, &lease); !status.ok()) return status;
  if (answer.kind == Answer::Kind::kRefused) return Refused(answer);
  *found = answer.kind == Answer::Kind::kDone;
  return absl::OkStatus();
}

absl::Status Memcached::Flush(Deadline deadline) {
  Answer answer;
  Lease lease;
  if (absl::Status status = Run({.head = kFlushCommand, .writes = true}, deadline, &answer, &lease);
      !status.ok()) {
    return status;
  }
  return answer.kind == Answer::Kind::kDone ? absl::OkStatus() : Refused(answer);
}

absl::Status Memcached::Check(Deadline deadline) {
  std::vector<Pool*> pools;  // they stay
  {
    const MutexLock lock(mu_);
    for (Pool& pool : pools_) pools.push_back(&pool);
  }
  for (Pool* const pool : pools) {
    const std::lock_guard<FiberMutex> lock(pool->mu);
    // Nothing is on its way on an idle one: if it is resolved, it is closed.
    if (std::ranges::any_of(pool->idle, [](const auto& connection) { return connection->Resolved(); })) {
      lost_.store(VersionOfNow(), std::memory_order_relaxed);
    }
  }
  bool found = false;
  std::string value;
  return Get("is it there", deadline, &found, &value);
}

}  // namespace curtail::router
