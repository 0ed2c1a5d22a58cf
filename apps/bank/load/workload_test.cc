// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/load/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>

#include "apps/kit/load/fill.h"
#include "bank.pb.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::bank {
namespace {

constexpr uint64_t kRequests = 10'000;

// Three customers as Fill() leaves them. Customer N has the accounts 10 N and 10 N + 1.
class WorkloadTest : public testing::Test {
 protected:
  WorkloadTest() {
    std::vector<apps::LoadUser> users;
    for (uint64_t i = 1; i <= 3; ++i) {
      const std::string account = std::to_string(10 * i), other = std::to_string(10 * i + 1);
      users.push_back({i,
                       Join("customer_", i),
                       Join("token", i),
                       {account, "IBAN" + account, other, "IBAN" + other, Join(100 + i), "password",
                        i == 1 ? "leaving" : "-"}});
    }
    EXPECT_TRUE(apps::WriteLoadUsers(dir_.File("."), users).ok());
  }
  absl::StatusOr<std::unique_ptr<Workload>> Make(const std::string& mix,
                                                 const std::string& merchants = {}) const {
    return Requests().make({.data = dir_.File("."), .own = {{"mix", mix}, {"merchants", merchants}}});
  }
  const TempDir dir_;
};

TEST_F(WorkloadTest, MixesHaveTheirShares) {
  for (const apps::NamedMix& mix : AllMixes()) {
    const auto workload = Make(std::string(mix.name));
    ASSERT_TRUE(workload.ok()) << workload.status();
    double all = 0;
    std::map<std::string_view, double> expected, sent;
    const auto weights = apps::WeightsOf(mix);
    for (const auto& [kind, weight] : weights) all += weight, expected[PathOf(kind)] += weight;
    for (uint64_t i = 0; i < kRequests; ++i) {
      ++sent[(*workload)->MethodOf(i)];
      EXPECT_FALSE((*workload)->Request(i).empty());
    }
    if (mix.name == "mixed") {
      EXPECT_NEAR(all, 100, 1e-9);
    }
    EXPECT_EQ(sent.size(), expected.size()) << mix.name;
    for (const auto& [path, weight] : expected)
      EXPECT_NEAR(sent[path] / kRequests, weight / all, 0.02) << mix.name << " " << path;
    EXPECT_GE(sent[(*workload)->method()] / kRequests + 0.02, 1.0 / static_cast<double>(weights.size()));
  }
}

TEST_F(WorkloadTest, HotPaysSoManyMerchants) {
  for (const int merchants : {1, 2, 3}) {
    const auto workload = Make("hot", std::to_string(merchants));
    ASSERT_TRUE(workload.ok()) << workload.status();
    std::set<std::string> paid, expected, payers;
    for (int i = 1; i <= merchants; ++i) expected.insert(Join("IBAN", 10 * i));
    for (uint64_t i = 0; i < kRequests; ++i) {
      PayRequest request;
      ASSERT_TRUE(request.ParseFromString((*workload)->Request(i)));
      EXPECT_EQ(request.token(), Join("token", request.from() / 10));
      EXPECT_NE(request.iban(), Join("IBAN", request.from()));
      paid.insert(request.iban()), payers.insert(request.token());
    }
    EXPECT_EQ(paid, expected);
    EXPECT_EQ(payers.size(), 3u);
  }
  for (const char* const wrong : {"0", "4", "-1", "one"})
    EXPECT_TRUE(absl::IsInvalidArgument(Make("hot", wrong).status())) << wrong;
  EXPECT_TRUE(absl::IsInvalidArgument(Make("cold").status()));
}

TEST_F(WorkloadTest, OnlySparedSessionsEnd) {
  const auto workload = Make("anthos");
  ASSERT_TRUE(workload.ok()) << workload.status();
  int ended = 0;
  for (uint64_t i = 0; i < kRequests; ++i) {
    if ((*workload)->MethodOf(i) != PathOf("logout")) continue;
    apps::TokenRequest request;
    ASSERT_TRUE(request.ParseFromString((*workload)->Request(i)));
    EXPECT_EQ(request.token(), "leaving");
    ++ended;
  }
  EXPECT_GT(ended, 0);
}

}  // namespace
}  // namespace curtail::bank
