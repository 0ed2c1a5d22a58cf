// SPDX-License-Identifier: Apache-2.0
//
// load_flags.h - the flags of `curtail load` as they are given; load_setup.h says what they come to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::tool {

// The files of a result, and the conditions for it.
struct ResultFlags {
  // Files; empty: not written.
  std::string json;
  std::string html;
  std::string hgrm;
  std::string csv;
  std::string junit;
  std::string raw;
  std::string fail_if;
};

struct LoadFlags : ResultFlags {
  std::vector<std::string> targets;  // addresses; the first may be the name of an application
  std::optional<int> connections;
  std::string balancer = "pick_first";
  bool tls = false;
  std::string ca;
  std::string cert;
  std::string key;
  std::string server_name;
  bool insecure = false;
  std::vector<std::string> metadata;

  bool kubernetes = false;
  std::string cluster_namespace;  // empty: kubectl's

  double rps = 0;
  int closed = 0;
  int threads = 1;
  std::string share;      // "2/3"
  std::string start_at;   // empty: now
  uint64_t requests = 0;  // 0: as many as the duration holds
  std::string schedule;
  std::string arrivals = "poisson";
  double rate_scale = 1;
  double time_scale = 1;
  std::string duration;  // empty: 10 s, or what the trace takes
  std::string warmup;    // empty: 2 s, or none with `requests`
  std::string timeout = "1s";
  int retries = 0;
  std::string spin = "auto";
  uint64_t seed = 1;
  int repeat = 1;
  bool realtime = true;

  std::string journey;  // a file
  std::string method;
  int stream = 0;    // streams, or messages of one; 0: the method is unary
  std::string verb;  // of HTTP
  bool http2 = false;
  std::string data;
  std::string data_hex;
  std::string data_binary;
  std::vector<std::string> protos;
  std::vector<std::string> import_paths;
  std::string pick = "in-turn";
  std::vector<std::string> checks;
  // Of an application.
  std::string corpus;
  std::map<std::string, std::string> own;  // by the names of OwnOptions()
  int leaves = 0;
  size_t judged = 1000;

  std::string trace_to;
  double trace_sample = 1;
  std::string command;             // the command line, without secrets
  std::vector<std::string> given;  // with `kubernetes`: the flags, each "--flag=value"
  std::string find_max;
  std::string admin;
  bool dry_run = false;
  bool debug = false;
  bool list = false;
};

// Returns `why` with the flag in front: "--rps: ...".
absl::Status FlagError(std::string_view flag, const absl::Status& why);

// The bytes of --data-hex or --data-binary; empty without either. An error names the flag.
absl::StatusOr<std::string> ReadBytes(const LoadFlags& flags);

}  // namespace curtail::tool
