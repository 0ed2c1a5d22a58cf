// SPDX-License-Identifier: Apache-2.0
//
// router_testing.h - both tiers in one process over real sockets, and a memcached process for each leaf.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "apps/router/replica_set.h"
#include "apps/router/router_service.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/server.h"
#include "curtail/store/store_testing.h"
#include "router.curtail.h"

namespace curtail::router {

inline constexpr Nanos kPatience = kMaxTestWait;

// A replica that is not meant to fail has this long, so that a slow machine ejects none.
inline ReplicaOptions Patient(int replicas) {
  return {.replicas = replicas, .get_timeout = kPatience, .write_timeout = kPatience};
}
// Where one is meant to.
inline ReplicaOptions Impatient(int replicas) {
  return {.replicas = replicas,
          .get_timeout = std::chrono::milliseconds(300),
          .write_timeout = std::chrono::milliseconds(300),
          .probe_interval = std::chrono::milliseconds(20)};
}

// The replies that a handler would be given of leaves that answered so.
template <class Reply>
Replies<Reply> Answers(const std::vector<absl::StatusOr<Reply>>& results) {
  auto set = Recycler<internal::ReplySet<Reply>>::Borrow();
  set->Prepare(results.size());
  for (size_t i = 0; i < results.size(); ++i) set->results[i] = results[i];
  return Replies<Reply>(std::move(set));
}

// `config` is the threading model of all servers.
class Deployment {
 public:
  Deployment(const std::string& config, size_t shards, ReplicaOptions options);

  absl::Status Set(const std::string& key, const std::string& value, SetReply* reply,
                   Nanos patience = kPatience);
  // Fails the test when it fails.
  SetReply Set(const std::string& key, const std::string& value);
  absl::Status Get(const std::string& key, GetReply* reply, Nanos patience = kPatience);
  // The value, "(none)", or the error.
  std::string Get(const std::string& key);
  absl::Status Delete(const std::string& key, DeleteReply* reply);
  std::vector<Replica> Replicas();

  MemcachedProcess& memcached(size_t leaf) { return memcacheds_[leaf]; }
  Channel* leaf(size_t i) { return channels_[i].get(); }
  Server& leaf_server(size_t i) { return *leaves_[i]; }
  void StopLeaf(size_t i) { leaves_[i].reset(); }
  // Ends the mid-tier with all it knows and starts another one, which waits for silent leaves for `patience`. Returns
  // what it has found out.
  std::vector<std::string> RestartMidTier(Nanos patience = kPatience);
  Channel* front() { return front_.get(); }
  Routing& routing() { return routing_; }
  ReplicaSet& replicas() { return *routing_.replicas; }

 private:
  std::vector<std::string> StartMidTier(Nanos patience);

  // Immutable after construction.
  const std::string config_;
  const ReplicaOptions options_;

  TempDir dir_;
  std::deque<MemcachedProcess> memcacheds_;
  std::vector<std::unique_ptr<Server>> leaves_;
  Client client_, front_client_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Channel> front_;
  Routing routing_;
  std::unique_ptr<Server> mid_tier_;  // stops before what it calls
};

}  // namespace curtail::router
