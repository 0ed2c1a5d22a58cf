// SPDX-License-Identifier: Apache-2.0
//
// Names of requests in a file and in a real Redis.
#include "apps/kit/once.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/kit/once_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/redis/redis.h"
#include "curtail/store/sql/sql.h"
#include "curtail/store/store_testing.h"

namespace curtail::apps {
namespace {

using google::protobuf::StringValue;

StringValue Text(const std::string& text) {
  StringValue value;
  value.set_value(text);
  return value;
}

class OnceTest : public testing::Test {
 protected:
  static std::unique_ptr<SqlDatabase> Open(const std::string& path) {
    SqlOptions options;
    options.path = path;
    options.migrations = {Join("CREATE TABLE sold(what TEXT) STRICT;", kOnceSchema)};
    options.sync = false;
    return *SqlDatabase::Open(std::move(options));
  }
  absl::Status Write(const Context& ctx, uint64_t caller, const std::string& what, StringValue* reply) {
    Once once(ctx, caller);
    return db_->Write(Deadline::In(kMaxTestWait), [&](SqlSession& s) {
      return once.Write(s, reply, [&] {
        reply->set_value(Join(what, " ", ++tries_));
        absl::Status status = s.Execute("INSERT INTO sold(what) VALUES (?1)", {what});
        return status.ok() ? refusal_ : status;
      });
    });
  }
  std::string Buy(const Context& ctx, uint64_t caller, const std::string& what) {
    StringValue reply;
    const absl::Status status = Write(ctx, caller, what, &reply);
    EXPECT_TRUE(status.ok()) << status;
    return reply.value();
  }
  void Execute(std::string_view sql) {
    const absl::Status status =
        db_->Write(Deadline::In(kMaxTestWait), [&](SqlSession& s) { return s.Execute(sql); });
    EXPECT_TRUE(status.ok()) << status;
  }
  int64_t Count(std::string_view sql) {
    int64_t count = 0;
    const absl::Status status = db_->Read(Deadline::In(kMaxTestWait), [&](SqlSession& s) {
      return s.Query(sql, {}, [&](const SqlRow& row) { count = row.Integer(0); });
    });
    EXPECT_TRUE(status.ok()) << status;
    return count;
  }

  TempDir dir_;
  const std::unique_ptr<SqlDatabase> db_ = Open(dir_.File("once.db"));
  int tries_ = 0;
  absl::Status refusal_;
};

TEST_F(OnceTest, ARepetitionWritesNothingAndHasTheFirstAnswer) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Buy(NamedRequest("a", "pears").ctx(), 1, "pears"), "pears 1");
  EXPECT_EQ(Buy(NamedRequest("b", "pears").ctx(), 1, "pears"), "pears 2");
  EXPECT_EQ(Buy(NamedRequest("a", "pears").ctx(), 2, "pears"), "pears 3");  // another caller
  for (int i = 4; i < 6; ++i)
    EXPECT_EQ(Buy(Context(kMaxTestWait), 1, "pears"), Join("pears ", i));  // no name
  EXPECT_EQ(Count("SELECT count(*) FROM sold"), 5);
}

TEST_F(OnceTest, ANameIsOfOneContent) {
  Buy(NamedRequest("a", "pears").ctx(), 1, "pears");
  StringValue reply;
  const absl::Status status = Write(NamedRequest("a", "plums").ctx(), 1, "plums", &reply);
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("idempotency key"));
  EXPECT_EQ(Count("SELECT count(*) FROM sold"), 1);
}

TEST_F(OnceTest, WhatWasRefusedIsTriedAgain) {
  refusal_ = absl::PermissionDeniedError("no");
  StringValue reply;
  EXPECT_TRUE(absl::IsPermissionDenied(Write(NamedRequest("a", "pears").ctx(), 1, "pears", &reply)));
  refusal_ = absl::OkStatus();
  EXPECT_EQ(Buy(NamedRequest("a", "pears").ctx(), 1, "pears"), "pears 2");
  EXPECT_EQ(Count("SELECT count(*) FROM sold"), 1);
}

TEST_F(OnceTest, NamesAreKeptForADay) {
  for (int i = 0; i < 40; ++i) Buy(NamedRequest(Join(i), "pears").ctx(), 1, "pears");
  Execute("UPDATE requests SET kept_s = kept_s - 24 * 3600");
  EXPECT_EQ(Buy(NamedRequest("7", "pears").ctx(), 1, "pears"), "pears 41");
  EXPECT_EQ(Count("SELECT count(*) FROM requests"), 40 - 16);
  for (int i = 0; i < 2; ++i) Buy(NamedRequest(Join("new ", i), "pears").ctx(), 1, "pears");
  EXPECT_EQ(Count("SELECT count(*) FROM requests"), 3);
}

TEST_F(OnceTest, ANameHasABound) {
  Context ctx(kMaxTestWait);
  ctx.mutable_metadata().Add("idempotency-key", std::string(129, 'a'));
  EXPECT_TRUE(absl::IsInvalidArgument(NameRequest(ctx, "/Shop/Buy", Text("pears"))));
}

TEST(OnceRedis, ARepetitionWritesNothingAndHasTheFirstAnswer) {
  const TempDir dir;
  const RedisProcess process(dir.File("redis"));
  Redis redis(*StoreAddress::Parse(process.address()));
  const std::string script =
      Once::RedisScript("if ARGV[1] == 'no' then return -1 end return redis.call('INCR', KEYS[1])");
  const auto buy = [&](const Context& ctx, const char* what) -> absl::StatusOr<int64_t> {
    Once once(ctx, 1);
    const std::vector<std::string> words = once.RedisWords(script, "once:", {"sold"}, {what});
    RedisBatch batch;
    batch.Add(std::vector<std::string_view>(words.begin(), words.end()));
    const auto replies = redis.Run(batch, Deadline::In(kMaxTestWait));
    EXPECT_TRUE(replies.ok()) << replies.status();
    const std::vector<RedisReply>& made = replies->front().elements;
    EXPECT_EQ(made.size(), 2u) << replies->front().status();
    absl::Status status = once.RedisAnswered(made[0].integer, made[1].integer != 0);
    if (!status.ok()) return status;
    return made[0].integer;
  };
  EXPECT_EQ(*buy(NamedRequest("a", "no").ctx(), "no"), -1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*buy(NamedRequest("a", "pears").ctx(), "pears"), 1);
  EXPECT_TRUE(absl::IsAlreadyExists(buy(NamedRequest("a", "plums").ctx(), "plums").status()));
  EXPECT_EQ(*buy(NamedRequest("b", "pears").ctx(), "pears"), 2);
  for (int i = 3; i < 5; ++i) EXPECT_EQ(*buy(Context(kMaxTestWait), "pears"), i);
}

}  // namespace
}  // namespace curtail::apps
