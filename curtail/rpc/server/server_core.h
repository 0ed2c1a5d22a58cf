// SPDX-License-Identifier: Apache-2.0
//
// server_core.h - the life of a server: binds, runs, drains, and connects the parts that requests use.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/exec/executor.h"
#include "curtail/rpc/call/response_receiver.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/server/adaptation/adaptation.h"
#include "curtail/rpc/server/fence/fence_limits.h"
#include "curtail/rpc/server/housekeeper.h"
#include "curtail/rpc/server/parts/listener.h"
#include "curtail/rpc/server/parts/server_parts.h"

namespace curtail::internal {

// A ServerCore is the Receiver of the server's executor. Thread-safe once it runs.
class ServerCore final : public Receiver {
 public:
  explicit ServerCore(ServerOptions options);
  ~ServerCore() override;

  // Before Run(). Errors: see MethodTable::Add() and Listen().
  absl::Status AddService(std::unique_ptr<Service> service) { return parts_.methods.Add(std::move(service)); }
  // Adds an observer to those of the options.
  void Observe(CallObserver* observer) { options_.observers.push_back(observer); }
  absl::Status Bind();
  // Starts the executor and begins to accept.
  absl::Status Run();

  // Executor::SwitchTo(), for configs under which every method can run, unless a policy chooses them.
  absl::Status SwitchTo(const Config& config);
  // See Server::Drain().
  absl::Status Drain(Deadline deadline);
  ServerStats Sample(bool process);
  // True if the server has a method of this path, "/package.Service/Method". Any thread, once all services are added.
  bool Serves(std::string_view path) { return parts_.methods.Find(path) != nullptr; }
  // True if Drain() was called. Any thread.
  bool draining() const { return draining_.load(std::memory_order_relaxed); }

  const ServerOptions& options() const { return options_; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  MethodTable& methods() { return parts_.methods; }
  Executor& executor() { return *executor_; }
  // Null without a policy that switches.
  const Adaptation* adaptation() const {
    return adaptation_ != nullptr && adaptation_->switches() ? adaptation_.get() : nullptr;
  }

  // Receiver.
  Poller& poller() override { return *poller_; }
  void Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) override;
  void Handle(const std::vector<Poller::Ready>& events, TaskList* ready) override;
  void Wake() override { poller_->Wake(); }

 private:
  void Accepted(UniqueFd fd);
  // Closes the oldest silent connection, if there is one.
  void Evict();
  absl::Status StartExecutor();

  // Immutable once Run() was called.
  ServerOptions options_;
  std::vector<std::string> addresses_;
  std::vector<std::shared_ptr<Listener>> listeners_;

  // Atomic, relaxed: set once by Drain(), read by health checks.
  std::atomic<bool> draining_{false};

  // Thread-safe by themselves. The executor's threads use all of them, so it comes last.
  const std::shared_ptr<Poller> poller_ = std::make_shared<Poller>();
  ResponseReceiver response_;
  std::unique_ptr<Adaptation> adaptation_;  // set by Run()
  ServerParts parts_;
  const std::shared_ptr<Housekeeper> housekeeper_ = std::make_shared<Housekeeper>(parts_);
  std::shared_ptr<FenceLimits> fence_limits_;  // set by Run(); null: they are fixed
  std::unique_ptr<Executor> executor_;
};

}  // namespace curtail::internal
