// SPDX-License-Identifier: Apache-2.0
//
// many_servers_testing.h - servers that say their names, and a list of them that the test changes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {

inline constexpr Method<StringValue, StringValue> kWho{"/test.Who/Who"};

// Answers with its name; "hang" waits at the gate first, and "fail N" fails on the server N.
class WhoService final : public Service {
 public:
  WhoService(std::string name, Gate* gate) : name_(std::move(name)), gate_(gate) {}
  std::string_view FullName() const override { return "test.Who"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Who",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [this](Context&, const StringValue& in, StringValue* out) -> absl::Status {
                   if (in.value() == "hang") gate_->Pass();
                   if (in.value() == "fail " + name_) return absl::InternalError("as the test wants it");
                   out->set_value(name_);
                   return absl::OkStatus();
                 })}};
  }

 private:
  const std::string name_;
  Gate* const gate_;
};

// The addresses that the test says.
class ListResolver final : public Resolver {
 public:
  explicit ListResolver(Nanos max_age = Nanos::zero()) : max_age_(max_age) {}
  Nanos max_age() const override { return max_age_; }
  void Set(std::vector<std::string> addresses) {
    std::lock_guard lock(mu_);
    addresses_ = std::move(addresses);
  }
  int asked() {
    std::lock_guard lock(mu_);
    return asked_;
  }
  absl::StatusOr<std::vector<Address>> Resolve() override {
    std::lock_guard lock(mu_);
    ++asked_;
    if (addresses_.empty()) return absl::UnavailableError("the list is empty");
    std::vector<Address> found;
    for (const std::string& text : addresses_) found.push_back(*Address::Resolve(text));
    return found;
  }

 private:
  const Nanos max_age_;
  std::mutex mu_;
  int asked_ = 0;
  std::vector<std::string> addresses_;
};

// Servers "0", "1", ... that may be stopped and started again at their addresses.
class ManyServers {
 public:
  explicit ManyServers(size_t n) {
    for (size_t i = 0; i < n; ++i) Start(i);
  }
  ~ManyServers() { gate_.Open(); }

  void Start(size_t i) {
    if (servers_.size() <= i) servers_.resize(i + 1), addresses_.resize(i + 1, OwnLoopback());
    ServerOptions options;
    options.listen = {addresses_[i]};
    options.config = *Config::Parse("SDB1-4");
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<WhoService>(std::to_string(i), &gate_));
    auto server = Server::Start(std::move(options), std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    servers_[i] = *std::move(server);
    addresses_[i] = servers_[i]->addresses()[0];
  }
  // As at a rolling update: requests in flight end.
  void Stop(size_t i) {
    EXPECT_TRUE(servers_[i]->Drain(Deadline::In(kMaxTestWait)).ok());
    servers_[i].reset();
  }
  Server& operator[](size_t i) { return *servers_[i]; }
  Gate& gate() { return gate_; }
  std::vector<std::string> Addresses(const std::vector<size_t>& which) const {
    std::vector<std::string> all;
    for (const size_t i : which) all.push_back(addresses_[i]);
    return all;
  }
  std::string Target() const {
    std::string text;
    for (const std::string& address : addresses_) text += (text.empty() ? "ipv4:" : ",") + address;
    return text;
  }

 private:
  Gate gate_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Server>> servers_;
};

// The name of the server that answers; `key` is metadata that a balancer may go by.
inline absl::StatusOr<std::string> Ask(Channel& channel, const std::string& text = "",
                                       const std::string& key = "") {
  Context ctx(kMaxTestWait);
  if (!key.empty()) ctx.AddMetadata("x-user", key);
  StringValue reply;
  const absl::Status status = channel.Call(ctx, kWho.path, Text(text), &reply);
  if (!status.ok()) return status;
  return reply.value();
}

// How many of the calls each server answered.
using Counts = std::map<std::string, int>;

// Calls until `enough` says so of the counts, for as long as a test may wait. Each call must succeed.
inline Counts CallUntil(const std::function<absl::StatusOr<std::string>()>& call,
                        const std::function<bool(const Counts&)>& enough) {
  Counts counts;
  for (const Deadline end = Deadline::In(kMaxTestWait); !enough(counts);) {
    const absl::StatusOr<std::string> who = call();
    EXPECT_TRUE(who.ok()) << who.status();
    if (who.ok()) ++counts[*who];
    if (end.Expired()) {
      ADD_FAILURE() << "waited in vain for the right servers to answer";
      break;
    }
  }
  return counts;
}

}  // namespace curtail
