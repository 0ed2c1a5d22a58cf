// SPDX-License-Identifier: Apache-2.0
//
// fleet.h - the servers of the soak test, and what befalls them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/rng.h"
#include "curtail/rpc/admin/admin.curtail.h"
#include "curtail/rpc/channel.h"
#include "process.h"

namespace curtail::soak {

// The fate of the servers so far.
struct Events {
  uint64_t switches = 0;
  uint64_t kills = 0;
  uint64_t terminations = 0;
};

// A Fleet is four servers: "leaf"; "steady", which runs all the time; "plain" and "tls", which end and start again.
// All but the leaf switch their threading models. Thread-compatible.
class Fleet {
 public:
  // The certificate is for localhost. Files lie in `folder`.
  Fleet(const std::string& folder, const std::string& program, const std::string& certificate,
        const std::string& key);

  absl::Status Start();
  // Something befalls a server, by chance. Errors: what the server did wrong.
  absl::Status Disturb(Rng& rng);
  // INTERNAL if a server has died by itself.
  absl::Status CheckAllRun();
  // Waits until the steady server has no calls and holds nothing. Errors: DEADLINE_EXCEEDED.
  absl::Status AwaitRest();
  // Ends all by SIGTERM.
  absl::Status Stop();

  const Events& events() const { return events_; }
  const ServerProcess& leaf() const { return leaf_; }
  const ServerProcess& steady() const { return steady_; }
  // Targets of channels.
  std::string steady_target() const { return Socket("steady"); }
  std::string plain_target() const { return Socket("plain"); }
  const std::string& plain_tcp() const { return plain_.address(); }
  const std::string& tls_tcp() const { return tls_.address(); }

 private:
  std::string Socket(const std::string& server) const { return "unix:" + folder_ + "/" + server; }
  std::vector<std::string> Arguments(const std::string& server, std::vector<std::string> more) const;
  absl::Status Switch(const std::string& server, const std::string& config, bool must);
  absl::Status Restart(ServerProcess& server, bool kill);

  const std::string folder_;
  const std::string program_;
  ServerProcess leaf_;
  ServerProcess steady_;
  ServerProcess plain_;
  ServerProcess tls_;
  Client client_;  // of the admin interfaces
  Events events_;
};

}  // namespace curtail::soak
