// SPDX-License-Identifier: Apache-2.0
//
// greeter_two_step.cc - the smallest service with a policy of its own, two_step_policy.cc.
#include "curtail/adapt/policy_kind.h"
#include "curtail/rpc/server_main.h"
#include "greeter.curtail.h"

extern const curtail::PolicyKind kTwoStepPolicy;

class GreeterService final : public hello::Greeter::Service {
  absl::Status Hello(curtail::Context&, const hello::HelloRequest& request,
                     hello::HelloReply* reply) override {
    reply->set_text("Hello, " + request.name() + "!");
    return absl::OkStatus();
  }
};

// [main]
int main(int argc, char** argv) {
  return curtail::ServerMain(argc, argv, std::make_unique<GreeterService>(), {&kTwoStepPolicy});
}
// [/main]
