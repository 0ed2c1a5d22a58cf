// SPDX-License-Identifier: Apache-2.0
//
// `curtail failover`: the standby of a store becomes its primary while the application serves.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/shipped/application.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/process/process.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

struct FailoverFlags {
  std::string target;  // APP/STORE, or APP/STORE.SHARD
};

int Refuse(Console& console, const std::string& problem, const std::string& hint) {
  console.Error(problem, hint);
  return kBadConfig;
}

// True if a store of the shipped application can fail over once it is up.
bool HasStandbys(const std::string& application) {
  if (!apps::IsApplication(application)) return false;
  const absl::StatusOr<deploy::Topology> topology = apps::LoadTopology(application);
  return topology.ok() &&
         std::ranges::any_of(topology->services, [](const auto& s) { return !s.failover.empty(); });
}

// The replicas of one shard of a store that can fail over.
struct Replicas {
  int count = 0;
  std::vector<std::string> command;
};

// Of the applications' processes: "movie-db-1.0" is replica 0 of shard 1. Sets `stores` to the stores that can fail over.
std::map<std::string, Replicas> ShardsOf(const UpState& state, const std::string& store,
                                         std::set<std::string>* stores) {
  std::map<std::string, Replicas> shards;
  for (const ProcessState& process : state.processes) {
    if (process.failover.empty()) continue;
    stores->insert(process.service);
    if (process.service != store) continue;
    const std::string instance = process.name.substr(std::min(process.name.size(), store.size() + 1));
    Replicas& replicas = shards[instance.substr(0, instance.find('.'))];
    ++replicas.count;
    replicas.command = process.failover;
  }
  return shards;
}

// Runs the command that the topology has for the store in this process's place. Returns the exit code if that fails.
int RunFailover(const FailoverFlags& flags, Console& console) {
  const size_t slash = flags.target.find('/');
  const std::string application = flags.target.substr(0, slash);
  const std::string wanted = slash == std::string::npos ? "" : flags.target.substr(slash + 1);
  const size_t dot = wanted.find('.');
  const std::string store = wanted.substr(0, dot), shard = dot == wanted.npos ? "" : wanted.substr(dot + 1);
  const absl::StatusOr<UpState> state = ReadUpState(application);
  if (!state.ok()) return Refuse(console, std::string(Message(state.status())), "");
  std::set<std::string> stores;
  std::map<std::string, Replicas> shards = ShardsOf(*state, store, &stores);
  if (shards.empty()) {
    return Refuse(
        console,
        absl::StrCat(application, " has no store ", store, " that can fail over",
                     stores.empty() ? "" : absl::StrCat("; there are ", absl::StrJoin(stores, ", "))),
        stores.empty() && HasStandbys(application)
            ? absl::StrCat("curtail up ", application, " --stores postgresql --set postgresql.replicas=2")
        : stores.empty()
            ? "in its topology such a store has replicas: 2 and the key failover; see docs/topology.md"
            : "");
  }
  if (shard.empty() ? shards.size() > 1 : !shards.contains(shard)) {
    return Refuse(console, absl::StrCat(store, " has ", shards.size(), " shards"),
                  absl::StrCat("name one: ", application, "/", store, ".", shards.begin()->first));
  }
  Replicas& replicas = shard.empty() ? shards.begin()->second : shards[shard];
  if (replicas.count < 2) {
    return Refuse(console, absl::StrCat(flags.target, " has one replica, and no standby"),
                  absl::StrCat("start the application with --set ", store, ".replicas=2"));
  }
  // Relative paths of a topology begin where the process is that looks after it.
  if (chdir(absl::StrCat("/proc/", state->pid, "/cwd").c_str()) != 0)
    return Refuse(console, absl::StrCat(application, " has just ended"),
                  absl::StrCat("start it again: curtail up ", application));
  console.Error(std::string(Message(deploy::BecomeProgram(std::move(replicas.command)))), "");
  return kFailed;
}

}  // namespace

Command AddFailover(CLI::App& app) {
  const auto f = std::make_shared<FailoverFlags>();
  CLI::App* command =
      app.add_subcommand("failover", "Make the standby of a store its primary while the application serves");
  command
      ->add_option("APP/STORE", f->target,
                   "A store of two replicas, of an application that is up; APP/STORE.0: shard 0 of several")
      ->required();
  command->footer(
      "The primary is ended, or killed if it does not answer. The standby becomes the primary, and the "
      "former\n"
      "primary its standby. Nothing that was acknowledged is lost. If the standby may lack some of it, "
      "nothing\n"
      "changes, and the command exits with 104.\n"
      "Examples:\n"
      "  curtail up bank --stores postgresql --set postgresql.replicas=2 --detach\n"
      "  curtail failover bank/postgresql\n"
      "  curtail failover media/movie-db.1");
  return {command, [f](const Invocation& given) { return RunFailover(*f, given.console); }};
}

}  // namespace curtail::tool
