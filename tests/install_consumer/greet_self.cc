// SPDX-License-Identifier: Apache-2.0
//
// greet_self.cc - server and client in one process: serves, calls itself once, checks the answers, drains.
#include <algorithm>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/server.h"
#include "greeter.curtail.h"

namespace {

class GreeterService final : public hello::Greeter::Service {
  absl::Status Hello(curtail::Context&, const hello::HelloRequest& request,
                     hello::HelloReply* reply) override {
    if (request.name().empty()) return absl::InvalidArgumentError("a greeting needs a name");
    reply->set_text("Hello, " + request.name() + "!");
    return absl::OkStatus();
  }
};

// [call]
absl::StatusOr<std::string> Greet(const std::string& address, const std::string& name) {
  curtail::Client client;
  curtail::Channel channel(&client, address);
  const hello::Greeter::Stub greeter(&channel);

  curtail::Context ctx(std::chrono::seconds(5));  // every call ends by then
  hello::HelloRequest request;
  hello::HelloReply reply;
  request.set_name(name);
  if (absl::Status status = greeter.Hello(ctx, request, &reply); !status.ok()) return status;
  return reply.text();
}
// [/call]

// [coroutine]
// Has two other servers greet, under any of the twelve models.
class RelayService final : public hello::Greeter::CoroutineService {
 public:
  explicit RelayService(std::vector<curtail::Channel*> greeters) : greeters_(std::move(greeters)) {}

  curtail::Coroutine Hello(curtail::Context& ctx, const hello::HelloRequest& request,
                           hello::HelloReply* reply) override {
    std::vector<hello::HelloRequest> requests(greeters_.size(), request);
    auto replies = co_await curtail::fan_out(ctx, std::span<curtail::Channel* const>(greeters_),
                                             hello::Greeter::kHello, std::move(requests));
    for (const auto& each : replies) {
      if (!each.ok()) co_return each.status();
      reply->set_text(reply->text() + each->text());
    }
    co_return absl::OkStatus();
  }

 private:
  const std::vector<curtail::Channel*> greeters_;
};
// [/coroutine]

// Greets `name` on two channels at once; returns how many answered.
size_t GreetTwice(const std::string& address, const std::string& name) {
  // [fan-out]
  curtail::Client client;
  curtail::Channel one(&client, address), other(&client, address);
  const std::vector<curtail::Channel*> channels = {&one, &other};
  std::vector<hello::HelloRequest> requests(channels.size());
  for (hello::HelloRequest& request : requests) request.set_name(name);

  curtail::Context ctx(std::chrono::seconds(5));
  std::vector<absl::StatusOr<hello::HelloReply>> replies =
      ctx.FanOut(channels, hello::Greeter::kHello, requests);
  // [/fan-out]
  return std::count_if(replies.begin(), replies.end(), [](const auto& reply) { return reply.ok(); });
}

absl::StatusOr<std::unique_ptr<curtail::Server>> Serve() {
  // [start]
  curtail::ServerOptions options;
  options.listen = {"127.0.0.1:0"};                    // port 0: any free one
  options.config = *curtail::Config::Parse("SDB1-2");  // one thread receives, two run handlers
  std::vector<std::unique_ptr<curtail::Service>> services;
  services.push_back(std::make_unique<GreeterService>());
  return curtail::Server::Start(options, std::move(services));
  // [/start]
}

// Greets through a relay, under a model of each family in turn.
absl::Status GreetThroughRelay(const std::string& address) {
  curtail::Client client;
  curtail::Channel one(&client, address), other(&client, address);
  std::vector<std::unique_ptr<curtail::Service>> services;
  services.push_back(std::make_unique<RelayService>(std::vector<curtail::Channel*>{&one, &other}));
  auto relay = curtail::Server::Start({}, std::move(services));
  if (!relay.ok()) return relay.status();
  for (const char* config : {"SIB1", "FIB1", "ADB1-1-1"}) {
    // [switch]
    absl::Status switched = (*relay)->SwitchTo(*curtail::Config::Parse(config));
    // [/switch]
    if (!switched.ok()) return switched;
    const absl::StatusOr<std::string> text = Greet((*relay)->addresses().front(), "you");
    if (!text.ok()) return text.status();
    if (*text != "Hello, you!Hello, you!") return absl::InternalError(*text);
  }
  return absl::OkStatus();
}

int Fail(std::string_view what, const absl::Status& status) {
  std::cerr << what << ": " << status << "\n";
  return 1;
}

}  // namespace

int main() {
  absl::StatusOr<std::unique_ptr<curtail::Server>> server = Serve();
  if (!server.ok()) return Fail("serve", server.status());
  const std::string address = (*server)->addresses().front();

  const absl::StatusOr<std::string> text = Greet(address, "reader");
  if (!text.ok()) return Fail("greet", text.status());
  const absl::StatusOr<std::string> refused = Greet(address, "");
  if (refused.status().code() != absl::StatusCode::kInvalidArgument)
    return Fail("greet nobody", refused.status());

  if (const size_t answered = GreetTwice(address, "both"); answered != 2) {
    return Fail("greet twice", absl::UnknownError(std::to_string(answered) + " of 2 answered"));
  }

  if (const absl::Status relayed = GreetThroughRelay(address); !relayed.ok()) return Fail("relay", relayed);

  std::cout << *text << "\n";
  const absl::Status drained = (*server)->Drain(curtail::Deadline::In(std::chrono::seconds(5)));
  if (!drained.ok()) return Fail("drain", drained);
  return *text == "Hello, reader!" ? 0 : 1;
}
