// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/up/up_checks.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/deployment.h"
#include "curtail/deploy/find_program.h"
#include "curtail/exec/address.h"
#include "tools/curtail/train/profile_file.h"

namespace curtail::tool {
namespace {

using deploy::ServiceSpec;

absl::Status Of(const ServiceSpec& service, const absl::Status& why) {
  if (why.ok()) return why;
  return absl::InvalidArgumentError(Join(service.name, ": ", Message(why)));
}

// Its value is not known yet.
bool HasVariable(const std::string& text) { return text.find("${") != text.npos; }

absl::Status CheckPolicy(const std::string& policy, bool shipped) {
  const absl::Status parsed = ParsePolicy(policy).status();
  if (parsed.ok() || shipped) return parsed;
  // It may be one of the program's own.
  std::vector<std::string> names;
  for (const PolicyKind* kind : LibraryPolicies()) names.emplace_back(kind->name);
  const std::string meant = internal::DidYouMean(policy, names);
  if (meant.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(Join("unknown policy \"", policy, "\"", meant));
}

absl::Status CheckService(const ServiceSpec& s, bool shipped) {
  if (!s.policy.empty() && !HasVariable(s.policy)) {
    if (absl::Status status = CheckPolicy(s.policy, shipped); !status.ok()) return status;
  }
  if (!s.profile.empty() && !HasVariable(s.profile)) {
    const absl::Status read = ReadProfileFile(s.profile, /*any_machine=*/true).status();
    if (!read.ok()) return read;
  }
  for (const std::string& cpus : s.cpus) {
    if (absl::Status status = deploy::ParseCpus(cpus).status(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckProgram(const std::string& program) {
  if (HasVariable(program)) return absl::OkStatus();
  const absl::StatusOr<std::string> path = deploy::FindProgram(program);
  if (!path.ok()) return path.status();
  if (access(path->c_str(), X_OK) == 0) return absl::OkStatus();
  const int why = errno;
  std::error_code error;
  const std::string from = path->starts_with('/')
                               ? ""
                               : Join("; the path starts at ", std::filesystem::current_path(error).string());
  return absl::NotFoundError(
      Join("cannot run ", program, ": ", std::strerror(why), from, "; build it first"));
}

}  // namespace

absl::Status CheckServices(const deploy::Topology& topology, bool shipped) {
  for (const ServiceSpec& s : topology.services) {
    if (!s.external.empty()) continue;
    if (absl::Status status = Of(s, CheckService(s, shipped)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckPrograms(const deploy::Topology& topology) {
  for (const ServiceSpec& s : topology.services) {
    if (!s.external.empty() || s.instances() == 0) continue;
    if (absl::Status status = CheckProgram(s.run.front()); !status.ok()) return status;
    if (s.wrapper.empty()) continue;
    if (absl::Status status = CheckProgram(s.wrapper.front()); !status.ok())
      return absl::NotFoundError(Join("--exec: ", Message(status)));
  }
  return absl::OkStatus();
}

absl::Status CheckDashboard(const std::string& text) {
  int port = 0;
  const std::string address = absl::SimpleAtoi(text, &port) ? Join("127.0.0.1:", text) : text;
  if (text.empty() || Address::NeedsLookup(address)) return absl::OkStatus();
  const absl::Status status = Address::Resolve(address).status();
  if (status.ok()) return status;
  return absl::InvalidArgumentError(Join("--dashboard: ", Message(status)));
}

}  // namespace curtail::tool
