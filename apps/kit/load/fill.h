// SPDX-License-Identifier: Apache-2.0
//
// fill.h - commands that fill an application through the service that clients call, and the sessions that they leave for load
// tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/kit/load/target.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/flags.h"

namespace curtail::apps {

struct FillTarget {
  Target target;
  std::string data = "auto";  // the folder for the sessions
  uint64_t seed = 1;
  int threads = 8;
  double timeout_s = 20;  // of one call
  bool quiet = false;
};

void AddFillFlags(Flags& flags, FillTarget* options);

// Calls step(i, channel) for each number below `count`, on several threads with a connection each. Errors: of the target's
// flags; the first of a step, which names its number.
absl::Status ForAll(const FillTarget& options, const std::string& what, uint64_t count,
                    const std::function<absl::Status(uint64_t, Channel&)>& step);

// The password of a generated user. Known to whoever knows the seed: for load tests only.
std::string PasswordOf(uint64_t seed, uint64_t user);

// Registers a generated user, or logs it in if it is there. Sets `*is_new`.
template <class Stub, class Credentials, class Session>
absl::Status Enter(const FillTarget& options, const Stub& stub, const Credentials& credentials,
                   Session* session, bool* is_new) {
  Context ctx(FromSeconds(options.timeout_s));
  const absl::Status status = stub.Register(ctx, credentials, session);
  *is_new = status.ok();
  if (!absl::IsAlreadyExists(status)) return status;
  Context again(FromSeconds(options.timeout_s));
  return stub.Login(again, credentials, session);
}

// A user's session, for load tests.
struct LoadUser {
  uint64_t id = 0;
  std::string name;
  std::string token;
  std::vector<std::string> more = {};  // words that the application's requests need
};
// FOLDER/load-users, readable to this user only. Errors: NOT_FOUND with what to do; INTERNAL.
absl::Status WriteLoadUsers(const std::string& folder, const std::vector<LoadUser>& users);
absl::StatusOr<std::vector<LoadUser>> ReadLoadUsers(const std::string& folder, std::string_view application);

}  // namespace curtail::apps
