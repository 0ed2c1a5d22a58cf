// SPDX-License-Identifier: Apache-2.0
//
// setalgebra: document search. A process serves one of its services, or runs an offline command.
#include "apps/setalgebra/commands.h"
#include "apps/setalgebra/leaf_service.h"
#include "apps/setalgebra/query_service.h"

constexpr char kExamples[] = R"(Data (--data):
  wordnet[:FOLDER]                        the glosses of WordNet, of Debian's package wordnet-base
  FILE.txt  FILE.gz  FILE.bz2  lines:FILE one document a line
  wikitext:FILE                           WikiText: articles that begin with ' = Title = '
  wikipedia:FILE                          a dump of MediaWiki (XML), plain, .gz or .bz2
  synthetic:N=100000,words=50000,length=12,skew=1,seed=7

Examples:
  setalgebra --service leaf --shard 0/2 --listen 127.0.0.1:7001
  setalgebra --service mid-tier --leaf 127.0.0.1:7001 --leaf 127.0.0.1:7002 --config SDB1-16
  setalgebra --monolith --instances leaf=4 --listen 127.0.0.1:7000 --config FIB1
  setalgebra query red fruit
  setalgebra stats --data wikipedia:enwiki-latest-pages-articles.xml.bz2 --shards 4
  setalgebra generate --data synthetic:N=1000000,words=100000,seed=7 --out documents.txt

Exit codes: 0 ok, 104 bad configuration (a flag, a file, an address).)";

int main(int argc, char** argv) {
  using namespace curtail::setalgebra;
  return curtail::HostMain(
      argc, argv,
      {.name = "setalgebra",
       .title = "Document search: the documents that hold all words, over sharded leaves.",
       .examples = kExamples,
       .services = {HostedLeaf(), HostedMidTier()},
       .commands = Commands()});
}
