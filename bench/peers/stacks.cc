// SPDX-License-Identifier: Apache-2.0
//
// stacks.cc - the names of the stacks, and where each is found.
//
// Programs in other languages lie in the folder `external` beside this one; where one could not be built, a file
// NAME.reason there says why (./dev bench peers writes both).

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/exec/config.h"
#include "stack.h"

namespace curtail::bench {
namespace {

// The Java VM compiles a server's code during its first seconds, on CPUs that it shares with six processes.
constexpr Nanos kJavaWarmUp = std::chrono::seconds(5);
constexpr absl::string_view kCurtailPrefix = "curtail-";

#ifdef CURTAIL_BENCH_GRPC
constexpr char kNoGrpc[] = "";
#else
constexpr char kNoGrpc[] = "not built: no libgrpc++-dev";
#endif
#ifdef CURTAIL_BENCH_THRIFT
constexpr char kNoThrift[] = "";
#else
constexpr char kNoThrift[] = "not built: no libthrift-dev and thrift-compiler";
#endif
#ifdef CURTAIL_BENCH_THRIFT_FIBER
constexpr char kNoThriftFiber[] = "";
#else
constexpr char kNoThriftFiber[] = "not built: no libthrift-dev, thrift-compiler and libboost-fiber-dev";
#endif
#ifdef CURTAIL_BENCH_CAPNP
constexpr char kNoCapnp[] = "";
#else
constexpr char kNoCapnp[] = "not built: no libcapnp-dev and capnproto";
#endif

struct Known {
  const char* name;
  Protocol protocol;
  const char* program;  // in `external`, or null: this one
  const char* missing;
  Nanos warm_up = StackInfo().warm_up;
};

const Known kKnown[] = {
    {"raw-threads", Protocol::kRawConnections, nullptr, ""},
    {"raw-epoll", Protocol::kRawPipelined, nullptr, ""},
    {"grpc-sync", Protocol::kGrpc, nullptr, kNoGrpc},
    {"grpc-callback", Protocol::kGrpc, nullptr, kNoGrpc},
    {"grpc-cq-inline", Protocol::kGrpc, nullptr, kNoGrpc},
    {"grpc-cq-dispatch", Protocol::kGrpc, nullptr, kNoGrpc},
    {"grpc-go", Protocol::kGrpc, "grpc-go", ""},
    {"grpc-java", Protocol::kGrpc, "grpc-java", "", kJavaWarmUp},
    {"tonic-multi", Protocol::kGrpc, "tonic", ""},
    {"tonic-current", Protocol::kGrpc, "tonic", ""},
    {"volo-multi", Protocol::kGrpc, "volo", ""},
    {"volo-current", Protocol::kGrpc, "volo", ""},
    {"thrift-async", Protocol::kThriftConnections, nullptr, kNoThrift},
    {"thrift-fiber", Protocol::kThriftConnections, nullptr, kNoThriftFiber},
    {"capnp", Protocol::kCapnp, nullptr, kNoCapnp},
};

// Where the program is, or why it is not.
void LocateExternal(const char* program, StackInfo* info) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  info->program = here / "external" / program;
  if (access(info->program.c_str(), X_OK) == 0) return;
  std::string reason;
  std::ifstream file(here / "external" / absl::StrCat(program, ".reason"));
  if (!std::getline(file, reason)) reason = "./dev bench peers builds it";
  info->missing = absl::StrCat("not built: ", reason);
}

absl::Status UnknownStack(absl::string_view name) {
  std::vector<std::string> names;
  for (const Known& known : kKnown) names.push_back(known.name);
  return absl::InvalidArgumentError(absl::StrCat(
      "no stack is called \"", name, "\"; there are curtail-CONFIG (curtail-SIP1, curtail-SIP1+mutune), ",
      absl::StrJoin(names, ", ")));
}

// The config and the policy in "SDB1-16+mutune".
std::pair<std::string, std::string> SplitCurtail(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('+', 1));
  return {std::string(parts.first), std::string(parts.second)};
}

absl::StatusOr<StackInfo> DescribeCurtail(absl::string_view name, absl::string_view text) {
  const auto [config, policy] = SplitCurtail(text);
  absl::StatusOr<Config> parsed = Config::Parse(config);
  if (!parsed.ok()) return parsed.status();
  StackInfo info{std::string(name), Protocol::kGrpc, "", ""};
  const absl::StatusOr<PolicySpec> spec = ParsePolicy(policy);
  info.polls = parsed->model.reception == Reception::kPoll || (spec.ok() && spec->kind->toggles_reception);
  return info;
}

}  // namespace

absl::StatusOr<StackInfo> DescribeStack(absl::string_view name) {
  absl::string_view config = name;
  if (absl::ConsumePrefix(&config, kCurtailPrefix)) return DescribeCurtail(name, config);
  for (const Known& known : kKnown) {
    if (name != known.name) continue;
    StackInfo info{known.name, known.protocol, "", known.missing};
    if (known.program != nullptr) LocateExternal(known.program, &info);
    info.warm_up = known.warm_up;
    return info;
  }
  return UnknownStack(name);
}

absl::StatusOr<std::unique_ptr<Stack>> MakeStack(absl::string_view name, const std::string& leaf_config) {
  if (name == "raw-threads") return MakeRawThreads();
  if (name == "raw-epoll") return MakeRawEpoll();
  if (absl::StartsWith(name, kCurtailPrefix)) {
    const auto [config, policy] = SplitCurtail(absl::StripPrefix(name, kCurtailPrefix));
    return MakeCurtail(config, policy, leaf_config);
  }
#ifdef CURTAIL_BENCH_GRPC
  if (name == "grpc-sync") return MakeGrpcSync();
  if (name == "grpc-callback") return MakeGrpcCallback();
  if (name == "grpc-cq-inline") return MakeGrpcQueue(false);
  if (name == "grpc-cq-dispatch") return MakeGrpcQueue(true);
#endif
#ifdef CURTAIL_BENCH_THRIFT
  if (name == "thrift-async") return MakeThriftAsync();
#endif
#ifdef CURTAIL_BENCH_THRIFT_FIBER
  if (name == "thrift-fiber") return MakeThriftFiber();
#endif
#ifdef CURTAIL_BENCH_CAPNP
  if (name == "capnp") return MakeCapnp();
#endif
  return UnknownStack(name);
}

std::vector<std::string> DefaultStacks() {
  std::vector<std::string> names = {"curtail-SIB1", "curtail-SIP1", "curtail-SDB1-16", "curtail-SDP1-16",
                                    "curtail-FIB1", "curtail-FIP1", "curtail-ADB1-4-4"};
  int raw = 0;
  for (const Known& known : kKnown) {
    names.insert(absl::StartsWith(known.name, "raw-") ? names.begin() + raw++ : names.end(), known.name);
  }
  return names;
}

}  // namespace curtail::bench
