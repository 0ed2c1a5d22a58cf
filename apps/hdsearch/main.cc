// SPDX-License-Identifier: Apache-2.0
//
// hdsearch: image search. A process serves one of its services, or runs an offline command.
#include "apps/hdsearch/commands.h"
#include "apps/hdsearch/leaf_service.h"
#include "apps/hdsearch/search_service.h"

constexpr char kExamples[] = R"(Data (--data, --queries):
  fashion-mnist[:test]   FILE.fvecs   FILE.npy   FILE.idx[.gz]   FILE-ubyte[.gz]   raw:FILE,D=2048
  synthetic:N=500000,D=2048,seed=7,clusters=1000

Examples:
  hdsearch --service leaf --shard 0/2 --listen 127.0.0.1:7001
  hdsearch --service mid-tier --leaf 127.0.0.1:7001 --leaf 127.0.0.1:7002 --config SDB1-16
  hdsearch --service mid-tier --leaf 127.0.0.1:7001 --listen 127.0.0.1:7000 --policy online --slo 5
  hdsearch --monolith --instances leaf=4 --listen 127.0.0.1:7000 --config FIB1
  hdsearch recall --data fashion-mnist --k 10
  hdsearch generate --data synthetic:N=100000,D=256,seed=7 --out corpus.fvecs

Exit codes: 0 ok, 104 bad configuration (a flag, a file, an address).)";

int main(int argc, char** argv) {
  using namespace curtail::hdsearch;
  return curtail::HostMain(argc, argv,
                           {.name = "hdsearch",
                            .title = "Image search: k nearest neighbours over sharded leaves.",
                            .examples = kExamples,
                            .services = {HostedLeaf(), HostedMidTier()},
                            .commands = Commands()});
}
