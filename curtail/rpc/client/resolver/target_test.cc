// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/resolver/target.h"
#include "curtail/base/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/rpc/client/servers/subchannel.h"

namespace curtail::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ConnectSettings, ServersAreToldNoZone) {
  const ConnectSettings settings("t", {}, "[fe80::1%eth0]:80", {});
  EXPECT_EQ(settings.session.authority, "[fe80::1]:80");
}

// The meaning of a target: its authority, then its addresses.
std::vector<std::string> Understood(std::string_view text) {
  const absl::StatusOr<Target> target = ParseTarget(text);
  if (!target.ok()) return {target.status().ToString()};
  std::vector<std::string> all = {target->authority};
  const absl::StatusOr<std::vector<Address>> addresses = target->resolver->Resolve();
  if (!addresses.ok()) return {addresses.status().ToString()};
  for (const Address& address : *addresses) all.push_back(address.ToString());
  return all;
}

TEST(Target, NumericFormsAreListsThatStay) {
  EXPECT_THAT(Understood("127.0.0.1:80"), ElementsAre("127.0.0.1:80", "127.0.0.1:80"));
  EXPECT_THAT(Understood("[::1]:80"), ElementsAre("[::1]:80", "[::1]:80"));
  EXPECT_THAT(Understood("ipv4:10.0.0.1:80"), ElementsAre("10.0.0.1:80", "10.0.0.1:80"));
  EXPECT_THAT(Understood("ipv4:10.0.0.1:80,10.0.0.2:81"),
              ElementsAre("10.0.0.1:80", "10.0.0.1:80", "10.0.0.2:81"));
  EXPECT_THAT(Understood("ipv4:///10.0.0.1:80"), ElementsAre("10.0.0.1:80", "10.0.0.1:80"));
  EXPECT_THAT(Understood("ipv6:[fd00::1]:80,[fd00::2]:80"),
              ElementsAre("[fd00::1]:80", "[fd00::1]:80", "[fd00::2]:80"));
  EXPECT_THAT(Understood("10.0.0.1:80,[fd00::2]:80"),
              ElementsAre("10.0.0.1:80", "10.0.0.1:80", "[fd00::2]:80"));
  for (const char* text :
       {"127.0.0.1:80", "ipv4:10.0.0.1:80,10.0.0.2:81", "unix:/a", "dns:///127.0.0.1:80"}) {
    EXPECT_FALSE(ParseTarget(text)->resolver->Changes()) << text;
  }
}

TEST(Target, SocketsOfTheMachine) {
  EXPECT_THAT(Understood("unix:/tmp/a"), ElementsAre("localhost", "unix:/tmp/a"));
  EXPECT_THAT(Understood("unix:a/b"), ElementsAre("localhost", "unix:a/b"));
  EXPECT_THAT(Understood("unix:///tmp/a"), ElementsAre("localhost", "unix:/tmp/a"));
  EXPECT_THAT(Understood("unix-abstract:name"), ElementsAre("localhost", "unix-abstract:name"));
}

TEST(Target, NamesAreLookedUp) {
  for (const char* text : {"localhost:80", "dns:localhost:80", "dns:///localhost:80"}) {
    const std::vector<std::string> all = Understood(text);
    ASSERT_GE(all.size(), 2u) << text;
    EXPECT_EQ(all[0], "localhost:80");
    EXPECT_EQ(all[1], "127.0.0.1:80");
    EXPECT_TRUE(ParseTarget(text)->resolver->Changes());
  }
  // Hosts with the names of schemes.
  for (const char* text : {"dns:80", "unix:80", "ipv4:443"}) EXPECT_EQ(ParseTarget(text)->authority, text);
}

