// SPDX-License-Identifier: Apache-2.0
//
// admin_client.h - calls of a server's admin interface.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/rpc/channel.h"

namespace curtail::admin::v1 {
class GetDecisionsReply;
class GetStatusReply;
}  // namespace curtail::admin::v1

namespace curtail::deploy {

// An AdminClient calls curtail.admin.v1.Admin (curtail/rpc/admin/admin.proto) of one server, with
// the token that the environment has as CURTAIL_ADMIN_TOKEN, if there is one; callers that read a
// message include admin.pb.h. Thread-compatible. Errors: the server's own; as Channel::Call().
// INTERNAL names the address: the reply cannot be read, or lacks a field that every server of this
// version sets.
class AdminClient {
 public:
  explicit AdminClient(std::string target) : channel_(&client_, std::move(target)) {}

  // The config in force.
  absl::StatusOr<std::string> GetConfig(Nanos timeout = kTimeout);
  // Puts a config in force; returns the one before.
  absl::StatusOr<std::string> Switch(const std::string& config);
  // Changes the level of the log; an empty one stays. Returns the one before.
  absl::StatusOr<std::string> SetLogLevel(const std::string& level);
  absl::StatusOr<admin::v1::GetStatusReply> GetStatus();
  absl::StatusOr<admin::v1::GetDecisionsReply> GetDecisions();

 private:
  static constexpr Nanos kTimeout = std::chrono::seconds(5);

  Client client_;
  Channel channel_;
};

}  // namespace curtail::deploy
