// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/log.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "curtail/base/internal/log_line.h"

namespace curtail {
namespace {

using internal::LogForm;
using internal::LogText;

constexpr timespec kTime{1769860800, 123456789};  // 2026-01-31T12:00:00Z

const LogForm kText;
const LogForm kJson{.json = true, .service = "cart", .instance = "shop-cart-x2x"};

TEST(Log, TextIsTheMessageAndWhoSaysIt) {
  EXPECT_EQ(LogText(kText, kTime, Severity::kWarning, "careful", {{"limit", "queue"}}, "curtail"),
            "curtail: careful\n");
  EXPECT_EQ(LogText(kText, kTime, Severity::kInfo, "rows: 5 of 5", {}, ""), "rows: 5 of 5\n");
}

TEST(Log, TextIsALineThatNoTerminalActsUpon) {
  EXPECT_EQ(LogText(kText, kTime, Severity::kError,
                    "a \"b\"\ncurtail: c\\\x1b[2J\x7f\r\xc2\x9b \xc3\x84 \xc2\xa0", {}, "x\ny"),
            "x\\u000ay: a \"b\"\\u000acurtail: c\\\\u001b[2J\\u007f\\u000d\xc2\\u009b \xc3\x84 \xc2\xa0\n");
}

TEST(Log, TextOfNobodyMayHaveLines) {
  EXPECT_EQ(LogText(kText, kTime, Severity::kError, "--x: unknown\nRun with --help\x1b", {}, ""),
            "--x: unknown\nRun with --help\\u001b\n");
}

TEST(Log, JsonIsAnObjectALine) {
  EXPECT_EQ(LogText(kJson, kTime, Severity::kWarning, "careful",
                    {{"limit", "queue"}, {"times", uint64_t{3}}, {"change", -1}}, "curtail"),
            R"({"time":"2026-01-31T12:00:00.123456Z","severity":"WARNING","service":"cart",)"
            R"("instance":"shop-cart-x2x","message":"careful","limit":"queue","times":3,"change":-1})"
            "\n");
}

TEST(Log, JsonTakesAnyBytes) {
  const std::string line =
      LogText(kJson, kTime, Severity::kError, "a \"b\"\nc\\\x01\xff", {{"peer", "\r\n"}}, "curtail");
  EXPECT_NE(line.find(R"("severity":"ERROR")"), line.npos) << line;
  EXPECT_NE(line.find(R"("message":"a \"b\"\u000ac\\\u0001\u00ff","peer":"\u000d\u000a"})"), line.npos)
      << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
}

TEST(Log, LinesBelowTheLevelAreNotWritten) {
  const auto lines = [] {
    testing::internal::CaptureStderr();
    Log(Severity::kDebug, "d");
    Log(Severity::kInfo, "i");
    Log(Severity::kError, "e");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(LogLevel(), Severity::kInfo);
  EXPECT_EQ(lines(), "curtail: i\ncurtail: e\n");
  SetLogLevel(Severity::kError);
  EXPECT_EQ(lines(), "curtail: e\n");
  SetLogLevel(Severity::kDebug);
  EXPECT_EQ(lines(), "curtail: d\ncurtail: i\ncurtail: e\n");
  SetLogLevel(Severity::kInfo);
}

TEST(Log, LevelsHaveNames) {
  for (const Severity severity : {Severity::kDebug, Severity::kInfo, Severity::kWarning, Severity::kError})
    EXPECT_EQ(ParseSeverity(SeverityName(severity)), severity);
  EXPECT_EQ(ParseSeverity("WARNING"), Severity::kWarning);
  EXPECT_FALSE(ParseSeverity("loud"));
  EXPECT_FALSE(ParseSeverity(""));
  setenv("CURTAIL_LOG_LEVEL", "Error", 1);
  EXPECT_EQ(internal::LevelFromEnvironment(), Severity::kError);
  setenv("CURTAIL_LOG_LEVEL", "loud", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(internal::LevelFromEnvironment(), Severity::kInfo);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "curtail: CURTAIL_LOG_LEVEL: \"loud\" is not a level; write debug, info, warning or error\n");
  unsetenv("CURTAIL_LOG_LEVEL");
}

TEST(Log, TheEnvironmentSaysTheForm) {
  unsetenv("CURTAIL_LOG_FORMAT");
  LogForm form = LogForm::FromEnvironment();
  EXPECT_FALSE(form.json);
  EXPECT_EQ(form.service, program_invocation_short_name);
  EXPECT_FALSE(form.instance.empty()) << "the name of the machine";
  setenv("CURTAIL_LOG_FORMAT", "json", 1);
  setenv("CURTAIL_LOG_SERVICE", "cart", 1);
  setenv("CURTAIL_LOG_INSTANCE", "shop-cart-x2x", 1);
  form = LogForm::FromEnvironment();
  for (const char* name : {"CURTAIL_LOG_FORMAT", "CURTAIL_LOG_SERVICE", "CURTAIL_LOG_INSTANCE"})
    unsetenv(name);
  EXPECT_TRUE(form.json);
  setenv("CURTAIL_LOG_FORMAT", "xml", 1);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(LogForm::FromEnvironment().json);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "curtail: CURTAIL_LOG_FORMAT: \"xml\" is not a format; write text or json\n");
  unsetenv("CURTAIL_LOG_FORMAT");
  EXPECT_EQ(form.service, "cart");
  EXPECT_EQ(form.instance, "shop-cart-x2x");
}

}  // namespace
}  // namespace curtail
