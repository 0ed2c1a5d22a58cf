// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/hash_chain.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "apps/kit/data/data.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"

namespace curtail::apps {
namespace {

class HashChainTest : public testing::Test {
 protected:
  absl::Status Write(SqlDatabase::Work work) { return db_->Write(Deadline::In(kMaxTestWait), work); }
  absl::Status Execute(const std::string& sql) {
    return Write([&](SqlSession& s) { return s.Execute(sql, {}); });
  }
  absl::Status Append(int count) {
    return Write([&](SqlSession& s) {
      absl::Status status;
      for (int i = 0; i < count; ++i) status.Update(HashChain::Append(s, Join("record ", i)));
      return status;
    });
  }
  absl::Status Verify() {
    records_.clear();
    return db_->Read(Deadline::In(kMaxTestWait), [&](SqlSession& s) {
      return HashChain::Verify(
          s,
          [&](std::string_view record) {
            records_.emplace_back(record);
            return absl::OkStatus();
          },
          &head_);
    });
  }

  const TempDir dir_;
  const std::unique_ptr<SqlDatabase> db_ =
      *OpenData({.folder = dir_.File("data"), .no_sync = true}, "test", {HashChain::kSchema});
  HashChain::Head head_;
  std::vector<std::string> records_;
};

TEST_F(HashChainTest, HasAllRecordsInOrderOverPages) {
  ASSERT_TRUE(Verify().ok());
  EXPECT_EQ(head_.links, 0u);
  EXPECT_EQ(head_.hash, "");
  ASSERT_TRUE(Append(2000).ok());
  const absl::Status whole = Verify();
  ASSERT_TRUE(whole.ok()) << whole;
  EXPECT_EQ(head_.links, 2000u);
  ASSERT_EQ(records_.size(), 2000u);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(records_[i], Join("record ", i));
  const std::string hash = head_.hash;
  ASSERT_TRUE(Append(1).ok());
  ASSERT_TRUE(Verify().ok());
  EXPECT_NE(head_.hash, hash);
}

TEST_F(HashChainTest, NamesTheFirstLinkThatIsNotWhatItWas) {
  for (const char* fault :
       {"UPDATE links SET record = x'00' WHERE number = 7", "DELETE FROM links WHERE number = 7",
        "UPDATE links SET hash = 'x' WHERE number = 7"}) {
    ASSERT_TRUE(Execute("DELETE FROM links").ok());
    ASSERT_TRUE(Append(10).ok());
    ASSERT_TRUE(Execute(fault).ok());
    const absl::Status broken = Verify();
    EXPECT_TRUE(absl::IsDataLoss(broken)) << fault << ": " << broken;
    EXPECT_THAT(std::string(broken.message()), testing::HasSubstr("link 7 ")) << fault;
    EXPECT_EQ(records_.size(), 6u) << fault;
  }
}

}  // namespace
}  // namespace curtail::apps
