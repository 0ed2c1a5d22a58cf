// SPDX-License-Identifier: Apache-2.0
//
// access_testing.h - a service that clients call, with the services behind it in the process.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "access_testing.curtail.h"
#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/accounts/sessions.h"
#include "apps/kit/accounts/signed_token.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/in_process.h"
#include "curtail/rpc/server.h"

namespace curtail::apps {

// The users: 7, "seven", is there; 8 was deleted. Sessions of the number 1 were ended.
struct UsersForTest final : User::CoroutineService {
  Coroutine CheckSession(Context&, const SessionId& request, Nothing*) override {
    checks.fetch_add(1);
    co_return request.number() == 1 ? absl::UnauthenticatedError("the session was ended") : absl::OkStatus();
  }
  Coroutine ById(Context&, const Ids& request, People* reply) override {
    if (request.ids(0) == 7) reply->add_people()->set_id(7);
    co_return absl::OkStatus();
  }
  Coroutine ByName(Context&, const Names& request, People* reply) override {
    if (request.names(0) == "seven") reply->add_people()->set_id(7);
    co_return absl::OkStatus();
  }
  std::atomic<int> checks{0};
};

// Returns what it gets, and the name of the request.
struct BackForTest final : test::Back::CoroutineService {
  Coroutine Echo(Context& ctx, const test::Filled& request, test::Filled* reply) override {
    *reply = request;
    reply->set_request_name(std::string(ctx.metadata().Find("idempotency-key").value_or("")));
    co_return request.text() == "fail" ? absl::NotFoundError("no such thing") : absl::OkStatus();
  }
  Coroutine Drop(Context&, const test::Held& request, Nothing*) override {
    co_return request.id() == 7 ? absl::OkStatus() : absl::InvalidArgumentError("another caller");
  }
};

class AccessTest : public testing::TestWithParam<const char*> {
 protected:
  AccessTest() {
    EXPECT_TRUE(users_.Serve(user_service_).ok());
    EXPECT_TRUE(back_.Serve(back_service_).ok());
    LoadSessions(nullptr);
  }

  void LoadSessions(std::unique_ptr<Cache> cache) {
    auto sessions = Sessions::Load(data_, User::Stub(&user_), std::move(cache));
    EXPECT_TRUE(sessions.ok()) << sessions.status();
    sessions_ = std::make_unique<Sessions>(*std::move(sessions));
  }

  std::string Token(uint64_t user, int number = 0, std::string_view end = "") const {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const int64_t now_s = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    return SignToken(*TokenSecret(data_), IssuerOf(data_), user, Join("0.", number, end), now_s,
                     now_s + 3600);
  }
  MadeService Make(std::unique_ptr<Service> service) {
    return ForClients(std::move(service), *sessions_,
                      [this](std::string_view name) { return name == "back" ? &back_channel_ : nullptr; });
  }
  // Serves it under the model that is the test's parameter.
  void Serve(std::unique_ptr<Service> service) {
    MadeService made = Make(std::move(service));
    ASSERT_TRUE(made.ok()) << made.status();
    ServerOptions options;
    options.config = *Config::Parse(GetParam());
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(*std::move(made));
    auto server = Server::Start(std::move(options), std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = std::make_unique<Channel>(&client_, server_->addresses()[0]);
  }

  const TempDir dir_;
  const DataOptions data_ = {.application = "test", .folder = dir_.File("data"), .secret = {}};
  Client client_;
  UsersForTest user_service_;
  BackForTest back_service_;
  InProcess users_{"user"}, back_{"back"};
  Channel user_{&client_, &users_}, back_channel_{&client_, &back_};
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace curtail::apps
