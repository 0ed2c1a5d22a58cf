// SPDX-License-Identifier: Apache-2.0
//
// The spans of calls, as the page /traces has them, and the context that child calls carry.
#include "curtail/rpc/server/observe/call_tracer.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "curtail/observe/http_admin_testing.h"
#include "curtail/rpc/async.h"
#include "curtail/rpc/in_process.h"
#include "curtail/rpc/log.h"
#include "curtail/rpc/mid_tier_testing.h"

namespace curtail {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr const char* kModels[] = {"SIB1",     "SIP1",     "SDB1-2", "SDP1-2", "AIB1-1", "AIP1-1",
                                   "ADB1-2-2", "ADP1-2-2", "FIB1",   "FIP1",   "FDB1-2", "FDP1-2"};

// A leaf that says what trace its callers send, and a mid-tier that calls it twice. Both trace.
class CallTracerTest : public RpcBase, public testing::TestWithParam<const char*> {
 protected:
  ~CallTracerTest() override { mid_.reset(); }
  void TearDown() override {
    ExpectNothingInUse(mid_.get());
    ExpectNothingInUse(leaf_.get());
  }

  static std::string Carried(const Context& ctx) {
    std::string carried;
    for (const auto& [key, value] : ctx.metadata()) carried += Join(key, "=", value, ";");
    return carried;
  }
  static MethodHandler LeafMethod() {
    return {.name = "Run",
            .handler = internal::UnaryHandler<StringValue, StringValue>(
                [](Context& ctx, const StringValue& in, StringValue* out) -> absl::Status {
                  if (in.value() == "fail") return absl::NotFoundError("no such thing");
                  out->set_value(Carried(ctx));
                  return absl::OkStatus();
                })};
  }
  std::unique_ptr<Server> Start(const std::string& config, MethodHandler method) {
    ServerOptions options;
    options.config = *Config::Parse(config);
    options.http_admin = "127.0.0.1:0";
    options.trace = trace_;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<OneMethod>(std::move(method)));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  void ServeMid(MethodHandler method) {
    leaf_ = Start("SDB1-2", LeafMethod());
    to_leaf_ = std::make_unique<Channel>(&client_, leaf_->addresses()[0]);
    leaves_ = {to_leaf_.get(), to_leaf_.get()};
    mid_ = Start(config_, std::move(method));
    to_mid_ = std::make_unique<Channel>(&front_, mid_->addresses()[0]);
  }
  void ServeFanOut() {
    ServeMid(internal::CoroutineMethod<StringValue, StringValue>(
        "Run", [this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
          const Results results = co_await fan_out(ctx, leaves_, kRun, std::vector(2, in));
          for (const auto& result : results) {
            if (!result.ok()) co_return result.status();
          }
          out->set_value(results[1]->value());
          co_return absl::OkStatus();
        }));
  }
  absl::StatusOr<std::string> Run(const std::string& text,
                                  const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
    Context ctx(kMaxTestWait);
    for (const auto& [key, value] : metadata) ctx.AddMetadata(key, value);
    StringValue reply;
    const StringValue request = Text(text);
    const absl::Status status = to_mid_->Call(ctx, kRun.path, request, &reply);
    if (!status.ok()) return status;
    return reply.value();
  }
  // The spans of a server's own methods once there are n, which a reply may be ahead of.
  static std::vector<json> Spans(const Server& server, size_t n) { return SpansOf(server, {}, n); }
  // Of these traces; empty: of all.
  static std::vector<json> SpansOf(const Server& server, const std::set<std::string>& traces, size_t n) {
    observe::HttpPeer peer(server.http_admin_address());
    std::vector<json> spans;
    const Deadline end = Deadline::In(kMaxTestWait);
    do {
      spans.clear();
      const json page = json::parse(peer.Get("/traces").body);
      for (const json& span : page["spans"]) {
        if (span["method"] != "/test.Mid/Run") continue;
        if (traces.empty() || traces.contains(span["trace"])) spans.insert(spans.begin(), span);
      }
      BetweenLooks();
    } while (spans.size() < n && !end.Expired());
    return spans;
  }

