// SPDX-License-Identifier: Apache-2.0
//
// hdsearch: one service of the image search a process, and the offline tools around it.
#include <CLI/CLI.hpp>
#include <string>

#include "apps/common/serve_flags.h"
#include "apps/hdsearch/offline.h"
#include "apps/hdsearch/serve.h"

namespace {

using namespace curtail::hdsearch;
namespace apps = curtail::apps;

constexpr char kExamples[] = R"(Data (--data, --queries):
  fashion-mnist[:test]   FILE.fvecs   FILE.npy   FILE.idx[.gz]   FILE-ubyte[.gz]   raw:FILE,D=2048
  synthetic:N=500000,D=2048,seed=7,clusters=1000

Examples:
  hdsearch --service leaf --shard 0/4 --listen 127.0.0.1:7001 --config SIB1
  hdsearch --service mid-tier --leaf 127.0.0.1:7001 --leaf 127.0.0.1:7002 --leaf 127.0.0.1:7003 \
           --leaf 127.0.0.1:7004 --listen 127.0.0.1:7000 --config SDB1-16
  hdsearch --service mid-tier --leaf 127.0.0.1:7001 --listen 127.0.0.1:7000 --policy online --slo 5
  hdsearch recall --data fashion-mnist --k 10
  hdsearch generate --data synthetic:N=100000,D=256,seed=7 --out corpus.fvecs

Exit codes: 0 ok, 104 bad configuration (a flag, a file, an address).)";

void AddIndexFlags(CLI::App& app, IndexOptions* index) {
  app.add_option("--tables", index->tables, "Hash tables")->capture_default_str();
  app.add_option("--key-bits", index->key_bits, "Bits a table keys on, 0: by the corpus's size")
      ->capture_default_str();
  app.add_option("--signature-bits", index->signature_bits, "Bits that rank candidates")
      ->capture_default_str();
  app.add_option("--probes", index->probes, "Buckets visited a query")->capture_default_str();
  app.add_option("--candidates", index->candidates, "Images compared a query")->capture_default_str();
  app.add_option("--index-seed", index->seed, "Seed of the hyperplanes")->capture_default_str();
}

void AddServiceFlags(CLI::App& app, ServeOptions* serve) {
  apps::AddServeFlags(app, serve);
  app.add_option("--data", serve->data, "The corpus; the same for all services")->capture_default_str();
  app.add_option("--shard", serve->shard, "leaf: which part of the corpus, INDEX/COUNT")
      ->capture_default_str();
  app.add_option("--leaf", serve->leaves, "mid-tier: address of a leaf; repeat in shard order")
      ->allow_extra_args(false);
  app.add_option("--lanes", serve->lanes, "mid-tier: sets of connections to the leaves")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--threads", serve->threads, "Threads while loading, 0: one a CPU")->capture_default_str();
  AddIndexFlags(app, &serve->index);
}

int ExitCode(const absl::Status& status) { return apps::ExitCode("hdsearch", status); }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Image search: k nearest neighbours over sharded leaves.", "hdsearch");
  app.footer(kExamples);
  ServeOptions serve;
  AddServiceFlags(app, &serve);

  RecallOptions recall;
  CLI::App* recall_command = app.add_subcommand("recall", "Compare the index with brute force");
  recall_command->add_option("--data", recall.data, "The corpus")->capture_default_str();
  recall_command->add_option("--queries", recall.queries, "Query vectors; those of the corpus by default");
  recall_command->add_option("--count", recall.count, "Queries at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  recall_command->add_option("--k", recall.k, "Neighbours")->capture_default_str();
  recall_command->add_option("--threads", recall.threads, "0: one a CPU")->capture_default_str();
  AddIndexFlags(*recall_command, &recall.index);

  std::string generate_data, generate_path;
  CLI::App* generate_command = app.add_subcommand("generate", "Write the rows of any data to a file");
  generate_command->add_option("--data", generate_data, "What to write")->required();
  generate_command->add_option("--out", generate_path, "FILE.fvecs or FILE.npy")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : apps::kBadConfiguration;
  }
  if (*recall_command) return ExitCode(PrintRecall(recall));
  if (*generate_command) return ExitCode(WriteRows(generate_data, generate_path));
  return apps::RunTier(
      "hdsearch", serve,
      {{"leaf", [&] { return ServeLeaf(serve); }, [&] { return LeafMemory(serve); }},
       {"mid-tier", [&] { return ServeMidTier(serve); }, [&] { return MidTierMemory(serve); }}});
}
