// SPDX-License-Identifier: Apache-2.0
//
// resolver.h - the source of a channel's server addresses.
//
// The library has one for each form of a target (docs/channels.md). Write another for a directory
// of your own, and give it in ChannelOptions::resolver.
//
// Code: client/resolver/.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/exec/address.h"

namespace curtail {

// A Resolver says where the servers of a channel are. Thread-safe.
class Resolver {
 public:
  virtual ~Resolver() = default;

  // The addresses at present: at least one; the channel uses the first kMaxAddresses of them. May
  // block. The first caller asks for the first answer and waits for it. A thread of the client's
  // own asks again after a connection has failed, but not within
  // ChannelOptions::min_resolve_interval of the answer before.
  // Errors: any; the channel goes on with the answer before.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Address>> Resolve() = 0;

  // False if every answer is the same, so that there is no need to ask twice.
  virtual bool Changes() const { return true; }

  // The channel asks again at this age of an answer, even if no connection has failed; zero: never.
  // ChannelOptions::min_resolve_interval does not apply then.
  virtual Nanos max_age() const { return Nanos::zero(); }

  static constexpr size_t kMaxAddresses = 1024;
};

}  // namespace curtail
