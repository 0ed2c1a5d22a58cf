// SPDX-License-Identifier: Apache-2.0
//
// rpc_testing.h - a service whose handlers answer, fail, throw, wait at a gate or fan out, and what
// tests of server and client do with it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/base/gate_testing.h"
#include "curtail/base/loopback_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/server.h"
#include "google/protobuf/wrappers.pb.h"

namespace curtail {

using google::protobuf::StringValue;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr Method<StringValue, StringValue> kEcho{"/test.Echo/Echo"};
inline constexpr Method<StringValue, StringValue> kHang{"/test.Echo/Hang"};
inline constexpr Method<StringValue, StringValue> kThrow{"/test.Echo/Throw"};
inline constexpr Method<StringValue, StringValue> kForward{"/test.Echo/Forward"};

// Echo answers, for "meta" with the metadata that came and some of its own, for "left" with the ns until its deadline. Hang
// waits at a gate or for cancellation; Forward fans out to `leaves`.
class EchoService final : public Service {
 public:
  EchoService(Gate* gate, std::vector<Channel*> leaves, std::atomic<int>* cancelled)
      : gate_(gate), leaves_(std::move(leaves)), cancelled_(cancelled) {}

  std::string_view FullName() const override { return "test.Echo"; }
  std::vector<MethodHandler> Handlers() override {
    using internal::UnaryHandler;
    return {{.name = "Echo",
             .handler = UnaryHandler<StringValue, StringValue>(
                 [](Context& ctx, const StringValue& in, StringValue* out) -> absl::Status {
                   if (in.value() == "left") {
                     out->set_value(Join(ctx.deadline().Remaining().count()));
                     return absl::OkStatus();
                   }
                   if (in.value() == "fail") return absl::NotFoundError("no such thing: \xc3\xa9 100%");
                   if (in.value() == "meta") {
                     out->set_value(std::string(ctx.metadata().Find("x-key").value_or("none")));
                     ctx.AddInitialMetadata("X-Head", "h");
                     ctx.AddTrailingMetadata("x-trail", "t");
                     return absl::OkStatus();
                   }
                   if (in.value() == "meta fail") {
                     ctx.AddInitialMetadata("x-head-bin", std::string("\0\n", 2));
                     ctx.AddTrailingMetadata("x-trail", "t");
                     return absl::NotFoundError("with metadata");
                   }
                   if (in.value() == "meta initial") ctx.AddInitialMetadata("Te", "trailers");
                   if (in.value() == "meta trailing") ctx.AddTrailingMetadata("x-trail", "two\nlines");
                   out->set_value(in.value());
                   return absl::OkStatus();
                 })},
            {.name = "Throw",
             .handler = UnaryHandler<StringValue, StringValue>(
                 [](Context&, const StringValue& in, StringValue*) -> absl::Status {
                   if (in.value() == "int") throw 1;
                   throw std::runtime_error("thrown");
                 })},
            {.name = "Hang",
             .handler = UnaryHandler<StringValue, StringValue>(
                 [this](Context& ctx, const StringValue& in, StringValue* out) -> absl::Status {
                   gate_->Pass();
                   if (ctx.cancelled() && cancelled_ != nullptr) ++*cancelled_;
                   out->set_value(in.value());
                   return absl::OkStatus();
                 })},
            {.name = "Forward",
             .handler = UnaryHandler<StringValue, StringValue>(
                 [this](Context& ctx, const StringValue& in, StringValue* out) {
                   return Forward(ctx, in, out);
                 })}};
  }

 private:
  absl::Status Forward(Context& ctx, const StringValue& in, StringValue* out) {
    const Method<StringValue, StringValue>& method = in.value() == "hang" ? kHang : kEcho;
    const auto replies =
        ctx.FanOut(std::span<Channel* const>(leaves_), method, std::vector(leaves_.size(), in));
    std::string joined;
    for (const auto& reply : replies) {
      if (!reply.ok()) {
        if (absl::IsCancelled(reply.status()) && cancelled_ != nullptr) ++*cancelled_;
        return reply.status();
      }
      joined += reply->value() + ";";
    }
    out->set_value(joined);
    return absl::OkStatus();
  }

  Gate* const gate_;
  const std::vector<Channel*> leaves_;
  std::atomic<int>* const cancelled_;
};

inline StringValue Text(std::string text) {
  StringValue value;
  value.set_value(std::move(text));
  return value;
}

// Names what requests hold of the server: calls, places in queues, permits and, once no client is connected, bytes and
// credits. Returns an empty text if they hold nothing.
inline std::string InUse(Server& server) {
  const ServerStats stats = server.Sample();
  std::string in_use;
  const auto note = [&](auto count, std::string_view what) {
    if (count != 0) in_use += Join(count, " ", what, "; ");
  };
  note(stats.open_calls, "open calls");
  note(stats.pools.queued, "queued requests");
  if (stats.fences) {
    for (const FenceClassStats& of : stats.fences->classes) {
      note(of.in_use, "permits of " + of.name);
      note(of.waiting, "requests that wait for permits of " + of.name);
    }
  }
  if (stats.connections > 0) return in_use;  // whose clients may leave bytes in the socket
  note(stats.held_bytes, "held bytes");
  if (stats.credits) note(stats.credits->issued, "credits");
  return in_use;
}

// For the end of each test of a server, once its handlers may end: all that requests took of it comes back.
inline void ExpectNothingInUse(Server* server) {
  if (server == nullptr) return;
  std::string in_use = InUse(*server);
  for (const Deadline end = Deadline::In(kMaxTestWait); !in_use.empty() && !end.Expired();) {
    BetweenLooks();
    in_use = InUse(*server);
  }
  EXPECT_EQ(in_use, "");
}

class RpcBase {
 protected:
  std::unique_ptr<Server> StartServer(std::string config, std::vector<Channel*> leaves = {},
                                      std::string listen = OwnLoopback()) {
    ServerOptions options;
    options.listen = {std::move(listen)};
    options.config = *Config::Parse(config);
    options.forward_metadata = forward_metadata_;
    options.fence.mode = fence_mode_;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, std::move(leaves), &cancelled_));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  absl::Status Call(Channel& channel, const Method<StringValue, StringValue>& method, const std::string& text,
                    std::string* answer = nullptr, Nanos timeout = kMaxTestWait) {
    Context ctx(timeout);
    StringValue reply;
    const StringValue request = Text(text);
    const absl::Status status = channel.Call(ctx, method.path, request, &reply);
    if (answer != nullptr) *answer = reply.value();
    return status;
  }

  std::vector<std::string> forward_metadata_ = ServerOptions().forward_metadata;
  FenceMode fence_mode_ = FenceMode::kOff;
  Gate gate_;
  std::atomic<int> cancelled_{0};
};

}  // namespace curtail
