// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/trace_records.h"

#include <gtest/gtest.h>

#include <string>

#include "curtail/observe/trace/trace_testing.h"

namespace curtail::observe {
namespace {

const TestSpan kSpan{
    .trace = 1,
    .id = 2,
    .parent = 3,
    .method = "/shop.Cart/Add",
    .queue = 10,
    .entry = 20,
    .handler = 300,
    .reply = 40,
    .calls = {{.id = 5, .method = "/shop.Stock/Take", .start = 31, .total = 200, .send = 7},
              {.id = 6, .method = "/shop.Price/Get", .start = 40, .total = 10, .target = "shop.Price"}},
    .start_us = 1234,
    .status = "INTERNAL"};

TEST(TraceRecords, ReadsTheSpansOfADocument) {
  TraceRecords records;
  ASSERT_TRUE(records.Add(DocumentJson("cart", {kSpan})).ok());
  ASSERT_EQ(records.spans().size(), 1u);
  const RecordedSpan& span = records.spans()[0];
  EXPECT_EQ(span.trace, (TraceId{0, 1}));
  EXPECT_EQ(span.id, 2u);
  EXPECT_EQ(span.parent, 3u);
  EXPECT_EQ(records.name(span.service), "cart");
  EXPECT_EQ(records.name(span.method), "/shop.Cart/Add");
  EXPECT_TRUE(span.failed);
  EXPECT_EQ(span.total, 370);
  EXPECT_EQ(span.start_unix_us, 1234);
  ASSERT_EQ(span.calls, 2u);
  const RecordedCall& call = records.calls()[span.first_call];
  EXPECT_EQ(call.id, 5u);
  EXPECT_EQ(call.parent, 2u);
  EXPECT_EQ(call.send, 7);
  EXPECT_FALSE(call.in_process);
  EXPECT_EQ(records.name(call.service), "shop.Stock");
  EXPECT_TRUE(records.calls()[1].in_process) << "its channel's target is the service";
}

TEST(TraceRecords, KeepsASpanOnceAndNamesItByItsProcess) {
  TraceRecords records;
  TestSpan other = kSpan;
  other.id = 7;
  const std::string documents =
      Join("[", DocumentJson("a", {kSpan}), ",", DocumentJson("a", {kSpan, other}), "]");
  ASSERT_TRUE(records.Add(documents, "cart", "cart-1").ok());
  ASSERT_TRUE(records.Add(documents, "cart", "cart-2").ok());
  ASSERT_EQ(records.spans().size(), 2u);
  EXPECT_EQ(records.name(records.spans()[0].service), "cart");
  EXPECT_EQ(records.name(records.spans()[0].instance), "cart-1");
}

TEST(TraceRecords, LeavesOutHealthChecks) {
  TraceRecords records;
  TestSpan check = kSpan, watch = kSpan, own = kSpan;
  check.id = 8, check.method = "/grpc.health.v1.Health/Check";
  watch.id = 9, watch.method = "/grpc.health.v1.Health/Watch";
  own.id = 10, own.method = "/clinic.Health/Check";
  ASSERT_TRUE(records.Add(DocumentJson("cart", {check, kSpan, watch, own})).ok());
  ASSERT_EQ(records.spans().size(), 2u);
  EXPECT_EQ(records.name(records.spans()[0].method), "/shop.Cart/Add");
  EXPECT_EQ(records.name(records.spans()[1].method), "/clinic.Health/Check");
  EXPECT_EQ(records.calls().size(), 4u) << "health checks have left no calls";
  EXPECT_EQ(records.refused() + records.left_out(), 0u);
}

TEST(TraceRecords, RefusesTextThatIsNoDocument) {
  TraceRecords records;
  for (const std::string text : {"", "{", "null", "1", "[1]", "{}", "[{}]", R"({"spans": 1})",
                                 R"({"spans": {}})", R"([{"spans": []}, 2])", "{\"spans\": [\"\xff\"]}"}) {
    EXPECT_FALSE(records.Add(text).ok()) << text;
  }
  EXPECT_FALSE(records.Add(std::string(1u << 20, '[')).ok());
  EXPECT_FALSE(records.Add("{\"spans\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}").ok());
  EXPECT_TRUE(records.Add("[]").ok());
  EXPECT_TRUE(records.spans().empty());
}

TEST(TraceRecords, RefusesAndCountsMalformedSpans) {
  const std::string good = SpanJson(kSpan);
  const auto with = [&good](const std::string& part, const std::string& other) {
    std::string text = good;
    const size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), other);
  };
  const std::vector<std::string> bad = {
      "7",
      "[]",
      "{}",
      with(R"("id":"0000000000000002")", R"("id":"2")"),
      with(R"("id":"0000000000000002")", R"("id":"0000000000000000")"),
      with(R"("id":"0000000000000002")", R"("id":2)"),
      with(R"("trace":"00000000000000000000000000000001")", R"("trace":"0000000000000001")"),
      with(R"("queue_ns":10)", R"("queue_ns":11)"),
      with(R"("queue_ns":10)", R"("queue_ns":-10)"),
      with(R"("queue_ns":10)", R"("queue_ns":10.0)"),
      with(R"("total_ns":370)", R"("total_ns":9223372036854775807)"),
      with(R"("calls_left_out":0)", R"("calls_left_out":4294967296)"),
      with(R"("calls":[)", R"("calls":[3,)"),
      with(R"("calls":)", R"("call":)"),
      with(R"("send_ns":7)", R"("send_ns":201)"),
      with(R"("start_ns":31)", R"("start_ns":-1)"),
      with(R"("start_unix_us":1234)", R"("start_unix_us":"now")"),
  };
  TraceRecords records;
  for (const std::string& span : bad) {
    ASSERT_TRUE(records.Add("{\"spans\":[" + span + "]}").ok()) << span;
    EXPECT_TRUE(records.spans().empty()) << span;
  }
  EXPECT_EQ(records.refused(), bad.size());
  EXPECT_TRUE(records.Add("{\"spans\":[" + with(R"("send_ns":7)", R"("send_ns":null)") + "]}").ok());
  EXPECT_EQ(records.spans().size(), 1u);
}

TEST(TraceRecords, HasBounds) {
  TraceRecords records({.spans = 3, .calls = 40, .names = 8});
  for (int i = 0; i < 20; ++i) records.Name(Join("name ", i));
  EXPECT_EQ(records.name(records.Name("one more")), "other");
  EXPECT_EQ(records.name(records.Name("name 6")), "name 6");
  TestSpan span = kSpan;
  span.calls.resize(TraceRecords::kMostCallsOfSpan, kSpan.calls[0]);
  span.calls.push_back(kSpan.calls[0]);
  ASSERT_TRUE(records.Add(DocumentJson("a", {span})).ok());
  EXPECT_EQ(records.refused(), 1u);
  span.calls.pop_back();
  ASSERT_TRUE(records.Add(DocumentJson("a", {span})).ok());
  span.id = 10;
  ASSERT_TRUE(records.Add(DocumentJson("a", {span})).ok());
  EXPECT_EQ(records.left_out(), 1u) << "too many calls";
  for (span.calls.clear(); span.id < 14; ++span.id) {
    ASSERT_TRUE(records.Add(DocumentJson("a", {span})).ok());
  }
  EXPECT_EQ(records.spans().size(), 3u);
  EXPECT_EQ(records.left_out(), 3u);
}

}  // namespace
}  // namespace curtail::observe