  std::string config_ = "SDB1-2";
  TraceOptions trace_{.to = "memory", .sample = 1};
  Client client_, front_;
  std::unique_ptr<Server> leaf_, mid_;
  std::unique_ptr<Channel> to_leaf_, to_mid_;
  std::vector<Channel*> leaves_;
};

class TracedModelTest : public CallTracerTest {
 protected:
  TracedModelTest() { config_ = GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Models, TracedModelTest, testing::ValuesIn(kModels), ModelName);

// Of these, the ones that run straight-line handlers.
class TracedStraightLineTest : public TracedModelTest {};
INSTANTIATE_TEST_SUITE_P(Models, TracedStraightLineTest,
                         testing::Values("SIB1", "SIP1", "SDB1-2", "SDP1-2", "FIB1", "FIP1", "FDB1-2",
                                         "FDP1-2"),
                         ModelName);

int64_t Ns(const json& span, const char* part) { return span[part].get<int64_t>(); }

// The requests of one waterfall test: CURTAIL_TRACE_REQUESTS, or a number that takes no time.
size_t WaterfallRequests() {
  const char* const text = std::getenv("CURTAIL_TRACE_REQUESTS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 120;
}

// The parts of a span of the mid-tier are in each other and sum up to the whole, those of its leaves in them.
void ExpectSums(const json& span, const std::map<std::string, json>& leaf_by_parent) {
  constexpr int64_t kResolutionUs = 1;
  const int64_t before = Ns(span, "queue_ns") + Ns(span, "entry_ns");
  const int64_t handler = Ns(span, "handler_ns");
  EXPECT_EQ(before + handler + Ns(span, "reply_ns"), Ns(span, "total_ns"));
  for (const char* part : {"queue_ns", "entry_ns", "handler_ns", "reply_ns"}) EXPECT_GE(Ns(span, part), 0);
  ASSERT_THAT(span["calls"], SizeIs(2)) << span;
  for (const json& call : span["calls"]) {
    EXPECT_GE(Ns(call, "start_ns"), before) << span;
    EXPECT_LE(Ns(call, "start_ns") + Ns(call, "total_ns"), before + handler) << span;
    EXPECT_GE(Ns(call, "send_ns"), 0);
    EXPECT_EQ(call["parent"], span["id"]);
    ASSERT_TRUE(leaf_by_parent.contains(call["id"])) << call;
    const json& leaf = leaf_by_parent.at(call["id"]);
    EXPECT_EQ(leaf["trace"], span["trace"]);
    // The rest is the network's. The leaf's end may be told after its caller has the answer.
    EXPECT_LE(Ns(leaf, "total_ns") - Ns(leaf, "reply_ns"), Ns(call, "total_ns"));
    EXPECT_GE(Ns(leaf, "start_unix_us") + kResolutionUs,
              Ns(span, "start_unix_us") + Ns(call, "start_ns") / 1000);
  }
}

// Property: whatever the model, the parts of each waterfall sum up to the whole.
TEST_P(TracedModelTest, PartsOfAWaterfallSumUpToTheWhole) {
  constexpr size_t kBatch =
      30;  // a thread's ring has 64 spans, and one of a leaf may have two of each request
  ServeFanOut();
  size_t seen = 0;
  for (size_t left = WaterfallRequests(); left > 0 && !HasFailure(); left -= std::min(left, kBatch)) {
    const size_t calls = std::min(left, kBatch);
    std::set<std::string> traces;
    for (size_t i = 0; i < calls; ++i) {
      const absl::StatusOr<std::string> answer = Run("x");
      ASSERT_TRUE(answer.ok()) << answer.status();
      traces.insert(answer->substr(std::string("traceparent=00-").size(), std::size(kTrace) - 1));
    }
    ASSERT_THAT(traces, SizeIs(calls));
    const std::vector<json> spans = SpansOf(*mid_, traces, calls),
                            leaves = SpansOf(*leaf_, traces, 2 * calls);
    ASSERT_THAT(spans, SizeIs(calls));
    ASSERT_THAT(leaves, SizeIs(2 * calls));
    std::map<std::string, json> leaf_by_parent;
    for (const json& leaf : leaves) leaf_by_parent[leaf["parent"]] = leaf;
    for (const json& span : spans) ExpectSums(span, leaf_by_parent);
    seen += spans.size();
  }
  EXPECT_EQ(seen, WaterfallRequests());
}

TEST_P(TracedStraightLineTest, LogLinesNameTheTraceAndTheSpan) {
  TraceIds ids;
  std::string line;
  ServeMid({.name = "Run",
            .handler = internal::UnaryHandler<StringValue, StringValue>(
                [&](Context& ctx, const StringValue&, StringValue*) {
                  ids = TraceIdsOf(ctx);
                  testing::internal::CaptureStderr();
                  Log(Context(&ctx), Severity::kDebug, "below the level");
                  Log(Context(&ctx), Severity::kInfo, "here", {{"sku", "a7"}});
                  line = testing::internal::GetCapturedStderr();
                  return absl::OkStatus();
                })});
  ASSERT_TRUE(Run("x", {{"traceparent", kParent}}).ok());
  const std::vector<json> spans = Spans(*mid_, 1);
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(ids.trace, kTrace);
  EXPECT_EQ(ids.span, spans[0]["id"].get<std::string>()) << "the server's own span, not its caller's";
  EXPECT_THAT(line, testing::EndsWith(": here [4bf92f35]\n"));
  EXPECT_EQ(line.find("below"), line.npos);
}

TEST_F(CallTracerTest, LogLinesHaveTheCallersTraceWithoutATracer) {
  trace_ = {};
  std::vector<TraceIds> ids;
  ServeMid({.name = "Run",
            .handler = internal::UnaryHandler<StringValue, StringValue>(
                [&](Context& ctx, const StringValue&, StringValue*) {
                  ids.push_back(TraceIdsOf(ctx));
                  return absl::OkStatus();
                })});
  ASSERT_TRUE(Run("x", {{"traceparent", kParent}}).ok());
  ASSERT_TRUE(Run("x").ok());
  ASSERT_THAT(ids, SizeIs(2));
  EXPECT_EQ(ids[0].trace, kTrace);
  EXPECT_EQ(ids[0].span, "");
  EXPECT_EQ(ids[1].trace, "");
}

TEST_P(TracedModelTest, ErrorsAreAlwaysCaptured) {
  constexpr size_t kCalls = 20;
  trace_.sample = 0;
  ServeFanOut();
  for (size_t i = 0; i < kCalls; ++i) {
    EXPECT_EQ(Run(i % 2 == 0 ? "fail" : "x").status().code(),
              i % 2 == 0 ? absl::StatusCode::kNotFound : absl::StatusCode::kOk);
  }
  const std::vector<json> spans = Spans(*mid_, kCalls / 2);
  ASSERT_THAT(spans, SizeIs(kCalls / 2));
  for (const json& span : spans) {
    EXPECT_EQ(span["captured"], "error");
    EXPECT_EQ(span["status"], "NOT_FOUND");
    ASSERT_THAT(span["calls"], SizeIs(2));
    EXPECT_EQ(span["calls"][0]["status"], "NOT_FOUND");
    EXPECT_EQ(span["calls"][0]["target"], to_leaf_->target());
  }
}

TEST_P(TracedModelTest, AForeignContextComesOutOnTheOtherSide) {
  ServeFanOut();
  const auto answer = Run("x", {{"traceparent", kParent}, {"tracestate", "a=1"}, {"b3", "0"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::vector<json> spans = Spans(*mid_, 1);
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(spans[0]["trace"], kTrace);
  EXPECT_EQ(spans[0]["parent"], "00f067aa0ba902b7");
  const std::string child = spans[0]["calls"][1]["id"];
  EXPECT_EQ(*answer,
            Join("traceparent=00-", kTrace, "-", child, "-01;tracestate=a=1;b3=", kTrace, "-", child, "-1;"));
}

TEST_F(CallTracerTest, FollowsACallerThatHasNotChosen) {
  ServeFanOut();
  const std::string open = std::string(kParent).substr(0, 53);
  const auto answer = Run("x", {{"traceparent", open + "00"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(*answer, testing::StartsWith(Join("traceparent=00-", kTrace, "-")));
  EXPECT_THAT(*answer, testing::EndsWith("-00;"));
  EXPECT_THAT(*answer, testing::Not(testing::HasSubstr("00f067aa0ba902b7")));
  ASSERT_TRUE(Run("x").ok());
  EXPECT_THAT(Spans(*mid_, 1), SizeIs(1));  // the second
}

TEST_F(CallTracerTest, CountsMalformedContexts) {
  ServeFanOut();
  ASSERT_TRUE(Run("x", {{"traceparent", "00-zz"}}).ok());
  ASSERT_TRUE(Run("x", {{"traceparent", kParent}, {"tracestate", "A"}}).ok());
  const std::string metrics = observe::HttpPeer(mid_->http_admin_address()).Get("/metrics").body;
  EXPECT_THAT(metrics, testing::HasSubstr("curtail_trace_malformed_total{part=\"context\"} 1\n"));
  EXPECT_THAT(metrics, testing::HasSubstr("curtail_trace_malformed_total{part=\"state\"} 1\n"));
  EXPECT_THAT(Spans(*mid_, 2), SizeIs(2));
}

TEST_F(CallTracerTest, SlowCallsAreCaptured) {
  trace_.sample = 0;
  trace_.slow = Nanos(1);
  ServeFanOut();
  ASSERT_TRUE(Run("x").ok());
  const std::vector<json> spans = Spans(*mid_, 1);
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(spans[0]["captured"], "slow");
}

TEST_F(CallTracerTest, QuickCallsOfAFailedRequestAreCounted) {
  trace_.sample = 0;
  ServeMid(internal::CoroutineMethod<StringValue, StringValue>(
      "Run", [this](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
        (void)co_await fan_out(ctx, leaves_, kRun, std::vector(2, in));
        co_return absl::DataLossError("of its own");
      }));
  EXPECT_EQ(Run("x").status().code(), absl::StatusCode::kDataLoss);
  const std::vector<json> spans = Spans(*mid_, 1);
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_THAT(spans[0]["calls"], IsEmpty());
  EXPECT_EQ(spans[0]["calls_left_out"], 2);
}

TEST_F(CallTracerTest, NothingIsCapturedWithoutReason) {
  trace_.sample = 0;
  ServeFanOut();
  const auto answer = Run("x");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(*answer, "");  // no trace: it would be of no use to anyone
  EXPECT_THAT(Spans(*mid_, 0), IsEmpty());
}

// Parts of a request, functions that leave its thread, and calls in the process carry the trace.
TEST_P(TracedStraightLineTest, PartsCarryTheTrace) {
  InProcess near("near");
  OneMethod near_service(LeafMethod());
  ASSERT_TRUE(near.Serve(near_service).ok());
  Channel to_near(&client_, &near);
  const auto call = [](Context& ctx, Channel& channel, std::string* answer) {
    StringValue reply;
    const StringValue request = Text("x");
    EXPECT_TRUE(channel.Call(ctx, kRun.path, request, &reply).ok());
    *answer = reply.value();
  };
  std::string beside, offloaded, within;
  ServeMid({.name = "Run",
            .handler = internal::UnaryHandler<StringValue, StringValue>(
                [&](Context& ctx, const StringValue&, StringValue*) {
                  auto part = async(ctx, [&](Context& mine) { call(mine, *to_leaf_, &beside); });
                  call(ctx, to_near, &within);
                  part.get();
                  Offload([&] { call(ctx, *to_leaf_, &offloaded); });
                  return absl::OkStatus();
                })});
  ASSERT_TRUE(Run("x").ok());
  const std::vector<json> spans = Spans(*mid_, 1);
  ASSERT_THAT(spans, SizeIs(1));
  const std::string trace = spans[0]["trace"];
  ASSERT_THAT(spans[0]["calls"], SizeIs(3));
  for (const std::string& carried : {beside, offloaded, within}) {
    EXPECT_THAT(carried, testing::StartsWith(Join("traceparent=00-", trace, "-"))) << carried;
    size_t found = 0;
    for (const json& child : spans[0]["calls"]) {
      found += carried.find(child["id"].get<std::string>()) != std::string::npos;
    }
    EXPECT_EQ(found, 1u) << carried;
  }
  mid_.reset();
}

TEST_F(CallTracerTest, CallsOfHandlersInTheProcessAreWithinTheirs) {
  InProcess near("near");
  OneMethod near_service({.name = "Run",
                          .handler = internal::UnaryHandler<StringValue, StringValue>(
                              [this](Context& ctx, const StringValue& in, StringValue* out) {
                                return to_leaf_->Call(ctx, kRun.path, in, out);
                              })});
  ASSERT_TRUE(near.Serve(near_service).ok());
  Channel to_near(&client_, &near);
  ServeMid({.name = "Run",
            .handler = internal::UnaryHandler<StringValue, StringValue>(
                [&](Context& ctx, const StringValue& in, StringValue* out) {
                  return to_near.Call(ctx, kRun.path, in, out);
                })});
  ASSERT_TRUE(Run("x").ok());
  const std::vector<json> spans = Spans(*mid_, 1);
  ASSERT_THAT(spans, SizeIs(1));
  const json& calls = spans[0]["calls"];
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0]["target"], "near");
  EXPECT_EQ(calls[0]["parent"], spans[0]["id"]);
  EXPECT_EQ(calls[1]["parent"], calls[0]["id"]);
  mid_.reset();
}

TEST_F(CallTracerTest, RefusesWhatItCannotDo) {
  for (const TraceOptions& options :
       {TraceOptions{.to = "jaeger=http://a"}, TraceOptions{.to = "zipkin=a:9411"},
        TraceOptions{.to = "otlp=https://a"}, TraceOptions{.to = "memory", .sample = 1.5},
        TraceOptions{.to = "memory", .slow = Nanos(-1)}}) {
    ServerOptions server;
    server.trace = options;
    EXPECT_EQ(Server::Start(std::move(server), {}).status().code(), absl::StatusCode::kInvalidArgument)
        << options.to;
  }
}

}  // namespace
}  // namespace curtail
