// SPDX-License-Identifier: Apache-2.0
//
// fanout: the null fan-out. A process serves one of its two services.
#include "apps/fanout/services.h"

constexpr char kExamples[] = R"(Examples:
  fanout --service leaf --listen 127.0.0.1:7001
  fanout --service mid-tier --leaf 127.0.0.1:7001 --leaf 127.0.0.1:7002 --config FIB1
  fanout --monolith --instances leaf=4 --listen 127.0.0.1:7000

Exit codes: 0 ok, 104 bad configuration (a flag, an address).)";

int main(int argc, char** argv) {
  using namespace curtail::fanout;
  return curtail::HostMain(
      argc, argv,
      {.name = "fanout",
       .title = "Null fan-out: a mid-tier calls all of its leaves, and nothing does any work.",
       .examples = kExamples,
       .services = {HostedLeaf(), HostedMidTier()}});
}
