// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "curtail/load/recorder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

LoadPlan Plan() {
  LoadPlan plan;
  plan.target = "127.0.0.1:1";
  plan.method = "/a.B/C";
  plan.schedule = "poisson";
  plan.rate_per_s = 100;
  plan.seed = 9;
  plan.warmup = seconds(2);
  plan.duration = seconds(10);
  plan.timeout = seconds(1);
  return plan;
}

// 1000 requests of 1 to 3 ms; every 100th fails with an error text that is no UTF-8.
LoadResult SampleRun() {
  Recorder recorder(Plan(), "recall@10");
  for (int i = 0; i < 1000; ++i) {
    const Nanos due = seconds(2) + milliseconds(10) * i;
    recorder.Sent(due, due + microseconds(4));
    const absl::Status status = i % 100 == 0 ? absl::AbortedError("bad \xff text") : absl::OkStatus();
    recorder.Done(due, due + milliseconds(1) + microseconds(2 * i), status, 0.95);
  }
  recorder.Tick(seconds(12), 0);
  return recorder.Finish(seconds(12), false, milliseconds(30), milliseconds(10));
}

bool HasType(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

// The part of JSON Schema that result.schema.json uses; collects what is wrong as "path: problem".
class Validator {
 public:
  explicit Validator(json root) : root_(std::move(root)) {}

  std::vector<std::string> Check(const json& value) {
    problems_.clear();
    Check(value, root_, "$");
    return problems_;
  }

 private:
  void Check(const json& value, const json& schema, const std::string& path) {
    for (const auto& [key, unused] : schema.items()) {
      if (!kKnown.contains(key)) problems_.push_back(absl::StrCat(path, ": unknown keyword ", key));
    }
    if (schema.contains("$ref")) {
      const std::string ref = schema["$ref"];
      return Check(value, root_.at(json::json_pointer(ref.substr(1))), path);
    }
    if (schema.contains("const") && schema["const"] != value)
      problems_.push_back(path + ": not the constant");
    if (schema.contains("enum") && !Contains(schema["enum"], value))
      problems_.push_back(path + ": not in enum");
    if (schema.contains("type") && !TypeFits(value, schema["type"]))
      problems_.push_back(path + ": wrong type");
    if (value.is_number() && value < schema.value("minimum", -1e300))
      problems_.push_back(path + ": too small");
    if (value.is_object()) CheckObject(value, schema, path);
    if (value.is_array()) CheckArray(value, schema, path);
  }

  void CheckObject(const json& value, const json& schema, const std::string& path) {
    for (const std::string key : schema.value("required", json::array())) {
      if (!value.contains(key)) problems_.push_back(absl::StrCat(path, ": lacks ", key));
    }
    const json properties = schema.value("properties", json::object());
    const json others = schema.value("additionalProperties", json(true));
    for (const auto& [key, member] : value.items()) {
      const std::string inner = absl::StrCat(path, ".", key);
      if (properties.contains(key)) {
        Check(member, properties[key], inner);
      } else if (others.is_object()) {
        Check(member, others, inner);
      } else if (others == false) {
        problems_.push_back(inner + ": not declared");
      }
    }
  }

  void CheckArray(const json& value, const json& schema, const std::string& path) {
    if (value.size() < schema.value("minItems", 0u) || value.size() > schema.value("maxItems", ~0u)) {
      problems_.push_back(path + ": wrong length");
    }
    if (!schema.contains("items")) return;
    for (const json& item : value) Check(item, schema["items"], path + "[]");
  }

  static bool Contains(const json& list, const json& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  static bool TypeFits(const json& value, const json& type) {
    if (type.is_string()) return HasType(value, type);
    return std::any_of(type.begin(), type.end(), [&](const json& t) { return HasType(value, t); });
  }

  const std::set<std::string> kKnown = {
      "$schema", "title", "description", "type", "required", "$defs",    "properties", "additionalProperties",
      "items",   "$ref",  "const",       "enum", "minimum",  "minItems", "maxItems"};
  const json root_;
  std::vector<std::string> problems_;
};

Validator SchemaValidator() { return Validator(json::parse(ReadFile(CURTAIL_RESULT_SCHEMA))); }

TEST(ResultJson, ValidatesAgainstItsSchema) {
  EXPECT_THAT(SchemaValidator().Check(json::parse(ResultJson(SampleRun()))), testing::IsEmpty());
}

TEST(ResultJson, EmptyResultValidatesToo) {
  LoadResult empty;
  empty.plan = Plan();
  EXPECT_THAT(SchemaValidator().Check(json::parse(ResultJson(empty))), testing::IsEmpty());
}

TEST(ResultJson, TheValidatorFindsFaults) {
  const json good = json::parse(ResultJson(SampleRun()));
  json lacks = good, wrong_type = good, extra = good, version = good;
  lacks["latency_us"]["all"].erase("p99");
  wrong_type["plan"]["seed"] = "nine";
  extra["latency_us"]["p42"] = 1;
  version["schema_version"] = 2;
  for (const json& bad : {lacks, wrong_type, extra, version}) {
    EXPECT_THAT(SchemaValidator().Check(bad), testing::SizeIs(1));
  }
}

TEST(ResultJson, CarriesTheNumbers) {
  const json j = json::parse(ResultJson(SampleRun()));
  EXPECT_EQ(j["requests"]["ok"], 990);
  EXPECT_EQ(j["requests"]["failed"], 10);
  EXPECT_EQ(j["codes"]["ABORTED"], 10);
  EXPECT_EQ(j["score"]["name"], "recall@10");
  EXPECT_NEAR(j["score"]["mean"], 0.95, 1e-9);
  EXPECT_NEAR(j["latency_us"]["success"]["p50"], 2000, 20);
  EXPECT_EQ(j["latency_us"]["all"]["max"], 1e6) << "a failure counts as the timeout";
  EXPECT_NEAR(j["generator"]["cpu_us_per_request"], 30, 1e-9);
  EXPECT_TRUE(j["latency_us"]["all"]["ci95"]["p99_9"][1].is_null()) << "1000 samples are too few";
  uint64_t in_buckets = 0;
  for (const json& bucket : j["latency_us"]["all"]["buckets"]) in_buckets += bucket[2].get<uint64_t>();
  EXPECT_EQ(in_buckets, 1000u);
}

TEST(PlanText, IsOneLineThatNamesTheSchedule) {
  LoadPlan plan = Plan();
  EXPECT_EQ(
      PlanText(plan),
      "/a.B/C at 127.0.0.1:1: open loop, poisson, 100 a second, seed 9; 1 connection, 1 thread; 2 s warm-up, "
      "then 10 s; timeout 1 s");
  plan.schedule = "closed";
  plan.outstanding = 8;
  EXPECT_THAT(PlanText(plan), HasSubstr("CLOSED LOOP of 8"));
}

TEST(SummaryText, ShowsTableCodesAndScore) {
  const std::string text = SummaryText(SampleRun());
  EXPECT_THAT(text, HasSubstr("1000 due (100.0/s), 1000 sent (100.0/s), 990 ok (99.0/s), 10 failed (1 %)"));
  EXPECT_THAT(text, HasSubstr("latency (ms)"));
  EXPECT_THAT(text, HasSubstr("p99.9 too few samples"));
  EXPECT_THAT(text, HasSubstr("ABORTED 10, OK 990"));
  EXPECT_THAT(text, HasSubstr("10 x ABORTED: bad"));
  EXPECT_THAT(text, HasSubstr("recall@10     mean 0.9500"));
  EXPECT_THAT(text, HasSubstr("20.0 us CPU a request, and 10.0 us waiting"));
  EXPECT_THAT(text, Not(HasSubstr("VOID")));
  EXPECT_THAT(text, HasSubstr(std::string(40, '#')));
  EXPECT_THAT(text, Not(HasSubstr(std::string(41, '#'))));
}

TEST(SummaryText, SaysWhyARunIsVoidOrPartial) {
  LoadResult r = SampleRun();
  r.interrupted = true;
  r.sent_per_s = 50;
  Judge(r);
  const std::string text = SummaryText(r);
  EXPECT_THAT(text, HasSubstr("VOID          sent 50.0 requests a second"));
  EXPECT_THAT(text, HasSubstr("INTERRUPTED"));
}

TEST(SummaryText, EmptyResultDoesNotBreak) {
  LoadResult empty;
  empty.plan = Plan();
  Judge(empty);
  EXPECT_THAT(SummaryText(empty), HasSubstr("VOID"));
}

TEST(WriteFile, ReplacesAWholeFileAndLeavesNoTemporary) {
  const std::string path = absl::StrCat(testing::TempDir(), "/curtail_report_test.", getpid());
  ASSERT_TRUE(WriteFile(path, "old content").ok());
  ASSERT_TRUE(WriteFile(path, "new").ok());
  EXPECT_EQ(ReadFile(path), "new");
  EXPECT_NE(access(absl::StrCat(path, ".tmp.", getpid()).c_str(), F_OK), 0);
  unlink(path.c_str());
}

TEST(WriteFile, AFullDiskIsResourceExhausted) {
  const absl::Status status = WriteFile("/dev/full", "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full"));
}

TEST(WriteFile, AMissingFolderIsAnError) { EXPECT_FALSE(WriteFile("/nonexistent/folder/x.json", "x").ok()); }

}  // namespace
}  // namespace curtail
