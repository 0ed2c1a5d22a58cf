// SPDX-License-Identifier: Apache-2.0
//
// topology_testing.h - topologies from texts, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "curtail/deploy/topology.h"

namespace curtail::deploy {

// Stores in shards, each with a leaf of its own, and whoever calls the leaves.
inline constexpr char kStores[] = R"(application: kv
title: a store
variables: {size: 64, data: a b}
scale: {size: 512, leaf.shards: 16, store.shards: 16}
services:
  mid-tier:          # named before what it calls
    run: kv --service mid-tier --replicas ${leaf.replicas}
    calls: {leaf: --leaf}
    config: SDB1-16
    entry: true
  leaf:
    run: kv --service leaf --data ${data} --shard ${shard}/${leaf.shards}
    own: {store: --store}
    shards: 2
    replicas: 2
    cpus: [0, "0-1"]
  store:
    run: memcached -s ${address} -m ${size}
    protocol: memcached
    shards: 2
    replicas: 2
    memory_mib: 80
prepare: kv load --target ${entry}
)";

inline Topology Parsed(std::string_view yaml) {
  absl::StatusOr<Topology> topology = Topology::Parse(yaml, "t.yaml");
  EXPECT_TRUE(topology.ok()) << topology.status();
  return topology.ok() ? *std::move(topology) : Topology();
}

// The error of a text that is wrong.
inline std::string Problem(std::string_view yaml) {
  const absl::StatusOr<Topology> topology = Topology::Parse(yaml, "t.yaml");
  EXPECT_FALSE(topology.ok()) << yaml;
  return std::string(topology.status().message());
}

}  // namespace curtail::deploy
