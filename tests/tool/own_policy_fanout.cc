// SPDX-License-Identifier: Apache-2.0
//
// The null fan-out with a policy that the library does not have: the one of tests/install_consumer.
#include "apps/fanout/services.h"
#include "curtail/adapt/policy_kind.h"

extern const curtail::PolicyKind kTwoStepPolicy;

// [main]
int main(int argc, char** argv) {
  using namespace curtail::fanout;
  return curtail::HostMain(argc, argv,
                           {.name = "own_policy_fanout",
                            .title = "Null fan-out with a policy of its own.",
                            .services = {HostedLeaf(), HostedMidTier()},
                            .policies = {&kTwoStepPolicy}});
}
// [/main]
