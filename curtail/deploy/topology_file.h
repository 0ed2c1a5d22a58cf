// SPDX-License-Identifier: Apache-2.0
//
// topology_file.h - a topology that is read from a file, and what a command line changes in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/deploy/topology.h"

namespace curtail::deploy {

// True if it is the path of a topology: it has a '/' or ends in .yaml.
bool IsTopologyFile(std::string_view name);
// A topology means the same from everywhere: relative paths in it begin at its own folder, where
// its processes run. This process goes there, if the name is a file's. Errors: INVALID_ARGUMENT.
absl::Status EnterFolderOf(const std::string& name);
// The topology in a file. Errors: NOT_FOUND, INVALID_ARGUMENT (not a regular file), and as
// Topology::Parse().
absl::StatusOr<Topology> ReadTopology(const std::string& path);

// The changes that a command line makes to a topology.
struct TopologyChanges {
  std::string overlay = {};                // a file, see Topology::Overlay(); comes first
  std::vector<std::string> set = {};       // "leaf.shards=8", "data=..."
  std::vector<std::string> use = {};       // "store=127.0.0.1:11211"
  std::vector<std::string> links = {};     // "user>post=delay=5ms"
  std::vector<std::string> exec = {};      // "user=perf record -o /tmp/user.data"
  std::vector<std::string> variants = {};  // "cart=java"
  bool polyglot = false;                   // every variant whose tools are there
  // "text,count", in place of the topology's own groups; kNoGroups: each service alone.
  std::vector<std::string> groups = {};
  bool monolith = false;
  std::string scale = {};                // kPaperScale, or how many of each service that scales
  std::vector<std::string> stores = {};  // optional ones that are to be there: "postgresql"
};
inline constexpr char kPaperScale[] = "paper";
inline constexpr char kNoGroups[] = "none";
// The same without groups, for commands that treat each service alone.
inline TopologyChanges ServicesAlone(TopologyChanges changes) {
  if (!changes.monolith) changes.groups = {kNoGroups};
  return changes;
}
// Makes them. Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, as the overlay's file.
absl::Status Change(const TopologyChanges& changes, Topology* topology);

}  // namespace curtail::deploy
