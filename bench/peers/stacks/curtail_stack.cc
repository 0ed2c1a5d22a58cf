// SPDX-License-Identifier: Apache-2.0
//
// curtail_stack.cc - the fan-out as a curtail service: the threading model by name, and the policy that
// watches over it.

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "bench/common/one_config_profile.h"
#include "bench/peers/stack.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/server.h"
#include "fanout.curtail.h"

namespace curtail::bench {
namespace {

class LeafService final : public Leaf::Service {
 public:
  LeafService() : Leaf::Service(/*never_waits=*/true) {}

 private:
  absl::Status Null(Context&, const Blob& request, Blob* reply) override {
    *reply = request;
    return absl::OkStatus();
  }
};

class Leaves {
 public:
  Leaves(Client* client, const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) {
      owned_.push_back(std::make_unique<Channel>(client, address));
      channels_.push_back(owned_.back().get());
    }
  }
  const std::vector<Channel*>& channels() const { return channels_; }

  // The answer to the fan-out: any of the replies, if all came.
  static absl::Status Merge(Replies<Blob> replies, Blob* reply) {
    for (const absl::StatusOr<Blob>& one : replies) {
      if (!one.ok()) return one.status();
    }
    reply->Swap(&*replies[0]);
    return absl::OkStatus();
  }

 private:
  std::vector<std::unique_ptr<Channel>> owned_;
  std::vector<Channel*> channels_;
};

class MidService final : public Mid::CoroutineService {
 public:
  explicit MidService(const Leaves& leaves) : leaves_(leaves) {}

  Coroutine Query(Context& ctx, const Blob& request, Blob* reply) override {
    auto replies = co_await broadcast(ctx, leaves_.channels(), Leaf::kNull, request);
    co_return Leaves::Merge(std::move(replies), reply);
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Query", {Leaf::kServiceName}}}; }

 private:
  const Leaves& leaves_;
};

// A file with a unique name, deleted with the object.
class TempFile {
 public:
  explicit TempFile(const std::string& text) {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "peers-profile-XXXXXX").string();
    const int fd = error ? -1 : mkstemp(name.data());
    if (fd < 0) return;
    close(fd);
    path_ = name;
    std::ofstream(path_) << text;
  }
  ~TempFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

absl::StatusOr<std::unique_ptr<Server>> StartServer(const Config& config, const std::string& policy,
                                                    std::vector<std::unique_ptr<Service>> services) {
  ServerOptions options;
  options.config = config;
  if (policy.starts_with("trace=")) {
    options.trace = {.to = "memory", .sample = ParseNumber(policy.substr(6)).value_or(1)};
    return Server::Start(std::move(options), std::move(services));
  }
  if (policy == "metrics") {
    options.http_admin = std::string("0");  // g++ 12 warns of the assignment of a literal
    return Server::Start(std::move(options), std::move(services));
  }
  if (policy.starts_with("fence=")) {
    options.fence = {.mode = FenceMode::kOn, .limit = policy.substr(6)};
    return Server::Start(std::move(options), std::move(services));
  }
  options.policy = policy;
  if (policy.empty()) return Server::Start(std::move(options), std::move(services));
  absl::StatusOr<std::string> profile = OneConfigProfile(config, services[0]->FullName());
  if (!profile.ok()) return profile.status();
  const TempFile file(*profile);
  options.profile = file.path();
  return Server::Start(std::move(options), std::move(services));
}

absl::Status Serve(const Config& config, const std::string& policy,
                   std::vector<std::unique_ptr<Service>> services, const Ready& ready) {
  absl::StatusOr<std::unique_ptr<Server>> server = StartServer(config, policy, std::move(services));
  if (!server.ok()) return server.status();
  ready((*server)->addresses()[0]);
  while (true) pause();
}

class CurtailStack final : public Stack {
 public:
  CurtailStack(const Config& mid, std::string policy, const Config& leaf)
      : mid_(mid), policy_(std::move(policy)), leaf_(leaf) {}

  absl::Status RunLeaf(const Ready& ready) override {
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<LeafService>());
    return Serve(leaf_, "", std::move(services), ready);
  }
  absl::Status RunMid(const std::vector<std::string>& addresses, const Ready& ready) override {
    Client client;
    const Leaves leaves(&client, addresses);
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<MidService>(leaves));
    return Serve(mid_, policy_, std::move(services), ready);
  }

 private:
  const Config mid_;
  const std::string policy_;
  const Config leaf_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Stack>> MakeCurtail(const std::string& config, const std::string& policy,
                                                   const std::string& leaf_config) {
  absl::StatusOr<Config> mid = Config::Parse(config);
  if (!mid.ok()) return mid.status();
  absl::StatusOr<Config> leaf = Config::Parse(leaf_config);
  if (!leaf.ok()) return leaf.status();
  return std::make_unique<CurtailStack>(*mid, policy, *leaf);
}

}  // namespace curtail::bench
