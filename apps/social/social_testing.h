// SPDX-License-Identifier: Apache-2.0
//
// social_testing.h - the whole application in processes of its own, and a client.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "apps/kit/temp_dir.h"
#include "curtail/rpc/channel.h"
#include "social.curtail.h"
#include "timelines.curtail.h"

namespace curtail::social {

// One process of the program; it ends with this object, or with the test. Thread-compatible.
class SocialProcess {
 public:
  // Returns when it serves; fails the test if it does not.
  explicit SocialProcess(std::vector<std::string> args);
  ~SocialProcess() { Stop(); }
  SocialProcess(const SocialProcess&) = delete;
  SocialProcess& operator=(const SocialProcess&) = delete;

  // Drains it, and expects that it ends well.
  void Stop();
  void Kill();

 private:
  pid_t pid_ = -1;
};

// The services over Unix sockets and a folder of data.
class SocialDeployment {
 public:
  // `config` of all of them. `monolith`: one process. `flags`: more of each process.
  SocialDeployment(std::string config, bool monolith, std::vector<std::string> flags = {});

  // Of one service; not in a monolith.
  void Kill(const std::string& service);
  void Start(const std::string& service);

  Social::Stub Front() const { return Social::Stub(front_.get()); }
  // Waits until all that was composed is in the home timelines; fails the test if that takes too long.
  void AwaitQueue();

  // A user that is logged in. Fails the test if it cannot.
  Session Register(const std::string& name);
  Post Compose(const Session& by, const std::string& text);
  absl::Status Follow(const Session& by, const std::string& name);
  absl::Status Unfollow(const Session& by, const std::string& name);
  absl::Status Block(const Session& by, const std::string& name);
  absl::Status Unblock(const Session& by, const std::string& name);
  absl::Status Delete(const Session& by, uint64_t post);
  // The ids on all pages, newest first.
  absl::Status Home(const Session& by, std::vector<uint64_t>* ids);
  absl::Status Timeline(const Session& by, const std::string& name, std::vector<uint64_t>* ids);

 private:
  std::string AddressOf(const std::string& service) const;

  const apps::TempDir dir_;
  const std::string config_;
  const bool monolith_;
  const std::vector<std::string> flags_;
  std::map<std::string, std::unique_ptr<SocialProcess>> processes_;
  Client client_;
  std::unique_ptr<Channel> front_, queue_;
};

inline constexpr char kTestPassword[] = "a password";

}  // namespace curtail::social
