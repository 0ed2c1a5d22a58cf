// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. curtail::async() starts a thread where there is no pool, as std::async does. So handlers run with a hint that
// names none; the calls of a fan-out then begin on threads of their own, each of which waits for its reply.
#include <google/protobuf/descriptor.h>

#include <deque>
#include <memory>
#include <utility>

#include "bench/social_peer/stacks.h"
#include "curtail/base/strings.h"
#include "curtail/exec/wait.h"

namespace curtail::bench {
namespace {

using google::protobuf::MessageLite;

// One instance of a service elsewhere.
class ThreadRemote final : public Service {
 public:
  ThreadRemote(std::string proto, const std::string& address)
      : name_(std::move(proto)), channel_(&client_, address) {}

  std::string_view FullName() const override { return name_; }

  std::vector<MethodHandler> Handlers() override {
    std::vector<MethodHandler> handlers;
    const auto* const service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name_);
    for (int i = 0; service != nullptr && i < service->method_count(); ++i) {
      MethodHandler& handler = handlers.emplace_back();
      handler.name = service->method(i)->name();
      handler.handler = [](Context&, std::string_view, std::string*) {
        return absl::UnimplementedError("of another process");
      };
      handler.typed.accepts = [](const MessageLite&, const MessageLite&) { return true; };
      handler.typed.run = [this, path = Join("/", name_, "/", handler.name)](
                              Context& ctx, const MessageLite& request, MessageLite* reply) {
        return channel_.Call(ctx, path, request, reply);
      };
    }
    return handlers;
  }

 private:
  const std::string name_;
  Client client_;
  Channel channel_;
};

class WithoutPool final : public Service {
 public:
  explicit WithoutPool(std::unique_ptr<Service> service) : service_(std::move(service)) {}
  std::string_view FullName() const override { return service_->FullName(); }
  std::vector<DeclaredPath> Paths() const override { return service_->Paths(); }

  std::vector<MethodHandler> Handlers() override {
    std::vector<MethodHandler> handlers = service_->Handlers();
    for (MethodHandler& handler : handlers) {
      if (!handler.handler) continue;
      handler.continuation = nullptr;  // no asynchronous models: they would make one call after the other
      handler.handler = [inner = std::move(handler.handler)](Context& ctx, std::string_view request,
                                                             std::string* reply) {
        WaitHint hint = CurrentWait();
        hint.executor = nullptr;
        hint.receives = false;  // it would need the pool
        const ScopedWait wait(hint);
        return inner(ctx, request, reply);
      };
    }
    return handlers;
  }

 private:
  const std::unique_ptr<Service> service_;
};

}  // namespace

HostedService CalledByThreads(std::string name, std::string proto, std::vector<std::string> addresses) {
  return {.name = std::move(name),
          .make = [proto, addresses = std::move(addresses)](Env& env) -> MadeService {
            return std::make_unique<ThreadRemote>(proto, addresses[env.shard().index]);
          }};
}

HostedService ServedByThreads(HostedService service) {
  service.make = [make = std::move(service.make)](Env& env) -> MadeService {
    MadeService made = make(env);
    if (!made.ok()) return made;
    return std::make_unique<WithoutPool>(*std::move(made));
  };
  return service;
}

}  // namespace curtail::bench
