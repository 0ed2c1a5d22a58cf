// SPDX-License-Identifier: Apache-2.0
//
// router: one service of the router a process, and the tool that fills it.
#include <CLI/CLI.hpp>
#include <string>

#include "apps/common/serve_flags.h"
#include "apps/router/serve.h"

namespace {

using namespace curtail::router;
namespace apps = curtail::apps;

constexpr char kExamples[] = R"(Examples, two shards of two replicas and a memcached for each leaf:
  memcached -s /tmp/m0 -I 2m &
  router --service leaf --memcached unix:/tmp/m0 --listen 127.0.0.1:7001 --config SIB1
  router --service mid-tier --replicas 2 --leaf 127.0.0.1:7001 --leaf 127.0.0.1:7002 \
         --leaf 127.0.0.1:7003 --leaf 127.0.0.1:7004 --listen 127.0.0.1:7000 --config SDB1-16
  router load --target 127.0.0.1:7000 --records 10000

Leaves 7001 and 7002 are the replicas of shard 0 here, 7003 and 7004 those of shard 1.
Exit codes: 0 ok, 104 bad configuration (a flag, a file, an address), or a set failed (load).)";

void AddServiceFlags(CLI::App& app, ServeOptions* serve) {
  apps::AddServeFlags(app, serve);
  app.add_option("--memcached", serve->memcached,
                 "leaf: the memcached that only this leaf uses, HOST:PORT or unix:PATH; start it with -I 2m")
      ->capture_default_str();
  app.add_option("--connections", serve->connections,
                 "leaf: connections to memcached at most; fiber models: from each thread")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--leaf", serve->leaves,
                 "mid-tier: address of a leaf; repeat, the replicas of shard 0 first, then those of shard 1")
      ->allow_extra_args(false);
  app.add_option("--replicas", serve->replicas, "mid-tier: leaves that hold a shard")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app.add_option("--lanes", serve->lanes, "mid-tier: sets of connections to the leaves")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--get-timeout", serve->get_timeout_ms,
                 "mid-tier: ms a replica may take over a get before another is asked")
      ->check(CLI::Range(1.0, 60000.0))
      ->capture_default_str();
  app.add_option("--write-timeout", serve->write_timeout_ms,
                 "mid-tier: ms a replica may take over a write before it is ejected")
      ->check(CLI::Range(1.0, 60000.0))
      ->capture_default_str();
  app.add_option("--probe", serve->probe_ms, "mid-tier: ms between looks at an ejected replica")
      ->check(CLI::Range(1.0, 60000.0))
      ->capture_default_str();
}

void AddWorkloadFlags(CLI::App& app, WorkloadOptions* workload) {
  app.add_option("--workload", workload->workload, "YCSB's a, b, c, d, f, or a .properties file")
      ->capture_default_str();
  app.add_option("--records", workload->records, "How many, 0: as the workload says (letters: 10000)")
      ->capture_default_str();
  app.add_option("--value-bytes", workload->value_bytes, "Of each, 0: as the workload says (letters: 1000)")
      ->capture_default_str();
}

int ExitCode(const absl::Status& status) { return apps::ExitCode("router", status); }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Key-value store: keys spread over shards and replicas of memcached.", "router");
  app.footer(kExamples);
  ServeOptions serve;
  AddServiceFlags(app, &serve);

  FillOptions fill;
  CLI::App* load_command = app.add_subcommand("load", "Set all records of a workload");
  load_command->add_option("--target", fill.target, "Address of the mid-tier")->required();
  AddWorkloadFlags(*load_command, &fill.workload);
  load_command->add_option("--in-flight", fill.in_flight, "Sets at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  load_command->add_option("--timeout", fill.timeout_s, "Seconds a set may take")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  load_command->add_flag("--quiet", fill.quiet, "No progress on stderr");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : apps::kBadConfiguration;
  }
  if (*load_command) return ExitCode(Fill(fill));
  return apps::RunTier(
      "router", serve,
      {{"leaf", [&] { return ServeLeaf(serve); }, [&] { return LeafMemory(serve); }},
       {"mid-tier", [&] { return ServeMidTier(serve); }, [&] { return MidTierMemory(serve); }}});
}
