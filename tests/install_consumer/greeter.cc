// SPDX-License-Identifier: Apache-2.0
//
// greeter.cc - the smallest service: what the README shows.
// [service]
#include "curtail/rpc/server_main.h"
#include "greeter.curtail.h"

class GreeterService final : public hello::Greeter::Service {
  absl::Status Hello(curtail::Context&, const hello::HelloRequest& request,
                     hello::HelloReply* reply) override {
    reply->set_text("Hello, " + request.name() + "!");
    return absl::OkStatus();
  }
};

int main(int argc, char** argv) {
  return curtail::ServerMain(argc, argv, std::make_unique<GreeterService>());
}
// [/service]
