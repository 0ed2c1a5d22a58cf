// SPDX-License-Identifier: Apache-2.0
//
// target.h - the text that names a channel's servers, and the strategies that it chooses from.
//
// A target is "SCHEME:REST", or in short "HOST:PORT". Each scheme is a file beside this one, and a line of the
// table in target.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/resolver.h"

namespace curtail::internal {

// A target, understood.
struct Target {
  // The name of the server in calls: "search.example:8080".
  std::string authority;
  std::unique_ptr<Resolver> resolver;
};

// Longer targets are refused.
inline constexpr size_t kMaxTargetBytes = 4096;

// Understands `text`; looks nothing up. Errors: INVALID_ARGUMENT with the forms expected.
[[nodiscard]] absl::StatusOr<Target> ParseTarget(std::string_view text);

// The strategies. Each gets the text after the scheme and its colon; all of it for ParseShort().
absl::StatusOr<Target> ParseDns(std::string_view rest);
absl::StatusOr<Target> ParseFile(std::string_view rest);
absl::StatusOr<Target> ParseIpv4(std::string_view rest);
absl::StatusOr<Target> ParseIpv6(std::string_view rest);
absl::StatusOr<Target> ParseUnix(std::string_view rest);
absl::StatusOr<Target> ParseUnixAbstract(std::string_view rest);
// "HOST:PORT,...": numeric addresses, two at least.
absl::StatusOr<Target> ParseShortList(std::string_view text);
// "HOST:PORT": a numeric address, or a name to look up.
absl::StatusOr<Target> ParseShort(std::string_view text);

// A resolver that asks several. A part of its answer may be old, or missing.
class PartialResolver : public Resolver {
 public:
  // As Resolve(). `*complete` becomes false if the answer has such a part: then the channel asks again without a
  // connection that fails.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Address>> ResolveParts(bool* complete) = 0;
  absl::StatusOr<std::vector<Address>> Resolve() final {
    bool complete = true;
    return ResolveParts(&complete);
  }
};

// A resolver whose answer is that of `each` together. One that fails contributes its answer before, until it has failed for
// `keeps`: by then another server may have the address. Then it is left out. Errors: that of the first which failed, if all
// are left out.
std::unique_ptr<PartialResolver> Together(std::vector<std::unique_ptr<Resolver>> each,
                                          Nanos keeps = std::chrono::minutes(5));

// The resolvers of all `targets` together. Errors: as ParseTarget().
[[nodiscard]] absl::StatusOr<std::unique_ptr<Resolver>> ParseTargets(const std::vector<std::string>& targets);

// A resolver whose answer is always `addresses`.
std::unique_ptr<Resolver> FixedAddresses(std::vector<Address> addresses);

// The host of an authority "HOST:PORT" or "[HOST]:PORT", as a certificate would name it.
std::string HostOfAuthority(std::string_view authority);

}  // namespace curtail::internal
