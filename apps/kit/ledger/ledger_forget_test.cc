// SPDX-License-Identifier: Apache-2.0
//
// What a ledger forgets, in a file and in a real PostgreSQL.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "apps/kit/ledger/ledger.h"
#include "apps/kit/ledger/ledger_testing.h"

namespace curtail::apps {
namespace {

class LedgerForgets : public testing::TestWithParam<LedgerIn> {
 protected:
  static Posting Move(uint64_t from, uint64_t to) {
    return {.entries = {{from, -1, {}}, {to, 1, {}}}, .text = "rent"};
  }

  int64_t now_ms_ = 1000;
  const TempDir dir_;
  Shard here_{1, [this] { return now_ms_; }, OpenLedger(dir_, GetParam(), "forgets")};
};

// Properties: refusals do not pile up; a late attempt at one that was forgotten books nothing; what was booked is kept.
TEST_P(LedgerForgets, RefusalsAndRefusesThemStill) {
  for (const uint64_t id : {kAnn, kBob}) ASSERT_TRUE(here_.Open(id, id == kAnn ? 1000 : 0).ok());
  std::vector<Booked> booked, again;
  const Posting rent = Move(kBob, kAnn), gift = Move(kAnn, kBob);
  constexpr int64_t kBegin = 1'000'000;
  const auto refuse = [&](int64_t since_ms) {
    now_ms_ = std::max(now_ms_, since_ms);
    EXPECT_TRUE(here_.Refuse(Join("rent ", since_ms), rent, &booked, since_ms).ok());
  };
  const auto refused = [&](std::string_view name, int64_t since_ms) {
    return absl::IsFailedPrecondition(here_.Post(name, gift, &again, since_ms)) &&
           absl::IsFailedPrecondition(here_.Refuse(name, gift, &again, since_ms)) && again.empty();
  };
  EXPECT_TRUE(here_.Refuse("for ever", rent, &booked).ok());
  ASSERT_TRUE(here_.Post("booked", gift, &booked, kBegin).ok());
  for (int i = 0; i < 100; ++i) refuse(kBegin + i);
  EXPECT_EQ(here_.Refusals(), 101u);
  EXPECT_TRUE(absl::IsAlreadyExists(here_.Post(Join("rent ", kBegin), gift, nullptr, kBegin)));

  // Two clocks must be so late.
  now_ms_ = kBegin + 10 * kRefusalKeptMs;
  EXPECT_TRUE(here_.Refuse("slow", rent, &again, kBegin + 100).ok());
  now_ms_ = kBegin;
  EXPECT_TRUE(here_.Refuse("ahead", rent, &again, kBegin + 10 * kRefusalKeptMs).ok());
  EXPECT_EQ(here_.Refusals(), 103u);
  for (int i = 1; i <= 200; ++i) refuse(kBegin + kRefusalKeptMs + 1000 + i);
  EXPECT_EQ(here_.Refusals(), 202u) << "the last two days' refusals, and \"ahead\"";

  const std::string first = Join("rent ", kBegin);
  EXPECT_TRUE(refused(first, kBegin));
  EXPECT_TRUE(refused("a request that comes so late", kBegin + 100));
  EXPECT_EQ(here_.Refusals(), 202u) << "these keep nothing";
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("for ever", rent)));
  ASSERT_TRUE(here_.Post("booked", gift, &again, kBegin).ok());
  EXPECT_EQ(again, booked);
  EXPECT_EQ(here_.Look(kBob).balance, 1);
  now_ms_ = 0;
  EXPECT_TRUE(refused(first, kBegin)) << "the clock was set back";
  EXPECT_TRUE(here_.Post("in time", gift, &again, kBegin + 101).ok());
  EXPECT_EQ(here_.Look(kBob).balance, 2);
  EXPECT_TRUE(here_.Audit().ok());
}

INSTANTIATE_TEST_SUITE_P(Stores, LedgerForgets, testing::Values(LedgerIn::kFile, LedgerIn::kPostgresql),
                         [](const auto& info) {
                           return info.param == LedgerIn::kFile ? "File" : "Postgresql";
                         });

}  // namespace
}  // namespace curtail::apps
