// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/topology_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "curtail/base/read_file.h"

namespace curtail::deploy {
namespace {

constexpr size_t kMaxTopology = 1u << 20;
constexpr int kMostReplicas = 64;

absl::Status Replicate(const TopologyChanges& changes, Topology* topology) {
  int count = 0;
  if (!absl::SimpleAtoi(changes.scale, &count) || count < 1 || count > kMostReplicas) {
    return absl::InvalidArgumentError(
        absl::StrCat("--scale ", changes.scale, ": write how many of each service that scales, 1 to ",
                     kMostReplicas, ", or --scale alone for the size that the paper used"));
  }
  if (changes.monolith) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--scale ", changes.scale, " does not go with --monolith, which has one of each service"));
  }
  return topology->Replicate(count);
}

absl::Status TakeVariants(const TopologyChanges& changes, Topology* topology) {
  if (changes.monolith && (changes.polyglot || !changes.variants.empty())) {
    return absl::InvalidArgumentError(
        "--variant and --polyglot do not go with --monolith, which is one program");
  }
  absl::Status status;
  for (const std::string& text : changes.variants) status.Update(topology->TakeVariant(text));
  if (changes.polyglot) status.Update(topology->TakeVariants());
  return status;
}

absl::Status Group(const TopologyChanges& changes, Topology* topology) {
  if (changes.monolith && !changes.groups.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--group ", changes.groups.front(),
                                                   " does not go with --monolith, which is all services"));
  }
  if (changes.monolith || changes.groups == std::vector<std::string>{kNoGroups}) return absl::OkStatus();
  absl::Status status;
  for (const std::string& text : changes.groups.empty() ? topology->groups : changes.groups)
    if (status.ok()) status = topology->Group(text);
  if (status.ok() || !changes.groups.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(),
                                                  "\nIt is a group of the topology; --group none has none"));
}

}  // namespace

bool IsTopologyFile(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml");
}

absl::Status EnterFolderOf(const std::string& topology) {
  const std::string folder = std::filesystem::path(topology).parent_path().string();
  if (!IsTopologyFile(topology) || folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::current_path(folder, error);
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot enter ", folder, ": ", error.message()));
}

absl::StatusOr<Topology> ReadTopology(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status file = std::filesystem::status(path, error);
  if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file, and so not a topology"));
  }
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxTopology);
  if (!text.ok()) return text.status();
  return Topology::Parse(*text, path);
}

absl::Status Change(const TopologyChanges& changes, Topology* topology) {
  absl::Status status;
  if (!changes.overlay.empty()) {
    const absl::StatusOr<std::string> text = ReadWholeFile(changes.overlay, kMaxTopology);
    status.Update(text.ok() ? topology->Overlay(*text, changes.overlay) : text.status());
  }
  status.Update(TakeVariants(changes, topology));
  if (changes.scale == kPaperScale) {
    status.Update(topology->Scale());
  } else if (!changes.scale.empty()) {
    status.Update(Replicate(changes, topology));
  }
  for (const std::string& store : changes.stores) status.Update(topology->BringIn(store));
  for (const std::string& text : changes.set) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.size() != 2) {
      status.Update(absl::InvalidArgumentError(absl::StrCat("--set '", text, "': write NAME=VALUE")));
    } else {
      status.Update(topology->Set(parts[0], parts[1]));
    }
  }
  for (const std::string& text : changes.use) status.Update(topology->Use(text));
  if (status.ok()) status = topology->LeaveOutAbsent();
  if (status.ok() && changes.monolith) status = topology->MakeMonolith();
  if (status.ok()) status = Group(changes, topology);
  for (const std::string& text : changes.links) status.Update(topology->Link(text));
  for (const std::string& text : changes.exec) status.Update(topology->Wrap(text));
  return status;
}

}  // namespace curtail::deploy
