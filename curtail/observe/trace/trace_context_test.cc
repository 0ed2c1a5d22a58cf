// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/trace_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace curtail::observe {
namespace {

using testing::ElementsAre;
using wire::Metadata;
using Entries = std::vector<std::pair<std::string, std::string>>;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

Metadata Of(const Entries& entries) {
  Metadata metadata;
  for (const auto& [key, value] : entries) metadata.AddLowerCase(key, value);
  return metadata;
}

TraceContext Read(const Entries& entries, TraceErrors* errors = nullptr) {
  TraceErrors ignored;
  return ReadTraceContext(Of(entries), errors != nullptr ? errors : &ignored);
}

// The entries of a child call, whose span is 0x11, of a call with these.
std::vector<std::string> Child(const Entries& entries, bool chosen = true) {
  const Metadata received = Of(entries);
  TraceErrors errors;
  Metadata carried;
  AddTraceContext(ReadTraceContext(received, &errors), 0x11, chosen, received, &carried, nullptr);
  std::vector<std::string> lines;
  for (const auto& [key, value] : carried) lines.push_back(std::string(key) + ": " + std::string(value));
  return lines;
}

TEST(TraceContext, ReadsTraceparent) {
  const TraceContext context = Read({{"traceparent", kParent}});
  EXPECT_EQ(context.trace, (TraceId{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736}));
  EXPECT_EQ(context.span, 0x00f067aa0ba902b7u);
  EXPECT_EQ(context.choice, TraceChoice::kYes);
  const std::string open = std::string(kParent).substr(0, 53);
  EXPECT_EQ(Read({{"traceparent", open + "00"}}).choice, TraceChoice::kNo);
  EXPECT_EQ(Read({{"traceparent", open + "ff"}}).choice, TraceChoice::kYes);  // flags of later versions
}

TEST(TraceContext, TakesLaterVersionsOfTraceparent) {
  const std::string later = "cc" + std::string(kParent).substr(2);
  EXPECT_TRUE(Read({{"traceparent", later}}).valid());
  EXPECT_TRUE(Read({{"traceparent", later + "-what.the.future.adds"}}).valid());
  EXPECT_FALSE(Read({{"traceparent", later + "."}}).valid());
  EXPECT_THAT(Child({{"traceparent", later + "-x"}}),
              ElementsAre(std::string("traceparent: 00-") + kTrace + "-0000000000000011-01"));
}

TEST(TraceContext, IgnoresMalformedTraceparent) {
  const std::string good = kParent;
  std::vector<std::string> bad = {"", "00", good + "-x", good + " ", "ff" + good.substr(2), good.substr(1)};
  bad.push_back(good.substr(0, 54));
  bad.push_back("00-" + std::string(32, '0') + good.substr(35));
  bad.push_back(good.substr(0, 36) + std::string(16, '0') + "-01");
  for (const size_t dash : {2, 35, 52}) bad.push_back(std::string(good).replace(dash, 1, "_"));
  for (const size_t digit : {0, 3, 34, 36, 51, 53, 54}) {
    for (const char* c : {"A", "g", " ", "\xc3", "/", ":", "`"}) {
      bad.push_back(std::string(good).replace(digit, 1, c));
    }
  }
  for (const std::string& text : bad) {
    TraceErrors errors;
    EXPECT_FALSE(Read({{"traceparent", text}}, &errors).valid()) << text;
    EXPECT_TRUE(errors.context) << text;
  }
  TraceErrors errors;
  EXPECT_FALSE(Read({{"traceparent", kParent}, {"traceparent", kParent}}, &errors).valid());
  EXPECT_TRUE(errors.context);
}

TEST(TraceContext, ReadsB3) {
  for (const char* text : {"4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                           "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
                           "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-d-05e3ac9a4f6e3b90"}) {
    const TraceContext context = Read({{"b3", text}});
    EXPECT_EQ(context.trace, (TraceId{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736})) << text;
    EXPECT_EQ(context.span, 0x00f067aa0ba902b7u) << text;
    EXPECT_NE(context.choice, TraceChoice::kNo) << text;
  }
  EXPECT_EQ(Read({{"b3", "0"}}).choice, TraceChoice::kNo);
  EXPECT_FALSE(Read({{"b3", "0"}}).valid());
  const TraceContext multi = Read({{"x-b3-traceid", "a3ce929d0e0e4736"},
                                   {"x-b3-spanid", "00f067aa0ba902b7"},
                                   {"x-b3-parentspanid", "05e3ac9a4f6e3b90"},
                                   {"x-b3-sampled", "0"}});
  EXPECT_EQ(multi.trace, (TraceId{0, 0xa3ce929d0e0e4736}));
  EXPECT_EQ(multi.choice, TraceChoice::kNo);
  EXPECT_EQ(Read({{"x-b3-sampled", "true"}}).choice, TraceChoice::kYes);
  EXPECT_EQ(Read({{"x-b3-flags", "1"}}).choice, TraceChoice::kYes);
}

TEST(TraceContext, IgnoresMalformedB3) {
  const std::vector<Entries> bad = {
      {{"b3", ""}},
      {{"b3", "2"}},
      {{"b3", "4bf92f3577b34da6a3ce929d0e0e4736"}},
      {{"b3", "4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7"}},
      {{"b3", "0000000000000000-00f067aa0ba902b7"}},
      {{"b3", "a3ce929d0e0e4736-00f067aa0ba902b"}},
      {{"b3", "a3ce929d0e0e4736-00f067aa0ba902b7-"}},
      {{"b3", "a3ce929d0e0e4736-00f067aa0ba902b7-2"}},
      {{"b3", "a3ce929d0e0e4736-00f067aa0ba902b7-1-"}},
      {{"b3", "a3ce929d0e0e4736-00f067aa0ba902b7-1-05e3ac9a4f6e3b90-"}},
      {{"b3", "0"}, {"b3", "0"}},
      {{"x-b3-traceid", "a3ce929d0e0e4736"}},
      {{"x-b3-spanid", "00f067aa0ba902b7"}},
      {{"x-b3-traceid", "A3CE929D0E0E4736"}, {"x-b3-spanid", "00f067aa0ba902b7"}},
      {{"x-b3-traceid", "a3ce929d0e0e4736"}, {"x-b3-spanid", "0000000000000000"}},
      {{"x-b3-sampled", "d"}},
      {{"x-b3-sampled", "1"}, {"x-b3-sampled", "1"}},
  };
  for (const Entries& entries : bad) {
    TraceErrors errors;
    EXPECT_EQ(Read(entries, &errors).choice, TraceChoice::kOpen) << entries[0].second;
    EXPECT_FALSE(Read(entries, &errors).valid()) << entries[0].second;
    EXPECT_TRUE(errors.context) << entries[0].second;
  }
}

TEST(TraceContext, AMalformedFormLeavesTheNext) {
  TraceErrors errors;
  const TraceContext context =
      Read({{"traceparent", "x"}, {"b3", "a3ce929d0e0e4736-00f067aa0ba902b7-1"}}, &errors);
  EXPECT_EQ(context.trace.low, 0xa3ce929d0e0e4736u);
  EXPECT_TRUE(errors.context);
}

TEST(TraceContext, NothingIsNoError) {
  TraceErrors errors;
  EXPECT_FALSE(Read({}, &errors).valid());
  EXPECT_FALSE(Read({{"x-key", "value"}, {"tracestate", "a=b"}}, &errors).valid());
  EXPECT_FALSE(errors.context);
  EXPECT_FALSE(errors.state);
}

TEST(TraceContext, ChildrenCarryTheTraceAndTheirOwnSpan) {
  const std::string parent = std::string("traceparent: 00-") + kTrace + "-0000000000000011-0";
  EXPECT_THAT(Child({{"traceparent", kParent}}), ElementsAre(parent + "1"));
  EXPECT_THAT(Child({{"traceparent", kParent}}, /*chosen=*/false), ElementsAre(parent + "0"));
  EXPECT_THAT(Child({{"traceparent", kParent}, {"tracestate", "a=1, b=2"}, {"tracestate", "c@d=3"}}),
              ElementsAre(parent + "1", "tracestate: a=1, b=2", "tracestate: c@d=3"));
}

TEST(TraceContext, ChildrenCarryWhatLevel2Adds) {
  const std::string begin = std::string("00-") + kTrace;
  const Entries entries = {{"traceparent", begin + "-00f067aa0ba902b7-03"},
                           {"tracestate", "9a=1,1@2@3=2,a@" + std::string(200, 'b') + "=3"}};
  EXPECT_THAT(Child(entries), ElementsAre("traceparent: " + begin + "-0000000000000011-03",
                                          "tracestate: " + entries[1].second));
  EXPECT_THAT(Child(entries, /*chosen=*/false)[0], "traceparent: " + begin + "-0000000000000011-02");
  EXPECT_THAT(Child({entries[0], {"b3", "1"}}),
              ElementsAre("traceparent: " + begin + "-0000000000000011-03",
                          std::string("b3: ") + kTrace + "-0000000000000011-1"));
}

TEST(TraceContext, ChildrenCarryB3InTheFormInWhichItCame) {
  const std::string parent = "traceparent: 00-0000000000000000a3ce929d0e0e4736-0000000000000011-01";
  EXPECT_THAT(Child({{"b3", "a3ce929d0e0e4736-00f067aa0ba902b7-1"}}),
              ElementsAre(parent, "b3: a3ce929d0e0e4736-0000000000000011-1"));
  EXPECT_THAT(Child({{"x-b3-traceid", "a3ce929d0e0e4736"}, {"x-b3-spanid", "00f067aa0ba902b7"}}),
              ElementsAre(parent, "x-b3-traceid: a3ce929d0e0e4736", "x-b3-spanid: 0000000000000011",
                          "x-b3-sampled: 1"));
  EXPECT_THAT(Child({{"b3", std::string(kTrace) + "-00f067aa0ba902b7"}}, /*chosen=*/false),
              ElementsAre(std::string("traceparent: 00-") + kTrace + "-0000000000000011-00",
                          std::string("b3: ") + kTrace + "-0000000000000011-0"));
}

TEST(TraceContext, TheTraceparentHasAPlaceOfItsOwnIfThereIsOne) {
  const Metadata received = Of({{"traceparent", kParent}, {"b3", "1"}});
  TraceErrors errors;
  Metadata carried;
  wire::TraceParent parent;
  AddTraceContext(ReadTraceContext(received, &errors), 0x11, true, received, &carried, &parent);
  EXPECT_TRUE(parent.set);
  EXPECT_EQ(parent.view(), std::string("00-") + kTrace + "-0000000000000011-01");
  EXPECT_EQ(carried.Find("traceparent"), std::nullopt);
  EXPECT_EQ(carried.Find("b3"), std::string(kTrace) + "-0000000000000011-1");
}

// Property: of all bytes only the digits are taken, at each place.
TEST(TraceContext, TakesDigitsAndNothingElse) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    for (const size_t at : {0u, 1u, 3u, 10u, 11u, 34u, 36u, 43u, 44u, 51u}) {
      std::string parent = kParent;
      parent[at] = c;
      EXPECT_EQ(Read({{"traceparent", parent}}).valid(), digit) << byte << " at " << at;
    }
  }
}

