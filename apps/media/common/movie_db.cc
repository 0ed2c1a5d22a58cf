// SPDX-License-Identifier: Apache-2.0
#include "apps/media/common/movie_db.h"
#include "curtail/base/mix.h"

#include <memory>

namespace curtail::media {

SqlDatabase& MovieDb::Of(const std::string& key) const {
  uint64_t hash = 0;
  for (const char c : key) hash = Mix(hash, static_cast<unsigned char>(c));
  return *shards_[hash % shards_.size()];
}

HostedService HostedOnMovieDb(std::string name, std::vector<std::string> schema,
                              std::function<MadeService(Env& env, MovieDb db)> make) {
  struct Options {
    apps::DataOptions data;
    uint32_t shards = 1;
  };
  auto options = std::make_shared<Options>();
  options->data.application = kApplication;
  return {.name = name,
          .flags =
              [options](Flags& flags) {
                apps::AddDataFlags(flags, &options->data);
                flags.Add("--movie-db-shards", &options->shards, "Of the store movie-db", {1, 64});
              },
          .make = [=](Env& env) -> MadeService {
            auto shards = apps::OpenShards(env, options->data, name, "movie-db", options->shards, schema);
            if (!shards.ok()) return shards.status();
            return make(env, MovieDb(*std::move(shards)));
          }};
}

}  // namespace curtail::media
