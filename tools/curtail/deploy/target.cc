// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/target.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/shipped/application.h"
#include "curtail/base/internal/closest.h"

namespace curtail::tool {
namespace {

// True if `name` is `asked`, or a part of it: "leaf-1.0" of "leaf-1" and of "leaf", but "post-cache" not of "post".
bool IsPartOf(std::string_view name, std::string_view asked) {
  if (!name.starts_with(asked)) return false;
  const std::string_view rest = name.substr(asked.size());
  const bool number = rest.size() > 1 && absl::ascii_isdigit(static_cast<unsigned char>(rest[1]));
  return rest.empty() || (number && (rest[0] == '-' || rest[0] == '.'));
}

absl::Status NoProcess(const UpState& state, std::string_view asked) {
  std::map<std::string, int> services;
  std::vector<std::string> names, texts;
  for (const ProcessState& p : state.processes) {
    ++services[p.service];
    names.push_back(p.name);
  }
  for (const auto& [service, count] : services) {
    names.push_back(service);
    texts.push_back(count == 1 ? service : absl::StrCat(service, " (", count, ")"));
  }
  return absl::NotFoundError(absl::StrCat(state.application, " has no service or process ",
                                          std::string(asked), "; there are ", absl::StrJoin(texts, ", "),
                                          internal::DidYouMean(asked, names)));
}

}  // namespace

bool IsAddress(std::string_view text) { return text.find(':') != std::string_view::npos; }

bool NamesProcess(std::string_view asked, std::string_view name) {
  std::string instance(asked);
  if (const size_t dot = instance.find('.'); dot != std::string::npos) instance[dot] = '-';
  if (IsPartOf(name, asked) || IsPartOf(name, instance)) return true;
  const std::vector<std::string> group = absl::StrSplit(std::string(name), '+');
  return std::ranges::find(group, asked) != group.end();
}

std::string InstanceMeant(std::string_view asked, const std::vector<std::string>& names) {
  const size_t dot = asked.find('.');
  if (dot == std::string_view::npos) return std::string(asked);
  const std::string service(asked.substr(0, dot)), shard = service + "-0.";
  bool one_shard = false;
  for (const std::string& name : names) {
    if (!IsPartOf(name, service) || name == service)
      continue;  // the first of one that was scaled has no number
    if (!name.starts_with(shard)) return std::string(asked);
    one_shard = true;
  }
  return one_shard ? absl::StrCat(service, "-0", std::string(asked.substr(dot))) : std::string(asked);
}

absl::StatusOr<std::vector<ProcessState>> FindProcesses(std::string_view target) {
  const size_t slash = std::min(target.find('/'), target.size());
  absl::StatusOr<UpState> state = ReadUpState(std::string(target.substr(0, slash)));
  if (!state.ok()) return state.status();
  std::string asked(target.substr(std::min(slash + 1, target.size())));
  if (asked.empty()) {
    const auto entry = std::find_if(state->processes.begin(), state->processes.end(), [&](const auto& p) {
      return !state->entry.empty() && p.address == state->entry;
    });
    if (entry == state->processes.end()) {
      return absl::NotFoundError(absl::StrCat(state->application, " is not ready yet"));
    }
    asked = entry->service;
  }
  std::vector<std::string> names;
  for (const ProcessState& process : state->processes) names.push_back(process.name);
  asked = InstanceMeant(asked, names);
  std::vector<ProcessState> found;
  for (const ProcessState& process : state->processes) {
    if (NamesProcess(asked, process.name)) found.push_back(process);
  }
  if (found.empty()) return NoProcess(*state, target.substr(std::min(slash + 1, target.size())));
  return found;
}

absl::StatusOr<std::vector<std::string>> ToAddresses(const std::vector<std::string>& targets) {
  std::vector<std::string> addresses;
  for (const std::string& target : targets) {
    if (IsAddress(target)) {
      addresses.push_back(target);
      continue;
    }
    const absl::StatusOr<std::vector<ProcessState>> processes = FindProcesses(target);
    if (!processes.ok()) {
      const bool named = target.find('/') != target.npos || apps::IsApplication(target) || WasUp(target);
      if (named || absl::StrContains(processes.status().message(), "did you mean")) return processes.status();
      return absl::NotFoundError(
          absl::StrCat("\"", target, "\" has no port, and no application has this name; write HOST:PORT"));
    }
    for (const ProcessState& process : *processes) addresses.push_back(process.address);
  }
  return addresses;
}

absl::StatusOr<std::vector<AdminTarget>> ToAdmins(const std::string& target) {
  if (IsAddress(target)) return std::vector<AdminTarget>{{"", target}};
  const absl::StatusOr<std::vector<ProcessState>> processes = FindProcesses(target);
  if (!processes.ok()) return processes.status();
  std::vector<AdminTarget> admins;
  for (const ProcessState& process : *processes) {
    if (process.admin.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          process.name, " has no admin interface; only curtail services that are started here have"));
    }
    admins.push_back({process.name, process.admin});
  }
  return admins;
}

}  // namespace curtail::tool
