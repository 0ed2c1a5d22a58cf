// SPDX-License-Identifier: Apache-2.0
#include "apps/router/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "apps/router/fill.h"
#include "apps/router/router_testing.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/rpc/transport/tls_testing.h"

namespace curtail::router {
namespace {

using ::testing::HasSubstr;

struct Sent {
  std::string key, value;
  bool set = false;
};

Sent Parse(const Workload& workload, uint64_t index) {
  const std::string bytes = workload.Request(index);
  if (workload.MethodOf(index) == Router::kGet.path) {
    GetRequest request;
    EXPECT_TRUE(request.ParseFromString(bytes));
    return {request.key(), "", false};
  }
  SetRequest request;
  EXPECT_EQ(workload.MethodOf(index), Router::kSet.path);
  EXPECT_TRUE(request.ParseFromString(bytes));
  return {request.key(), request.value(), true};
}

std::unique_ptr<Workload> Make(const WorkloadOptions& options) {
  auto workload = MakeWorkload(options);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

double ShareOfSets(const Workload& workload, uint64_t requests) {
  uint64_t sets = 0;
  for (uint64_t i = 0; i < requests; ++i) sets += Parse(workload, i).set ? 1 : 0;
  return static_cast<double>(sets) / static_cast<double>(requests);
}

TEST(Workload, HasYcsbsMixes) {
  const auto share = [](const std::string& letter) {
    return ShareOfSets(*Make({.workload = letter, .records = 100}), 20000);
  };
  EXPECT_NEAR(share("a"), 0.5, 0.02);
  EXPECT_NEAR(share("b"), 0.05, 0.01);
  EXPECT_EQ(share("c"), 0);
  EXPECT_NEAR(share("d"), 0.05, 0.001);
  EXPECT_NEAR(share("f"), 1.0 / 3, 0.02);  // half of the operations are two requests, one of them a set
}

TEST(Workload, IsTheSameEachTimeAndFollowsItsSeed) {
  const auto a = Make({.seed = 5}), same = Make({.seed = 5}), other = Make({.seed = 6});
  int differences = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_EQ(a->Request(i), same->Request(i));
    ASSERT_EQ(a->MethodOf(i), same->MethodOf(i));
    differences += a->Request(i) == other->Request(i) ? 0 : 1;
  }
  EXPECT_GT(differences, 100);
}

// The most popular of n keys gets 1 / (1 + 1/2^0.99 + ... + 1/n^0.99) of the requests.
TEST(Workload, KeysAreZipfian) {
  constexpr uint64_t kRecords = 1000, kRequests = 50000;
  const auto workload = Make({.workload = "c", .records = kRecords});
  std::map<std::string, int> counts;
  for (uint64_t i = 0; i < kRequests; ++i) ++counts[Parse(*workload, i).key];
  double sum = 0;
  for (uint64_t i = 1; i <= kRecords; ++i) sum += std::pow(static_cast<double>(i), -0.99);
  const double top = counts[KeyOf(Mix{}, 0)];
  EXPECT_NEAR(top / kRequests, 1 / sum, 0.01);
  EXPECT_GT(counts.size(), kRecords * 9 / 10);
}

TEST(Workload, ReadModifyWriteIsAGetAndASetOfOneKey) {
  const auto workload = Make({.workload = "f"});
  int pairs = 0;
  for (uint64_t i = 0; i < 2000; i += 2) {
    const Sent first = Parse(*workload, i), second = Parse(*workload, i + 1);
    EXPECT_FALSE(first.set);
    if (!second.set) continue;
    ++pairs;
    EXPECT_EQ(first.key, second.key);
  }
  EXPECT_NEAR(pairs, 667, 60);
}

TEST(Workload, LatestReadsOnlyWhatWasInsertedLongAgo) {
  const auto workload = Make({.workload = "d", .records = 50});
  std::map<std::string, uint64_t> inserted;  // at which request
  for (uint64_t record = 0; record < 50; ++record) inserted[KeyOf(Mix{}, record)] = 0;
  int of_inserts = 0;
  for (uint64_t i = 0; i < 30000; ++i) {
    const Sent sent = Parse(*workload, i);
    if (sent.set) {
      EXPECT_TRUE(inserted.emplace(sent.key, i).second) << "inserted twice";
    } else {
      ASSERT_TRUE(inserted.contains(sent.key)) << i;
      if (inserted[sent.key] == 0) continue;
      ++of_inserts;
      EXPECT_GE(i - inserted[sent.key], 4096u);
    }
  }
  EXPECT_GT(of_inserts, 10000);
}

TEST(Workload, ValuesTellWhenTheyAreWrong) {
  const std::string value = ValueOf("user1", 3, 1000);
  EXPECT_TRUE(IsValueOf("user1", value, 1000));
  EXPECT_FALSE(IsValueOf("user2", value, 1000));
  EXPECT_FALSE(IsValueOf("user1", value, 999));
  EXPECT_FALSE(IsValueOf("user1", value.substr(0, 999), 1000));
  EXPECT_FALSE(IsValueOf("user1", "", 1000));
  EXPECT_NE(value, ValueOf("user1", 4, 1000));
  for (const size_t at : {0u, 7u, 8u, 500u, 999u}) {
    std::string damaged = value;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(IsValueOf("user1", damaged, 1000)) << at;
  }
  EXPECT_TRUE(IsValueOf("k", ValueOf("k", 9, 17), 17));
}

TEST(Workload, ScoresGets) {
  const auto workload = Make({.workload = "a"});
  uint64_t get = 0, set = 0;
  while (workload->MethodOf(get) != Router::kGet.path) ++get;
  while (workload->MethodOf(set) != Router::kSet.path) ++set;
  GetReply reply;
  EXPECT_EQ(workload->Score(get, reply.SerializeAsString()), 0);  // a miss
  reply.set_found(true);
  reply.set_value(ValueOf(Parse(*workload, get).key, 0, 1000));
  EXPECT_EQ(workload->Score(get, reply.SerializeAsString()), 1);
  reply.set_value(ValueOf("user of another key", 0, 1000));
  EXPECT_EQ(workload->Score(get, reply.SerializeAsString()), 0);
  EXPECT_EQ(workload->Score(get, "\xff"), 0);
  EXPECT_TRUE(std::isnan(workload->Score(set, "")));
  EXPECT_EQ(workload->score_name(), "right");
}

TEST(Mix, ReadsYcsbsFiles) {
  const auto mix = ParseMix(
      "# Workload A\n"
      "recordcount=1000\r\n"
      "operationcount = 1000\n"
      "workload=site.ycsb.workloads.CoreWorkload\n"
      "readallfields=true\n"
      "! so much\n"
      "readproportion: 0.5\n"
      "updateproportion=0.5\nscanproportion=0\ninsertproportion=0\n"
      "requestdistribution=zipfian\nfieldcount=2\nfieldlength=50\ninsertorder=ordered\nmemcached.hosts=x",
      "w");
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_EQ(mix->records, 1000u);
  EXPECT_EQ(mix->value_bytes(), 100u);
  EXPECT_EQ(mix->read, 0.5);
  EXPECT_EQ(mix->distribution, "zipfian");
  EXPECT_EQ(KeyOf(*mix, 17), "user17");
}

TEST(Mix, KeysAreHashedAsYcsbDoes) {
  // site.ycsb.Utils.fnvhash64(0): FNV-1a over eight zero bytes, its absolute value.
  EXPECT_EQ(KeyOf(Mix{}, 0), "user6284781860667377211");
}

TEST(Mix, SaysWhatIsWrongAndWhere) {
  const auto error = [](const std::string& text) {
    const auto mix = ParseMix(text, "file");
    EXPECT_EQ(mix.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(mix.status().message());
  };
  EXPECT_THAT(error("\nreadproportion=2"), HasSubstr("file, line 2, readproportion: \"2\" is not a share"));
  EXPECT_THAT(error("readproportion"), HasSubstr("want NAME=VALUE"));
  EXPECT_THAT(error("readpropotion=0.5"), HasSubstr("no such property"));
  EXPECT_THAT(error("recordcount=0"), HasSubstr("is not a count"));
  EXPECT_THAT(error("requestdistribution=hotspot"),
              HasSubstr("want one of uniform, zipfian, latest, sequential"));
  EXPECT_THAT(error("readproportion=0.5\nupdateproportion=0.4"), HasSubstr("add up to 0.9"));
  EXPECT_THAT(error("readproportion=0.05\nupdateproportion=0\nscanproportion=0.95"), HasSubstr("has scans"));
  EXPECT_THAT(error("fieldlength=1000000"), HasSubstr("have 10000000 bytes"));
  EXPECT_EQ(MixOf({.workload = "/no/such/file"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(MixOf({.workload = "e"}).status().message()), HasSubstr("has scans"));
  EXPECT_FALSE(MixOf({.value_bytes = 8}).ok());
}

// The load generator's requests, one request after the other, against real servers.
TEST(Workload, EveryGetIsRightAfterTheRecordsWereSet) {
  Deployment deployment("SIB1", 2, Patient(2));
  for (const std::string letter : {"a", "d", "f"}) {
    FillOptions fill{.target = {.address = deployment.front()->target()}, .quiet = true};
    fill.workload = {.workload = letter, .records = 300, .value_bytes = 200};
    const absl::Status filled = Fill(fill);
    ASSERT_TRUE(filled.ok()) << filled;
    const auto workload = Make(fill.workload);
    for (uint64_t i = 0; i < 600; ++i) {
      Sent sent = Parse(*workload, i);
      if (sent.set) {
        deployment.Set(sent.key, sent.value);
        continue;
      }
      GetReply reply;
      ASSERT_TRUE(deployment.Get(sent.key, &reply).ok());
      ASSERT_EQ(workload->Score(i, reply.SerializeAsString()), 1) << letter << i;
    }
  }
}

// The server speaks no TLS, so what speaks it cannot set a record.
TEST(Fill, SpeaksTlsWhereItIsToldTo) {
  Deployment deployment("SIB1", 1, Patient(1));
  const TestCertificate authority({.names = ""});
  FillOptions fill{.target = {.address = deployment.front()->target()}, .timeout_s = 2, .quiet = true};
  fill.workload = {.records = 3};
  EXPECT_TRUE(Fill(fill).ok());
  fill.target.ca_file = authority.file();
  EXPECT_THAT(std::string(Fill(fill).message()), HasSubstr("--ca-file needs --tls"));
  fill.target.tls = true;
  EXPECT_EQ(Fill(fill).code(), absl::StatusCode::kUnavailable);
  fill.target.ca_file = "/no/such/file";
  EXPECT_THAT(std::string(Fill(fill).message()), HasSubstr("/no/such/file"));
}

TEST(Fill, SaysWhichRecordFailed) {
  Deployment deployment("SIB1", 1, Patient(1));
  deployment.memcached(0).Kill();
  FillOptions fill{.target = {.address = deployment.front()->target()}, .quiet = true};
  const absl::Status status = Fill(fill);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("record "));
}

}  // namespace
}  // namespace curtail::router
