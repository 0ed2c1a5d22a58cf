// SPDX-License-Identifier: Apache-2.0
//
// policy_kind.h - describes policies: the name, the factory, and the events of each.
//
// One PolicyKind stands beside each policy. A table (internal/policies.h) lists the library's; a
// program hands its own to ServerOptions::policies. docs/design/adaptation.md shows how to add one.
//
// Thread safety: any thread may call all functions; none blocks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "curtail/adapt/envelope.h"
#include "curtail/adapt/policy.h"
#include "curtail/adapt/profile.h"
#include "curtail/base/clock.h"
#include "curtail/exec/config.h"

namespace curtail {

// How a policy uses a profile.
enum class ProfileUse {
  kNone,
  kOptional,        // to begin with
  kUnlessArgument,  // only where no argument takes its place
  kRequired,
};

// A policy is made from this. Its references are valid during PolicyKind::make() only.
struct PolicyRequest {
  std::string_view argument;  // the text after the colon; empty without one
  const Profile* profile;     // never null under ProfileUse::kRequired
  ConfigFilter runs;          // tells under which configs the service and the server can run
  const PolicyOptions& options;

  // Reads a config, such as the argument. Errors: INVALID_ARGUMENT when `text` is none, or `runs`
  // refuses it.
  absl::StatusOr<Config> RunnableConfig(std::string_view text) const;
};

// A PolicyKind describes one policy. It is a constant: it outlives each server and each policy that
// is made from it.
struct PolicyKind {
  std::string_view name;  // the user writes it; no other policy has it
  std::string_view
      // As help texts show it: ":CONFIG" if required, "[:CONFIG]" if optional, "" if refused
      argument;
  std::string_view summary;  // one line for help texts
  // Errors: INVALID_ARGUMENT that says what is missing. MakePolicy() puts the policy's name before
  // the message.
  absl::StatusOr<std::unique_ptr<Policy>> (*make)(const PolicyRequest& request) = nullptr;

  ProfileUse profile = ProfileUse::kNone;
  // False: the first choice holds forever, and the server asks no more.
  bool switches = true;
  // The server measures latencies for Signals::window. The policy needs time until it has seen
  // enough of them.
  bool latencies = false;
  // The policy is asked at each change of Signals::blocked. The server carries out its first choice
  // in full, and only the reception of later ones.
  bool toggles_reception = false;
  // The policy is asked at one arrival of this many, and at some that follow suspiciously soon.
  // Rounded up to a power of two.
  int evaluate_every = 8;
  // The policy is asked this often, in silence too. Zero: about every 20 ms, and less often in
  // silence.
  Nanos tick{0};
  // Tells which configs the policy may choose, of all that the service can run under; null: all.
  bool (*chooses)(const Config& config) = nullptr;
  // `curtail compare` takes the policy when the user names none.
  bool compared = false;
};

using PolicyKinds = std::span<const PolicyKind* const>;

// The library's policies, in the order of help texts.
PolicyKinds LibraryPolicies();

// The library's policies and `own`, as in "static:CONFIG, mutune and online".
std::string PolicyNames(PolicyKinds own = {});
// A line for each, with its summary; each begins with `indent` and ends with a newline.
std::string PolicyHelp(std::string_view indent, PolicyKinds own = {});
// The name of the library's first policy that uses a profile like this, for hints.
std::string_view PolicyThatUses(ProfileUse profile);
// The text of the policy that stays at `config`: "static:SIP1".
std::string FixedPolicy(const Config& config);

// A policy as the user names it. Valid as long as the text and the kinds that it was parsed from.
struct PolicySpec {
  std::string_view text;  // NAME or NAME:ARGUMENT
  std::string_view argument;
  const PolicyKind* kind;

  // Such a policy cannot be made without a profile.
  bool NeedsProfile() const;
  // Such a policy looks at a profile, if it is given one.
  bool TakesProfile() const;
};

// Looks `text` up among the library's policies and `own`. Errors: INVALID_ARGUMENT that names the
// known ones; also when one of `own` has the name of another policy.
absl::StatusOr<PolicySpec> ParsePolicy(std::string_view text, PolicyKinds own = {});

// Makes a policy. `profile` may be null unless spec.NeedsProfile(); it is not used after the call.
// Errors: INVALID_ARGUMENT that says what is missing or would be right.
absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(const PolicySpec& spec, const Profile* profile,
                                                   const PolicyOptions& options);
// The same for the text of one of the library's.
absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view text, const Profile* profile,
                                                   const PolicyOptions& options);

}  // namespace curtail
