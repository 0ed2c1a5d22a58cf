// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/for_clients.h"

#include <atomic>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "access.pb.h"
#include "apps/kit/accounts/forwarding.h"
#include "curtail/base/clock.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/coroutine.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace curtail::apps {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr char kMark[] = "curtail.apps.for_clients";

// Null: the error's own.
const char* WordsFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
      return "the service has failed; its log says more";
    case absl::StatusCode::kUnavailable:
      return "a part of the service does not answer; try again";
    case absl::StatusCode::kDeadlineExceeded:
      return "the time was over before all parts had answered";
    default:
      return nullptr;
  }
}

// Tells the operator, a line a second.
void LogFailure(std::string_view method, const absl::Status& failure) {
  // Any thread takes the second, and then has the count; no other memory hangs on them.
  static std::atomic<Nanos> next_line{Nanos::min()};
  static std::atomic<int64_t> left_out{0};
  const Nanos now = Now().time_since_epoch();
  Nanos next = next_line.load(std::memory_order_relaxed);
  if (now < next ||
      !next_line.compare_exchange_strong(next, now + std::chrono::seconds(1), std::memory_order_relaxed)) {
    left_out.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const int64_t others = left_out.exchange(0, std::memory_order_relaxed);
  const std::string text = failure.ToString();
  Log(Severity::kWarning,
      Join(method, " has failed: ", text,
           others > 0 ? Join(" (and ", others, " more failures)") : std::string()),
      {{"method", method}, {"status", std::string_view(text)}, {"more", others}});
}

absl::Status Reworded(std::string_view method, absl::Status status) {
  if (status.ErasePayload(kMark)) return status;
  const char* const words = WordsFor(status.code());
  if (words == nullptr) return status;
  LogFailure(method, status);
  return absl::Status(status.code(), words);
}

// One method of the service.
struct ClientMethod {
  std::string name;  // with the service's
  Access access = UNSAID;
  const FieldDescriptor* token = nullptr;     // in its request, if there is one
  const MethodDescriptor* forward = nullptr;  // the method that answers it, if another one does
  CoroutineHandler handler;
  bool asks_user = false;
};

class ServiceForClients final : public Service {
 public:
  ServiceForClients(std::unique_ptr<Service> service, const Sessions& sessions)
      : service_(std::move(service)), sessions_(sessions) {}

  // Reads the options of all methods.
  absl::Status Prepare(const Peers& peers);

  std::string_view FullName() const override { return service_->FullName(); }
  std::vector<MethodHandler> Handlers() override { return handlers_; }
  std::vector<DeclaredPath> Paths() const override {
    std::vector<DeclaredPath> paths = service_->Paths();
    for (const auto& [name, method] : methods_)
      if (method.forward != nullptr) paths.push_back({name, {method.forward->service()->full_name()}});
    for (DeclaredPath& path : paths)
      if (methods_.at(path.method).asks_user) path.calls.emplace_back(User::kServiceName);
    return paths;
  }

 private:
  absl::Status Read(const MethodHandler& handler, const Peers& peers, ClientMethod* method) const;
  Coroutine Run(const ClientMethod& method, Context& ctx, Exchange messages) const;

  const std::unique_ptr<Service> service_;
  const Sessions& sessions_;
  std::map<std::string, ClientMethod, std::less<>> methods_;  // the handlers refer to them
  std::vector<MethodHandler> handlers_;
};

absl::Status ServiceForClients::Prepare(const Peers& peers) {
  for (const MethodHandler& handler : service_->Handlers()) {
    ClientMethod& method = methods_[handler.name];
    if (absl::Status status = Read(handler, peers, &method); !status.ok()) return status;
    handlers_.push_back(Surround(handler, [this, &method](Context& ctx, Exchange messages, const auto&) {
      return Run(method, ctx, messages);
    }));
  }
  return absl::OkStatus();
}

absl::Status ServiceForClients::Read(const MethodHandler& handler, const Peers& peers,
                                     ClientMethod* method) const {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  method->name = Join(FullName(), ".", handler.name);
  const MethodDescriptor* const described = pool.FindMethodByName(method->name);
  if (described == nullptr || !handler.coroutine)
    return absl::InvalidArgumentError(
        Join(method->name,
             " cannot serve clients: it needs a coroutine handler, and a .proto that this program links"));
  const auto& options = described->options();
  method->access = options.GetExtension(access);
  if (method->access == UNSAID)
    return absl::InvalidArgumentError(
        Join(method->name,
             " has no option (curtail.apps.access): add \"option (curtail.apps.access) = USER;\","
             " or another value of apps/kit/accounts/access.proto"));
  const FieldDescriptor* const token = described->input_type()->FindFieldByName("token");
  const bool has_token = token != nullptr && token->type() == FieldDescriptor::TYPE_STRING;
  if (has_token && !token->is_repeated() && !described->client_streaming()) method->token = token;
  const ForwardTo& to = options.GetExtension(forward);
  method->asks_user = method->access != PUBLIC || !to.named().empty();
  method->handler = handler.coroutine;
  if (!options.HasExtension(forward)) return absl::OkStatus();
  method->forward = pool.FindMethodByName(to.method());
  auto forwarding = ForwardingOf(*described, method->forward, peers(to.service()), sessions_);
  if (forwarding.ok()) method->handler = *std::move(forwarding);
  return forwarding.status();
}

Coroutine ServiceForClients::Run(const ClientMethod& method, Context& ctx, Exchange messages) const {
  absl::Status status;
  try {
    if (method.access == PUBLIC) {
      HandAddressOn(ctx);
    } else {
      std::string scratch;
      std::string_view token;
      if (method.token != nullptr) {
        const Message& request = static_cast<const Message&>(*messages.request);
        token = request.GetReflection()->GetStringReference(request, method.token, &scratch);
      }
      status = co_await sessions_.Admit(ctx, method.access, token);
    }
    if (status.ok()) status = co_await method.handler(ctx, messages);
  } catch (const std::exception& e) {
    status = absl::InternalError(Join("exception: ", e.what()));
  } catch (...) {
    status = absl::InternalError("exception");
  }
  co_return Reworded(method.name, std::move(status));
}

}  // namespace

Peers PeersOf(Env& env) {
  return [&env](std::string_view service) { return env.SharedChannel(service); };
}

void HandAddressOn(Context& ctx) {
  const std::string_view peer = ctx.peer();
  ctx.AddMetadata(kClientAddress,
                  ctx.metadata().Find(kClientAddress).value_or(peer.substr(0, peer.rfind(':'))));
}

MadeService ForClients(std::unique_ptr<Service> service, const Sessions& sessions, const Peers& peers) {
  auto made = std::make_unique<ServiceForClients>(std::move(service), sessions);
  if (absl::Status status = made->Prepare(peers); !status.ok()) return status;
  return made;
}

absl::Status ForClients(absl::Status error) {
  error.SetPayload(kMark, absl::Cord());
  return error;
}

}  // namespace curtail::apps
