// SPDX-License-Identifier: Apache-2.0
//
// stacks.cc - the names of the stacks.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "stack.h"

namespace curtail::bench {
namespace {

constexpr absl::string_view kCurtailPrefix = "curtail-";

#ifdef CURTAIL_BENCH_GRPC
constexpr absl::string_view kGrpcHint = ", grpc-sync, grpc-callback, grpc-cq-inline, grpc-cq-dispatch";
#else
constexpr absl::string_view kGrpcHint = " (built without grpc++: install libgrpc++-dev for its stacks)";
#endif

absl::Status UnknownStack(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat("no stack is called \"", name,
                                                 "\"; there are raw-threads, raw-epoll, curtail-CONFIG "
                                                 "(curtail-SIP1)",
                                                 kGrpcHint));
}

}  // namespace

absl::StatusOr<StackInfo> DescribeStack(absl::string_view name) {
  if (name == "raw-threads") return StackInfo{std::string(name), Protocol::kRawConnections};
  if (name == "raw-epoll") return StackInfo{std::string(name), Protocol::kRawPipelined};
  absl::StatusOr<std::unique_ptr<Stack>> stack = MakeStack(name, "SIB1");
  if (!stack.ok()) return stack.status();
  return StackInfo{std::string(name), Protocol::kGrpc};
}

absl::StatusOr<std::unique_ptr<Stack>> MakeStack(absl::string_view name, const std::string& leaf_config) {
  if (name == "raw-threads") return MakeRawThreads();
  if (name == "raw-epoll") return MakeRawEpoll();
  if (absl::StartsWith(name, kCurtailPrefix)) {
    return MakeCurtail(std::string(absl::StripPrefix(name, kCurtailPrefix)), leaf_config);
  }
#ifdef CURTAIL_BENCH_GRPC
  if (name == "grpc-sync") return MakeGrpcSync();
  if (name == "grpc-callback") return MakeGrpcCallback();
  if (name == "grpc-cq-inline") return MakeGrpcQueue(false);
  if (name == "grpc-cq-dispatch") return MakeGrpcQueue(true);
#endif
  return UnknownStack(name);
}

std::vector<std::string> DefaultStacks() {
  std::vector<std::string> names = {"raw-threads",     "raw-epoll",       "curtail-SIB1", "curtail-SIP1",
                                    "curtail-SDB1-16", "curtail-SDP1-16", "curtail-FIB1", "curtail-FIP1"};
#ifdef CURTAIL_BENCH_GRPC
  names.insert(names.end(), {"grpc-sync", "grpc-callback", "grpc-cq-inline", "grpc-cq-dispatch"});
#endif
  return names;
}

}  // namespace curtail::bench
