// SPDX-License-Identifier: Apache-2.0
//
// hosted_timeline.h - what the services of the two timelines have in common, as programs.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "apps/social/common/timeline_store.h"
#include "apps/social/data.h"
#include "curtail/rpc/host.h"

namespace curtail::social {

// `Service` is made of its TimelineStore and the Env. The store is its Redis (StoreOf()), if there is one, else a file.
// `trimmed`: it keeps as many entries as an option says, instead of all.
template <class Service>
HostedService HostedTimeline(std::string name, bool trimmed) {
  struct Options {
    Data data;
    uint64_t length = 0;
  };
  auto options = std::make_shared<Options>();
  if (trimmed) options->length = 1000;
  HostedService hosted;
  hosted.name = name;
  hosted.flags = [options, trimmed](Flags& flags) {
    apps::AddDataFlags(flags, &options->data);
    if (trimmed)
      flags.Add("--timeline-length", &options->length, "Entries of a home timeline that are kept", {1, 1e6});
  };
  hosted.make = [options, name = std::move(name)](Env& env) -> MadeService {
    if (const std::vector<std::string>& redis = apps::StoreOf(env, name, "redis"); !redis.empty()) {
      auto address = StoreAddress::Parse(redis.front());
      if (!address.ok()) return address.status();
      return std::make_unique<Service>(MakeRedisTimelines(*std::move(address), name, options->length), env);
    }
    auto db = apps::OpenData(env, options->data, name, {kTimelineSchema});
    if (!db.ok()) return db.status();
    return std::make_unique<Service>(MakeSqlTimelines(*db, options->length), env);
  };
  return hosted;
}

}  // namespace curtail::social
