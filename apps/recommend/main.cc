// SPDX-License-Identifier: Apache-2.0
//
// recommend: rating prediction. A process serves one of its services, or runs an offline command.
#include "apps/recommend/commands.h"
#include "apps/recommend/leaf_service.h"
#include "apps/recommend/predict_service.h"

constexpr char kExamples[] = R"(Data (--data):
  FILE                              MovieLens u.data, ratings.dat or ratings.csv; plain, .gz or .bz2
  csv:FILE,user=U,item=I,rating=R   any CSV with a header, by the names of its columns
  synthetic:users=943,items=1682,ratings=100000,rank=4,noise=0.7,seed=1

Examples:
  recommend --service leaf --shard 0/2 --listen 127.0.0.1:7001
  recommend --service mid-tier --leaf 127.0.0.1:7001 --leaf 127.0.0.1:7002 --config SDB1-16
  recommend --monolith --instances leaf=4 --listen 127.0.0.1:7000 --config FIB1
  recommend train --data ratings.csv --shard 0/4 --out model-0.bin
  recommend --service leaf --shard 0/4 --model model-0.bin
  recommend evaluate --data ratings.csv --shards 4
  recommend generate --data synthetic:users=5000,items=2000,ratings=1000000 --out ratings.csv

Exit codes: 0 ok, 104 bad configuration (a flag, a file, an address).)";

int main(int argc, char** argv) {
  using namespace curtail::recommend;
  return curtail::HostMain(argc, argv,
                           {.name = "recommend",
                            .title = "Rating prediction: collaborative filtering over sharded leaves.",
                            .examples = kExamples,
                            .services = {HostedLeaf(), HostedMidTier()},
                            .commands = Commands()});
}
