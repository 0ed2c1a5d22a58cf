// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/for_clients.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "curtail/base/clock.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/responder.h"

namespace curtail::apps {
namespace {

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

// Between an asynchronous handler and what awaits its answer; deletes itself once it has that.
class Between final : private internal::Answerable {
 public:
  static Responder Of(const std::string& method, Responder to) {
    return Responder(new Between(method, std::move(to)));
  }

 private:
  Between(const std::string& method, Responder to) : method_(method), to_(std::move(to)) {}
  std::string* ReplyBytes() override { return to_.reply(); }
  void Finish(absl::Status status) override {
    to_.Finish(Reworded(method_, std::move(status)));
    delete this;
  }
  void GiveUp() override { delete this; }

  const std::string& method_;
  Responder to_;
};

// The same of a callback.
using Done = void (*)(void*, absl::Status);
struct DoneBetween {
  static void Call(void* self, absl::Status status) {
    const std::unique_ptr<DoneBetween> between(static_cast<DoneBetween*>(self));
    between->done(between->arg, Reworded(*between->method, std::move(status)));
  }

  const std::string* method;
  Done done;
  void* arg;
};

class ServiceForClients final : public Service {
 public:
  explicit ServiceForClients(std::unique_ptr<Service> service) : service_(std::move(service)) {}
  std::string_view FullName() const override { return service_->FullName(); }
  std::vector<DeclaredPath> Paths() const override { return service_->Paths(); }
  std::vector<MethodHandler> Handlers() override {
    std::vector<MethodHandler> handlers = service_->Handlers();
    names_.reserve(handlers.size());  // the handlers refer to them
    for (MethodHandler& handler : handlers)
      Reword(names_.emplace_back(Join(FullName(), "/", handler.name)), handler);
    return handlers;
  }

 private:
  static void Reword(const std::string& method, MethodHandler& handler);

  const std::unique_ptr<Service> service_;
  std::vector<std::string> names_;
};

// Each form that a handler has.
void ServiceForClients::Reword(const std::string& method, MethodHandler& handler) {
  const auto returns = [&](auto& form) {
    if (!form) return;
    form = [&method, run = std::move(form)](Context& ctx, auto&&... arguments) {
      return Reworded(method, run(ctx, std::forward<decltype(arguments)>(arguments)...));
    };
  };
  returns(handler.handler);
  returns(handler.stream);
  returns(handler.typed.run);
  if (handler.continuation) {
    handler.continuation = [&method, begin = std::move(handler.continuation)](
                               Context& ctx, std::string_view request, Responder responder) {
      begin(ctx, request, Between::Of(method, std::move(responder)));
    };
  }
  if (handler.start_stream) {
    handler.start_stream = [&method, begin = std::move(handler.start_stream)](
                               Context& ctx, internal::MessageStream& stream, Done done, void* arg) {
      begin(ctx, stream, &DoneBetween::Call, new DoneBetween{&method, done, arg});
    };
  }
  if (handler.typed.start) {
    handler.typed.start = [&method, begin = std::move(handler.typed.start)](
                              Context& ctx, const google::protobuf::MessageLite& request,
                              google::protobuf::MessageLite* reply, Done done, void* arg) {
      begin(ctx, request, reply, &DoneBetween::Call, new DoneBetween{&method, done, arg});
    };
  }
}

}  // namespace

std::unique_ptr<Service> ForClients(std::unique_ptr<Service> service) {
  return std::make_unique<ServiceForClients>(std::move(service));
}

absl::Status ForClients(absl::Status error) {
  error.SetPayload(kMark, absl::Cord());
  return error;
}

}  // namespace curtail::apps
