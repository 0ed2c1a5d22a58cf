// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "apps/kit/run_here.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"
#include "google/protobuf/wrappers.pb.h"

namespace curtail::apps {
namespace {

class ReadRecentTest : public testing::Test {
 protected:
  // The i-th read gives "i".
  std::string Read(Cache* cache, absl::Status read = {}) {
    Context ctx(kMaxTestWait);
    std::string bytes;
    status_ = RunHere(ReadRecent(ctx, cache, "key", &bytes, [&](std::string* made) -> Coroutine {
      *made = Join(++reads_);
      co_return read;
    }));
    return bytes;
  }
  void Put(const std::string& value) {
    Context ctx(kMaxTestWait);
    ASSERT_TRUE(RunHere(cache_.Put(ctx, "key", value)).ok());
  }

  const TempDir dir_;
  MemcachedProcess server_{dir_.File("memcached")};
  Cache cache_{*StoreAddress::Parse("unix:" + dir_.File("memcached"))};
  absl::Status status_;
  int reads_ = 0;
};

TEST_F(ReadRecentTest, TakesACopyForASecond) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(Read(&cache_), "1");
  const std::string second = Read(&cache_);
  if (std::chrono::steady_clock::now() - begun < kRecent) {
    EXPECT_EQ(second, "1");
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (Read(&cache_) == second && !deadline.Expired()) BetweenLooks();
  EXPECT_GE(reads_, 2);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kRecent - std::chrono::milliseconds(50));
}

TEST_F(ReadRecentTest, TakesNoOtherCopy) {
  const int64_t now_ms = NowMs();
  int read = 0;
  for (const std::string& value :
       {std::string(), std::string("x"), Join(now_ms - 2000, "old"), Join(now_ms + 60'000, "ahead"),
        std::string("123"), std::string("abcdefghijklm")}) {
    Put(value);
    EXPECT_EQ(Read(&cache_), Join(++read)) << value;
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Read(nullptr), Join(++read)) << "without a cache";
}

TEST_F(ReadRecentTest, AnErrorIsNotKept) {
  Read(&cache_, absl::NotFoundError("nothing"));
  EXPECT_TRUE(absl::IsNotFound(status_));
  EXPECT_EQ(Read(&cache_), "2");
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(ReadRecentTest, CopiesMessages) {
  int reads = 0;
  for (int i = 0; i < 3; ++i) {
    google::protobuf::Int64Value number;
    Context ctx(kMaxTestWait);
    const absl::Status status = RunHere(ReadRecent(ctx, &cache_, "number", &number, [&]() -> Coroutine {
      number.set_value(++reads);
      co_return absl::OkStatus();
    }));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(number.value(), reads);
  }
}

}  // namespace
}  // namespace curtail::apps
