// SPDX-License-Identifier: Apache-2.0
//
// router: a key-value store over memcached. A process serves one of its services, or fills a router.
#include "apps/router/commands.h"
#include "apps/router/leaf_service.h"
#include "apps/router/router_service.h"

constexpr char kExamples[] = R"(Examples, two shards of two replicas and a memcached for each leaf:
  memcached -s /tmp/m0 -I 2m &
  router --service leaf --store memcached=unix:/tmp/m0 --listen 127.0.0.1:7001
  router --service mid-tier --replicas 2 --leaf 127.0.0.1:7001 --leaf 127.0.0.1:7002 \
         --leaf 127.0.0.1:7003 --leaf 127.0.0.1:7004 --listen 127.0.0.1:7000 --config SDB1-16
  router load --target 127.0.0.1:7000 --records 10000

Leaves 7001 and 7002 are the replicas of shard 0 here, 7003 and 7004 those of shard 1.
Exit codes: 0 ok, 104 bad configuration (a flag, a file, an address), or a set failed (load).)";

int main(int argc, char** argv) {
  using namespace curtail::router;
  return curtail::HostMain(argc, argv,
                           {.name = "router",
                            .title = "Key-value store: keys spread over shards and replicas of memcached.",
                            .examples = kExamples,
                            .services = {HostedLeaf(), HostedMidTier()},
                            .commands = Commands()});
}
