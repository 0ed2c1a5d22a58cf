// SPDX-License-Identifier: Apache-2.0
//
// The servers of the soak test: with --leaf a mid-tier under any config, without it the leaf.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/exec/sync.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/server_main.h"
#include "heap.h"
#include "soak.curtail.h"

namespace curtail::soak {
namespace {

constexpr std::chrono::milliseconds kDrain(500);

absl::Status AsAsked(const Packet& request) {
  return absl::Status(static_cast<absl::StatusCode>(request.code()), "as asked");
}

void EchoMetadata(Context& ctx) {
  for (const auto& [key, value] : ctx.metadata()) {
    if (!key.starts_with("x-soak")) continue;
    ctx.AddInitialMetadata(key, value);
    ctx.AddTrailingMetadata(key, value);
  }
}

class LeafService final : public Leaf::Service {
 public:
  absl::Status Echo(Context& ctx, const Packet& request, Packet* reply) override {
    const Deadline until =
        std::min(Deadline::In(std::chrono::milliseconds(request.delay_ms())), ctx.deadline());
    while (!ctx.cancelled() && !until.Expired()) {
      FiberMutex mu;
      FiberCondition never;
      std::unique_lock lock(mu);
      never.wait_until(lock, std::min(until, Deadline::In(std::chrono::milliseconds(10))));
    }
    reply->set_payload(request.payload());
    return absl::OkStatus();
  }
};

// The leaf's answers as that of a fan-out.
absl::Status Join(const Replies<Packet>& replies, Packet* reply) {
  for (const absl::StatusOr<Packet>& one : replies) {
    if (!one.ok()) return one.status();
    reply->mutable_payload()->append(one->payload());
  }
  return absl::OkStatus();
}

class SelfService final : public Self::CoroutineService {
 public:
  Coroutine Measure(Context&, const Packet&, Heap* reply) override {
    reply->set_in_use(HeapInUse());
    co_return absl::OkStatus();
  }
};

class WovenService final : public Woven::CoroutineService {
 public:
  explicit WovenService(std::vector<Channel*> leaves) : leaves_(std::move(leaves)) {}

  Coroutine Echo(Context& ctx, const Packet& request, Packet* reply) override {
    EchoMetadata(ctx);
    if (request.code() != 0) co_return AsAsked(request);
    reply->set_payload(request.payload());
    co_return absl::OkStatus();
  }

  Coroutine FanOut(Context& ctx, const Packet& request, Packet* reply) override {
    EchoMetadata(ctx);
    std::vector<Packet> requests(leaves_.size(), request);
    const auto replies = co_await fan_out(ctx, leaves_, Leaf::kEcho, std::move(requests));
    if (request.code() != 0) co_return AsAsked(request);
    co_return Join(replies, reply);
  }

 private:
  const std::vector<Channel*> leaves_;
};

class StreamsService final : public Streams::Service {
 public:
  absl::Status Upload(Context& ctx, StreamReader<Packet>& requests, Packet* reply) override {
    EchoMetadata(ctx);
    for (Packet request; requests.Read(&request);) {
      if (request.code() != 0) return AsAsked(request);
      reply->mutable_payload()->append(request.payload());
    }
    return requests.status();
  }

  absl::Status Watch(Context& ctx, const Packet& request, StreamWriter<Packet>& replies) override {
    EchoMetadata(ctx);
    Packet reply;
    reply.set_payload(request.payload());
    for (int i = 0; i < request.count(); ++i) {
      if (!replies.Write(reply)) return replies.status();
    }
    return request.code() != 0 ? AsAsked(request) : absl::OkStatus();
  }

  absl::Status Chat(Context& ctx, ServerStream<Packet, Packet>& stream) override {
    EchoMetadata(ctx);
    for (Packet packet; stream.Read(&packet);) {
      if (packet.code() != 0) return AsAsked(packet);
      if (!stream.Write(packet)) break;
    }
    return stream.status();
  }
};

class StraightService final : public Straight::Service {
 public:
  explicit StraightService(std::vector<Channel*> leaves) : leaves_(std::move(leaves)) {}

  absl::Status FanOut(Context& ctx, const Packet& request, Packet* reply) override {
    EchoMetadata(ctx);
    const auto replies = ctx.Broadcast(leaves_, Leaf::kEcho, request);
    return request.code() != 0 ? AsAsked(request) : Join(replies, reply);
  }

 private:
  const std::vector<Channel*> leaves_;
};

class ContinuedService final : public Straight::ContinuationService {
 public:
  explicit ContinuedService(std::vector<Channel*> leaves) : leaves_(std::move(leaves)) {}

  void ProcessFanOut(Context& ctx, const Packet& request, TypedResponder<Packet> responder) override {
    EchoMetadata(ctx);
    InvokeLeafAsync(ctx, leaves_, Leaf::kEcho, Packet(request),
                    std::pair(request.code(), std::move(responder)),
                    [](std::pair<int, TypedResponder<Packet>> tag, Replies<Packet> replies) {
                      Packet reply;
                      reply.set_code(tag.first);
                      absl::Status status = tag.first != 0 ? AsAsked(reply) : Join(replies, &reply);
                      if (!status.ok()) return tag.second.Fail(std::move(status));
                      tag.second.Finish(reply);
                    });
  }

 private:
  const std::vector<Channel*> leaves_;
};

struct Flags {
  ServerOptions options;
  std::string config = "auto";
  std::string certificate;
  std::string key;
  std::string leaf;
};

absl::Status ApplyFlags(Flags* flags) {
  const absl::StatusOr<Config> config = Config::Parse(flags->config);
  if (!config.ok()) return config.status();
  flags->options.config = *config;
  if (flags->certificate.empty()) return absl::OkStatus();
  auto tls = ServerTls::Load({.certificate_file = flags->certificate, .key_file = flags->key});
  if (!tls.ok()) return tls.status();
  flags->options.tls = *std::move(tls);
  return absl::OkStatus();
}

int Run(Flags flags) {
  if (const absl::Status applied = ApplyFlags(&flags); !applied.ok()) {
    std::cerr << applied << "\n";
    return 104;
  }
  BlockStopSignals();
  Client client;
  Channel leaf(&client, flags.leaf.empty() ? "unix:/none" : flags.leaf);
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<SelfService>());
  if (flags.leaf.empty()) {
    services.push_back(std::make_unique<LeafService>());
  } else {
    const std::vector<Channel*> leaves(3, &leaf);
    services.push_back(std::make_unique<WovenService>(leaves));
    services.push_back(std::make_unique<StreamsService>());
    services.push_back(std::make_unique<StraightService>(leaves));
    services.push_back(std::make_unique<ContinuedService>(leaves));
  }
  auto server = Server::Start(flags.options, std::move(services));
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 104;
  }
  return ServeUntilSignal(**server, kDrain);
}

}  // namespace
}  // namespace curtail::soak

int main(int argc, char** argv) {
  curtail::soak::Flags flags;
  CLI::App app("A server of the soak test", "soak_server");
  app.add_option("--listen", flags.options.listen, "Addresses")->required();
  app.add_option("--admin", flags.options.admin, "The address of the admin interface");
  app.add_option("--config", flags.config, "The threading model at the start");
  app.add_option("--cert", flags.certificate, "TLS: the certificate");
  app.add_option("--key", flags.key, "TLS: its key");
  app.add_option("--leaf", flags.leaf, "The leaf's address; without it this is the leaf");
  CLI11_PARSE(app, argc, argv);
  return curtail::soak::Run(std::move(flags));
}
