// SPDX-License-Identifier: Apache-2.0
//
// movie_db.h - the data of movies: a file a service, or a schema a service in each shard of `movie-db`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/accounts/id_source.h"
#include "apps/media/data.h"

namespace curtail::media {

// A MovieDb has its rows by the hash of a key, or of an id. Thread-safe.
class MovieDb {
 public:
  explicit MovieDb(std::vector<SqlDatabase*> shards) : shards_(std::move(shards)) {}
  const std::vector<SqlDatabase*>& shards() const { return shards_; }
  size_t IndexOf(uint64_t id) const { return apps::PartOf(id, shards_.size()); }
  SqlDatabase& Of(uint64_t id) const { return *shards_[IndexOf(id)]; }
  // The same for every process and version.
  SqlDatabase& Of(const std::string& key) const;

 private:
  const std::vector<SqlDatabase*> shards_;
};

// A service that keeps movies by `schema`: made of a MovieDb and its Env by `make`.
HostedService HostedOnMovieDb(std::string name, std::vector<std::string> schema,
                              std::function<MadeService(Env& env, MovieDb db)> make);

}  // namespace curtail::media