TEST(Target, SeveralAreOne) {
  const auto several = ParseTargets({"127.0.0.1:80", "unix:/a", "ipv4:10.0.0.1:80,10.0.0.2:81"});
  ASSERT_TRUE(several.ok()) << several.status();
  const absl::StatusOr<std::vector<Address>> addresses = (*several)->Resolve();
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  std::vector<std::string> all;
  for (const Address& address : *addresses) all.push_back(address.ToString());
  EXPECT_THAT(all, ElementsAre("127.0.0.1:80", "unix:/a", "10.0.0.1:80", "10.0.0.2:81"));
  EXPECT_FALSE((*several)->Changes());
  EXPECT_TRUE((*ParseTargets({"127.0.0.1:80", "search.example:80"}))->Changes());
  EXPECT_FALSE(ParseTargets({"127.0.0.1:80", "ipv4:x"}).ok());
}

TEST(Target, SeveralAreIncompleteWhileOneIsUnknown) {
  const auto of = [](const std::vector<std::string>& targets) {
    std::vector<std::unique_ptr<Resolver>> each;
    for (const std::string& text : targets) each.push_back(std::move(ParseTarget(text)->resolver));
    return Together(std::move(each));
  };
  bool complete = true;
  EXPECT_EQ(of({"127.0.0.1:80", "127.0.0.2:80"})->ResolveParts(&complete)->size(), 2u);
  EXPECT_TRUE(complete);
  const absl::StatusOr<std::vector<Address>> found =
      of({"127.0.0.1:80", "a..b:80"})->ResolveParts(&complete);  // no name server knows it
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), 1u);
  EXPECT_FALSE(complete);
  EXPECT_FALSE(of({"a..b:80"})->Resolve().ok());
}

// Answers where `answers` has a 'y', and fails behind its end.
class Forgetful final : public Resolver {
 public:
  explicit Forgetful(std::string_view answers) : answers_(answers) {}
  absl::StatusOr<std::vector<Address>> Resolve() override {
    const size_t asked = asked_++;
    if (asked >= answers_.size() || answers_[asked] != 'y')
      return absl::UnavailableError("the name is unknown");
    return std::vector{*Address::Resolve("127.0.0.3:80")};
  }
  bool Changes() const override { return true; }

 private:
  const std::string_view answers_;
  size_t asked_ = 0;
};

std::unique_ptr<PartialResolver> WithAForgetful(Nanos keeps, std::string_view answers = "y") {
  std::vector<std::unique_ptr<Resolver>> each;
  each.push_back(std::move(ParseTarget("127.0.0.1:80")->resolver));
  each.push_back(std::make_unique<Forgetful>(answers));
  return Together(std::move(each), keeps);
}

TEST(Target, OfSeveralAnOldAnswerIsForgottenInTime) {
  for (const Nanos keeps : {Nanos(std::chrono::hours(1)), Nanos::zero()}) {
    const auto together = WithAForgetful(keeps);
    bool complete = false;
    EXPECT_EQ(together->ResolveParts(&complete)->size(), 2u);
    EXPECT_TRUE(complete);
    EXPECT_EQ(together->ResolveParts(&complete)->size(), keeps > Nanos::zero() ? 2u : 1u);
    EXPECT_FALSE(complete);
  }
}

constexpr Nanos kKeeps = std::chrono::milliseconds(1);
void LetPass() {
  for (const TimePoint begun = Now(); Now() - begun <= kKeeps;) BetweenLooks();
}

TEST(Target, OfSeveralAnAnswerEndsTheFailuresBeforeIt) {
  const auto together = WithAForgetful(kKeeps, "ynyn");
  bool complete = false;
  for (const bool answers : {true, false, true}) {
    EXPECT_EQ(together->ResolveParts(&complete)->size(), 2u);
    EXPECT_EQ(complete, answers);
  }
  LetPass();
  EXPECT_EQ(together->ResolveParts(&complete)->size(), 2u) << "the first failure since an answer";
}

TEST(Target, OfSeveralAnAnswerIsKeptFromItsFirstFailureOn) {
  const auto together = WithAForgetful(kKeeps);
  bool complete = false;
  EXPECT_EQ(together->ResolveParts(&complete)->size(), 2u);
  LetPass();
  EXPECT_EQ(together->ResolveParts(&complete)->size(), 2u) << "the answer is old, and the failure new";
  LetPass();
  EXPECT_EQ(together->ResolveParts(&complete)->size(), 1u);
}

