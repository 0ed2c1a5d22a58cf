// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/commands.h"

#include <memory>
#include <string>

#include "apps/setalgebra/offline.h"

namespace curtail::setalgebra {
namespace {

void AddDataFlags(Flags& flags, OfflineOptions* options) {
  flags.Add("--data", &options->data, "The collection");
  flags.Add("--threads", &options->threads, "0: one a CPU", {0, 1024});
  flags.Add("--quiet", &options->quiet, "No progress on stderr");
}

void AddStopWordsFlag(Flags& flags, OfflineOptions* options) {
  flags.Add("--stop-words", &options->stop_words, "So many words are not indexed");
}

HostCommand Query() {
  struct Options {
    OfflineOptions offline;
    std::vector<std::string> terms;
    size_t show = 10;
  };
  auto options = std::make_shared<Options>();
  return {.name = "query",
          .help = "Answer a query without servers",
          .flags =
              [options](Flags& flags) {
                flags.Add("TERM", &options->terms, "1 to 10 words").Required();
                flags.Add("--show", &options->show, "Print so many documents");
                AddDataFlags(flags, &options->offline);
                AddStopWordsFlag(flags, &options->offline);
              },
          .run = [options] { return PrintQuery(options->offline, options->terms, options->show); }};
}

HostCommand Stats() {
  struct Options {
    OfflineOptions offline;
    size_t shards = 1;
  };
  auto options = std::make_shared<Options>();
  return {.name = "stats",
          .help = "Print the size of the index and the stop words",
          .flags =
              [options](Flags& flags) {
                flags.Add("--shards", &options->shards, "Parts of the collection",
                          {1, static_cast<double>(kMaxShards)});
                AddDataFlags(flags, &options->offline);
                AddStopWordsFlag(flags, &options->offline);
              },
          .run = [options] { return PrintStats(options->offline, options->shards); }};
}

HostCommand Generate() {
  struct Options {
    OfflineOptions offline;
    std::string path;
  };
  auto options = std::make_shared<Options>();
  return {.name = "generate",
          .help = "Write the documents of any data to a file, one a line",
          .flags =
              [options](Flags& flags) {
                AddDataFlags(flags, &options->offline);
                flags.Add("--out", &options->path, "The file").Required();
              },
          .run = [options] { return WriteDocuments(options->offline, options->path); }};
}

}  // namespace

std::vector<HostCommand> Commands() { return {Query(), Stats(), Generate()}; }

}  // namespace curtail::setalgebra
