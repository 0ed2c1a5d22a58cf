// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/commands.h"

#include <memory>
#include <string>

#include "apps/hdsearch/index_flags.h"
#include "apps/hdsearch/offline.h"

namespace curtail::hdsearch {
namespace {

constexpr FlagRange kPositive{1, 1e9};

HostCommand Recall() {
  auto options = std::make_shared<RecallOptions>();
  return {.name = "recall",
          .help = "Compare the index with brute force",
          .flags =
              [options](Flags& flags) {
                flags.Add("--data", &options->data, "The corpus");
                flags.Add("--queries", &options->queries, "Query vectors; those of the corpus by default");
                flags.Add("--count", &options->count, "Queries at most", kPositive);
                flags.Add("--k", &options->k, "Neighbours");
                flags.Add("--threads", &options->threads, "0: one a CPU");
                AddIndexFlags(flags, &options->index);
              },
          .run = [options] { return PrintRecall(*options); }};
}

HostCommand Generate() {
  struct Options {
    std::string data, path;
  };
  auto options = std::make_shared<Options>();
  return {.name = "generate",
          .help = "Write the rows of any data to a file",
          .flags =
              [options](Flags& flags) {
                flags.Add("--data", &options->data, "What to write").Required();
                flags.Add("--out", &options->path, "FILE.fvecs or FILE.npy").Required();
              },
          .run = [options] { return WriteRows(options->data, options->path); }};
}

}  // namespace

std::vector<HostCommand> Commands() { return {Recall(), Generate()}; }

}  // namespace curtail::hdsearch