TEST(TraceContext, WritesWhatItReads) {
  for (const uint64_t value : {uint64_t{1}, uint64_t{0x9a}, uint64_t{0x0123456789abcdef}, ~uint64_t{0},
                               uint64_t{0xfedcba9876543210}, uint64_t{0xa000000000000009}}) {
    std::string text(16, ' ');
    WriteHex(value, text.data());
    char expected[17];
    std::snprintf(expected, sizeof(expected), "%016llx", static_cast<unsigned long long>(value));
    EXPECT_EQ(text, expected);
    EXPECT_EQ(Read({{"traceparent", std::string("00-") + kTrace + "-" + text + "-01"}}).span, value);
  }
}

TEST(TraceContext, MalformedTracestateStaysBehind) {
  std::string many;
  for (int i = 0; i < 33; ++i) many += "a" + std::to_string(i) + "=1,";
  const std::vector<std::string> bad = {"",
                                        "a",
                                        "=1",
                                        "A=1",
                                        "a=",
                                        "a=1=2",
                                        "@a=1",
                                        std::string(257, 'a') + "=1",
                                        "a=\x01",
                                        many,
                                        "a=\xc3\xa9",
                                        " a=1",
                                        "a=1 ",
                                        "a b=1",
                                        "a=" + std::string(257, 'x')};
  for (const std::string& state : bad) {
    const Entries entries = {{"traceparent", kParent}, {"tracestate", state}};
    TraceErrors errors;
    EXPECT_TRUE(Read(entries, &errors).valid());
    EXPECT_TRUE(errors.state) << state;
    EXPECT_THAT(Child(entries), testing::SizeIs(1)) << state;
  }
  const std::string half = "a=" + std::string(255, 'x');
  EXPECT_THAT(Child({{"traceparent", kParent}, {"tracestate", half}, {"tracestate", half}}),
              testing::SizeIs(1));  // too long together
}

}  // namespace
}  // namespace curtail::observe
