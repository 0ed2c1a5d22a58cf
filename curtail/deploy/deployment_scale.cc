// SPDX-License-Identifier: Apache-2.0
//
// More and fewer instances of a service while it serves, and the files from which its callers learn of them.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "curtail/deploy/deployment.h"

namespace curtail::deploy {
namespace {

// Callers look for changes every 0.2 s.
constexpr Nanos kUntilUnknown = std::chrono::milliseconds(600);
constexpr Nanos kLeaveGrace = std::chrono::seconds(20);
constexpr int kMaxReplicas = 256;

}  // namespace

absl::Status Deployment::Scale(const std::string& service, int count) {
  const ServiceSpec* spec = topology_.Find(service);
  if (spec == nullptr || !spec->ScalesWhileServing()) {
    std::vector<std::string> names;
    for (const ServiceSpec& s : topology_.services) {
      if (s.ScalesWhileServing()) names.push_back(s.name);
    }
    return absl::FailedPreconditionError(absl::StrCat(
        service, " does not scale while it serves; ",
        names.empty() ? "no service does (scales: true in the topology)" : absl::StrJoin(names, ", ")));
  }
  if (count < 1 || count > kMaxReplicas) {
    return absl::InvalidArgumentError(
        absl::StrCat(service, ": from 1 to ", kMaxReplicas, " instances, not ", count));
  }
  int there = 0;
  for (const Instance& instance : instances_) there += instance.service == spec ? 1 : 0;
  for (; there < count; ++there) {
    Instance& next = Add(*spec, there);  // which Tend() starts
    next.state = Instance::State::kEnded;
    next.left = true;
  }
  wanted_[service] = count;
  return absl::OkStatus();
}

bool Deployment::Rescale(Instance& instance) {
  const auto wanted = wanted_.find(instance.service->name);
  if (wanted == wanted_.end()) return false;
  const Nanos since = Now() - instance.since;
  const bool surplus = instance.number >= wanted->second;
  switch (instance.state) {
    case Instance::State::kStarting:
    case Instance::State::kReady:
    case Instance::State::kWaiting:
      if (surplus) {
        if (!Register(instance, false).ok()) return false;
        instance.registered = false;
        Enter(instance, Instance::State::kLeaving);
      } else if (instance.state == Instance::State::kReady && !instance.registered) {
        instance.registered = Register(instance, true).ok();
        if (instance.service->cpu > 0) instance.cpu_group->Limit(instance.service->cpu).IgnoreError();
      }
      return surplus;
    case Instance::State::kLeaving:
      if (instance.process != nullptr) {
        if (since < kUntilUnknown) return true;
        instance.process->BeginToEnd();
        if (instance.process->Running() && since < kUntilUnknown + kLeaveGrace) return true;
        instance.process->Terminate(Nanos(0));
      }
      RemoveSockets(instance);
      instance.left = true;
      Enter(instance, Instance::State::kEnded);
      return true;
    case Instance::State::kEnded:
    case Instance::State::kExternal:
      if (surplus || !instance.left) return true;
      instance.left = false;
      if (absl::Status spawned = Spawn(instance, options_.launch); !spawned.ok()) {
        instance.problem = std::string(spawned.message());
        Enter(instance, Instance::State::kWaiting);
      }
      return true;
  }
  return false;
}

absl::Status Deployment::Register(const Instance& instance, bool there) {
  std::vector<std::string>& addresses = addresses_[instance.service->name];
  std::erase(addresses, instance.address);
  if (there) addresses.push_back(instance.address);
  return WriteRegistered(instance.service->name);
}

absl::Status Deployment::WriteRegistered(const std::string& service) const {
  const auto found = addresses_.find(service);
  const bool known = found != addresses_.end() && topology_.Find(service)->ScalesWhileServing();
  if (!options_.registry || !known) return absl::OkStatus();
  const std::string path = RegisteredAt(options_.folder, service);
  const std::string next = absl::StrCat(path, ".new");
  std::ofstream out(next);
  out << absl::StrJoin(found->second, "\n") << "\n";
  out.close();
  if (out.good() && rename(next.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(path, " cannot be written: ", std::generic_category().message(errno)));
}

}  // namespace curtail::deploy
