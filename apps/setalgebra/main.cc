// SPDX-License-Identifier: Apache-2.0
//
// setalgebra: one service of the document search a process, and the offline tools around it.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/common/serve_flags.h"
#include "apps/common/shard.h"
#include "apps/setalgebra/offline.h"
#include "apps/setalgebra/serve.h"

namespace {

using namespace curtail::setalgebra;
namespace apps = curtail::apps;

constexpr char kExamples[] = R"(Data (--data):
  wordnet[:FOLDER]                        the glosses of WordNet, of Debian's package wordnet-base
  FILE.txt  FILE.gz  FILE.bz2  lines:FILE one document a line
  wikitext:FILE                           WikiText: articles that begin with ' = Title = '
  wikipedia:FILE                          a dump of MediaWiki (XML), plain, .gz or .bz2
  synthetic:N=100000,words=50000,length=12,skew=1,seed=7

Examples:
  setalgebra --service leaf --shard 0/4 --listen 127.0.0.1:7001 --config SIB1
  setalgebra --service mid-tier --leaf 127.0.0.1:7001 --leaf 127.0.0.1:7002 --leaf 127.0.0.1:7003 \
             --leaf 127.0.0.1:7004 --listen 127.0.0.1:7000 --config SDB1-16
  setalgebra query red fruit
  setalgebra stats --data wikipedia:enwiki-latest-pages-articles.xml.bz2 --shards 4
  setalgebra generate --data synthetic:N=1000000,words=100000,seed=7 --out documents.txt

Exit codes: 0 ok, 104 bad configuration (a flag, a file, an address).)";

void AddServiceFlags(CLI::App& app, ServeOptions* serve) {
  apps::AddServeFlags(app, serve);
  app.add_option("--data", serve->data, "leaf: the collection; the same for all leaves")
      ->capture_default_str();
  app.add_option("--shard", serve->shard, "leaf: which part of the collection, INDEX/COUNT")
      ->capture_default_str();
  app.add_option("--stop-words", serve->stop_words,
                 "leaf: so many words, the most frequent, are not indexed; the same for all leaves")
      ->capture_default_str();
  app.add_option("--threads", serve->threads, "leaf: threads while loading, 0: one a CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--leaf", serve->leaves, "mid-tier: address of a leaf; repeat in shard order")
      ->allow_extra_args(false);
  app.add_option("--lanes", serve->lanes, "mid-tier: sets of connections to the leaves")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--leaf-timeout", serve->leaf_timeout_ms,
                 "mid-tier: ms after which a leaf counts as failed, 0: when the request's time is up")
      ->check(CLI::Range(0.0, 3.6e6))
      ->capture_default_str();
}

void AddDataFlags(CLI::App& app, OfflineOptions* options) {
  app.add_option("--data", options->data, "The collection")->capture_default_str();
  app.add_option("--threads", options->threads, "0: one a CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--quiet", options->quiet, "No progress on stderr");
}

int ExitCode(const absl::Status& status) { return apps::ExitCode("setalgebra", status); }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Document search: the documents that hold all words, over sharded leaves.", "setalgebra");
  app.footer(kExamples);
  ServeOptions serve;
  AddServiceFlags(app, &serve);

  OfflineOptions offline;
  std::vector<std::string> terms;
  size_t show = 10, shards = 1;
  CLI::App* query = app.add_subcommand("query", "Answer a query without servers");
  query->add_option("TERM", terms, "1 to 10 words")->required();
  query->add_option("--show", show, "Print so many documents")->capture_default_str();
  CLI::App* stats = app.add_subcommand("stats", "Print the size of the index and the stop words");
  stats->add_option("--shards", shards, "Parts of the collection")
      ->check(CLI::Range(size_t{1}, curtail::apps::kMaxShards))
      ->capture_default_str();
  for (CLI::App* command : {query, stats}) {
    AddDataFlags(*command, &offline);
    command->add_option("--stop-words", offline.stop_words, "So many words are not indexed")
        ->capture_default_str();
  }
  std::string path;
  CLI::App* generate =
      app.add_subcommand("generate", "Write the documents of any data to a file, one a line");
  AddDataFlags(*generate, &offline);
  generate->add_option("--out", path, "The file")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : apps::kBadConfiguration;
  }
  if (*query) return ExitCode(PrintQuery(offline, terms, show));
  if (*stats) return ExitCode(PrintStats(offline, shards));
  if (*generate) return ExitCode(WriteDocuments(offline, path));
  return apps::RunTier(
      "setalgebra", serve,
      {{"leaf", [&] { return ServeLeaf(serve); }, [&] { return LeafMemory(serve); }},
       {"mid-tier", [&] { return ServeMidTier(serve); }, [&] { return MidTierMemory(serve); }}});
}