std::vector<std::string> AddressesOf(Resolver& resolver) {
  const absl::StatusOr<std::vector<Address>> addresses = resolver.Resolve();
  if (!addresses.ok()) return {addresses.status().ToString()};
  std::vector<std::string> all;
  for (const Address& address : *addresses) all.push_back(address.ToString());
  return all;
}

TEST(Target, AFileHasAnAddressALineAndMayChange) {
  TempDir dir;
  const std::string path = dir.File("search.addresses");
  const auto write = [&](std::string_view text) {
    std::ofstream(path + ".next") << text;
    ASSERT_EQ(std::rename((path + ".next").c_str(), path.c_str()), 0);
  };
  const absl::StatusOr<Target> target = ParseTarget(Join("file:", path));
  ASSERT_TRUE(target.ok()) << target.status();
  Resolver& resolver = *target->resolver;
  EXPECT_TRUE(resolver.Changes());
  EXPECT_GT(resolver.max_age(), Nanos::zero());
  EXPECT_EQ(resolver.Resolve().status().code(), absl::StatusCode::kNotFound);
  write("127.0.0.1:80\n# the second\nunix:/a\n\n");
  EXPECT_THAT(AddressesOf(resolver), ElementsAre("127.0.0.1:80", "unix:/a"));
  write("[::1]:81");
  EXPECT_THAT(AddressesOf(resolver), ElementsAre("[::1]:81"));
  write("");
  EXPECT_THAT(AddressesOf(resolver), ElementsAre(HasSubstr("names no server")));
  write("127.0.0.1:80\nsearch.example:80\n");
  EXPECT_THAT(AddressesOf(resolver),
              ElementsAre(HasSubstr(".addresses:2: \"search.example:80\": write HOST:PORT")));
  write(std::string(300'000, '#'));
  EXPECT_THAT(AddressesOf(resolver), ElementsAre(HasSubstr("RESOURCE_EXHAUSTED")));
  EXPECT_FALSE(ParseTarget("file:").ok());
  EXPECT_EQ((*ParseTargets({"127.0.0.1:80", Join("file:", path)}))->max_age(), resolver.max_age());
}

TEST(Target, WhatIsWrongIsRefusedWithAHint) {
  for (const char* text : {"",
                           "nonsense",
                           ":80",
                           "a b:80",
                           "name:99999",
                           "name:",
                           "dns:",
                           "dns:///",
                           "dns:///name",
                           "dns:////name:80",
                           "dns://8.8.8.8/name:80",
                           "a:b:80",
                           "ipv4:",
                           "ipv4:10.0.0.1",
                           "ipv4:localhost:80",
                           "ipv4:[::1]:80",
                           "ipv4:10.0.0.1:80,",
                           "ipv4:,10.0.0.1:80",
                           "10.0.0.1:80,",
                           "10.0.0.1:80,name:80",
                           "ipv6:::1:80",
                           "ipv6:10.0.0.1:80",
                           "unix:",
                           "unix-abstract:",
                           "xds:///name",
                           "http://name:80"}) {
    const absl::Status status = ParseTarget(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(Message(status)), testing::AnyOf(HasSubstr("write "), HasSubstr("has no ")))
        << text;
  }
  EXPECT_THAT(std::string(Message(ParseTarget("xds:///name").status())),
              HasSubstr("unknown scheme \"xds\"; there are dns, file, ipv4, ipv6, unix, unix-abstract"));
  EXPECT_FALSE(ParseTarget(std::string(kMaxTargetBytes + 1, 'a')).ok());
  std::string many = "ipv4:";
  while (many.size() < kMaxTargetBytes - 20) many += "1.1.1.1:1,";
  EXPECT_EQ(Understood(many + "1.1.1.1:1").size(), (many.size() - 5) / 10 + 2);
}

}  // namespace
}  // namespace curtail::internal
