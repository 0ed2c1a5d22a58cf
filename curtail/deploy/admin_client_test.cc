// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/admin_client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/rpc/server.h"

namespace curtail::deploy {
namespace {

// Answers every method of the admin interface with the same bytes.
class PeerOfAnotherVersion final : public Service {
 public:
  explicit PeerOfAnotherVersion(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string_view FullName() const override { return "curtail.admin.v1.Admin"; }
  std::vector<MethodHandler> Handlers() override {
    std::vector<MethodHandler> handlers;
    for (const char* name : {"Switch", "GetConfig", "GetStatus", "GetDecisions"}) {
      handlers.push_back({.name = name, .handler = [this](Context&, std::string_view, std::string* reply) {
                            *reply = bytes_;
                            return absl::OkStatus();
                          }});
    }
    return handlers;
  }

 private:
  const std::string bytes_;
};

std::unique_ptr<Server> StartPeer(std::string bytes) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<PeerOfAnotherVersion>(std::move(bytes)));
  ServerOptions options;
  options.listen = {"127.0.0.1:0"};
  auto server = Server::Start(std::move(options), std::move(services));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

void ExpectNamesTheAddress(const absl::Status& status, const std::string& address) {
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_TRUE(Message(status).starts_with(address + ": reply is not a ")) << status;
  EXPECT_TRUE(Message(status).ends_with("; is the server of another version?")) << status;
}

// A length that exceeds the message; a JSON text in field 1, as servers before the typed messages sent; no field at all.
TEST(AdminClient, NamesTheAddressWhoseReplyItCannotRead) {
  for (const std::string& bytes : {std::string("\x12\x7f"), std::string("\x0a\x02{}"), std::string()}) {
    const auto peer = StartPeer(bytes);
    const std::string address = peer->addresses()[0];
    AdminClient client(address);
    ExpectNamesTheAddress(client.GetStatus().status(), address);
    ExpectNamesTheAddress(client.GetDecisions().status(), address);
    if (bytes.starts_with("\x0a")) continue;  // for the other two that field is the config
    ExpectNamesTheAddress(client.GetConfig().status(), address);
    ExpectNamesTheAddress(client.Switch("SIB1").status(), address);
  }
}

TEST(AdminClient, PassesOverFieldsThatItDoesNotKnow) {
  admin::v1::GetStatusReply later;
  later.set_config("SIB1");
  later.set_open_calls(3);
  const auto peer =
      StartPeer(later.SerializeAsString() + "\xa2\x06\x03new" + "\xa8\x06\x07");  // 100: text; 101: 7
  AdminClient client(peer->addresses()[0]);
  const auto status = client.GetStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->config(), "SIB1");
  EXPECT_EQ(status->open_calls(), 3u);
  EXPECT_FALSE(status->has_policy());
}

TEST(AdminClient, AsksAServer) {
  ServerOptions options;
  options.admin = Join("unix:", testing::TempDir(), "admin_client_test.", getpid());
  options.config = *Config::Parse("SIB1");
  auto server = Server::Start(std::move(options), {});
  ASSERT_TRUE(server.ok()) << server.status();
  AdminClient client((*server)->admin_address());
  EXPECT_EQ(client.GetConfig().value_or(""), "SIB1");
  EXPECT_EQ(client.Switch("SDB1-2").value_or(""), "SIB1");
  EXPECT_TRUE(absl::IsInvalidArgument(client.Switch("junk").status()));
  const auto status = client.GetStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->config(), "SDB1-2");
  EXPECT_EQ(status->pools_size(), 2);
  EXPECT_GT(status->process().threads(), 0);
  const auto decisions = client.GetDecisions();
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  EXPECT_EQ(decisions->switches(), 0u);
}

TEST(AdminClient, HearsWhatIsWrongWithItsToken) {
  const auto answer = [](const char* servers, const char* clients) {
    ServerOptions options;
    options.admin = "127.0.0.1:0";
    options.admin_token = servers;
    auto server = Server::Start(std::move(options), {});
    EXPECT_TRUE(server.ok()) << server.status();
    setenv("CURTAIL_ADMIN_TOKEN", clients, 1);
    AdminClient client((*server)->admin_address());
    const absl::Status status = client.Switch("SDB1-2").status();
    unsetenv("CURTAIL_ADMIN_TOKEN");
    return std::string(Message(status));
  };
  EXPECT_EQ(answer("right", "right"), "");
  EXPECT_EQ(answer("right", "wrong"),
            "the server refuses this CURTAIL_ADMIN_TOKEN; set the token that the server was started with");
  EXPECT_TRUE(answer("", "any").starts_with("the server was started without CURTAIL_ADMIN_TOKEN"));
  EXPECT_TRUE(
      answer("right", "").ends_with("set CURTAIL_ADMIN_TOKEN, or use the server's --admin unix:PATH"));
}

}  // namespace
}  // namespace curtail::deploy
