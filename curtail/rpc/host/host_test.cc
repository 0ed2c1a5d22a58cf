// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/host.h"

#include <gmock/gmock.h>
#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/process/process.h"
#include "curtail/rpc/client/config/service_config.h"
#include "curtail/rpc/host/host_flags.h"
#include "curtail/rpc/host/host_testing.h"
#include "curtail/rpc/interceptor.h"
#include "curtail/rpc/retries.h"

namespace curtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A program whose services say in an error what their Env holds.
HostProgram Shop(std::shared_ptr<int> shared) {
  const auto tell = [shared](Env& env) -> MadeService {
    std::string text =
        Join("shard ", env.shard().ToString(), ", shared ", *shared, ", ", env.Count("cart"), " carts");
    for (const std::string& store : env.Store("cache")) text += ", cache " + store;
    if (env.Count("cart") > 0) {
      for (Channel* channel : env.Channels("cart")) text += ", cart " + channel->target();
    }
    return absl::UnavailableError(text);
  };
  const auto call = [tell](Env& env) -> MadeService {
    env.Channels("cart");
    return tell(env);
  };
  const auto add = [shared](Flags& flags) { flags.Add("--shared", shared.get(), "Of both", {0, 9}); };
  return {
      .name = "shop",
      .title = "A shop.",
      .examples = "Examples:\n  shop --monolith",
      .services = {{.name = "cart", .flags = add, .make = tell},
                   {.name = "front", .stores = {"cache"}, .flags = add, .make = call},
                   {.name = "beside", .own_stores = {"cache"}, .make = tell}},
      .commands = {{.name = "check",
                    .help = "Ends",
                    .examples = "Examples:\n  shop check",
                    .run = [] { return absl::FailedPreconditionError("checked"); }},
                   {.name = "audit", .help = "Ends", .run = [] { return absl::DataLossError("broken"); }},
                   {.name = "far", .help = "Ends", .run = [] { return absl::UnavailableError("nobody"); }},
                   {.name = "bare", .help = "Ends", .run = [] { return absl::OkStatus(); }}}};
}

HostRun Say(std::vector<std::string> args) {
  return RunHost(Shop(std::make_shared<int>(7)), std::move(args));
}

TEST(Host, HandsTheEnvToTheService) {
  const HostRun run = Say({"--service", "front", "--peer", "cart=127.0.0.1:1,127.0.0.1:2", "--store",
                           "cache=unix:/tmp/c", "--shard", "1/3", "--shared", "5"});
  EXPECT_EQ(run.code, 104);
  EXPECT_THAT(run.err,
              HasSubstr("shop: shard 1/3, shared 5, 2 carts, cache unix:/tmp/c, cart 127.0.0.1:1, cart "
                        "127.0.0.1:2"));
}

TEST(Host, TakesTargetsOfSeveralServersForPeers) {
  const HostRun run = Say({"--service", "cart", "--peer", "cart=dns:///no-such.invalid:8080,unix:/tmp/a",
                           "--balancer", "round_robin", "--resolve-interval", "5"});
  EXPECT_THAT(run.err, HasSubstr("2 carts, cart dns:///no-such.invalid:8080, cart unix:/tmp/a"));
}

TEST(Host, HedgesCallsToServicesOfSeveralInstances) {
  internal::HostFlags flags;
  flags.hedge_after_ms = 20.5;
  for (const int retries : {0, 1, 3}) {
    flags.retries = retries;
    const auto several = internal::ParseServiceConfig(internal::ServiceConfigFrom(flags, /*several=*/true));
    ASSERT_TRUE(several.ok()) << several.status();
    const internal::MethodConfig* const method = several->Find("/any.Service/Method");
    ASSERT_TRUE(method != nullptr && method->hedging);
    EXPECT_EQ(method->hedging->delay, std::chrono::microseconds(20'500));
    EXPECT_EQ(method->hedging->max_attempts, std::max(retries, 1) + 1);
    EXPECT_TRUE(method->hedging->IsNonFatal(absl::StatusCode::kUnavailable));
    EXPECT_TRUE(several->throttle.has_value());
    EXPECT_EQ(internal::ServiceConfigFrom(flags, /*several=*/false), RetryConfig(retries));
  }
}

TEST(Host, BoundsRequestsByAFlag) {
  internal::HostFlags flags;
  EXPECT_EQ(internal::ServerOptionsFrom(flags)->max_message_bytes, ServerOptions().max_message_bytes);
  flags.max_message_bytes = 1000;
  EXPECT_EQ(internal::ServerOptionsFrom(flags)->max_message_bytes, 1000u);
}

TEST(Host, AsksForHealthBesideRetries) {
  internal::HostFlags flags;
  EXPECT_EQ(internal::ServiceConfigFrom(flags, /*several=*/true), "");
  for (const int retries : {0, 2}) {
    SCOPED_TRACE(retries);
    flags.retries = retries;
    flags.health_checks = true;
    const auto config = internal::ParseServiceConfig(internal::ServiceConfigFrom(flags, /*several=*/true));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->health_service, "") << "the server as such";
    EXPECT_EQ(config->methods.size(), retries == 0 ? 0u : 1u);
    EXPECT_EQ(config->throttle.has_value(), retries > 0);
    flags.health_checks = false;
    EXPECT_EQ(internal::ServiceConfigFrom(flags, /*several=*/true).empty(), retries == 0);
  }
}

TEST(Host, RefusesWhatIsMissingOrWrong) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{}, "--service"},
      {{"--service", "nobody"}, "nobody"},
      {{"--service", "cart,nobody"}, "nobody"},
      {{"--service", "cart,cart"}, "--service names cart twice"},
      {{"--service", "front", "--store", "cache=unix:/c"},
       "front calls cart: say where it is, --peer cart=ADDR"},
      {{"--service", "front", "--store", "cache=unix:/c", "--peer", "cart=127.0.0.1:1", "--peer",
        "bar=127.0.0.1:1"},
       "--peer bar: front does not call it"},
      {{"--service", "front", "--peer", "cart=127.0.0.1:1"}, "--store cache=ADDR"},
      {{"--service", "cart", "--peer", "cart"}, "write NAME=ADDRESS"},
      {{"--service", "cart", "--peer", "cart=nonsense"}, "nonsense"},
      {{"--service", "cart", "--peer", "cart=dns://server/cart:80"}, "dns:///NAME:PORT"},
      {{"--service", "cart", "--balancer", "best"}, "--balancer: "},
      {{"--service", "cart", "--shard", "3/3"}, "3/3"},
      {{"--service", "cart", "--shared", "11"}, "11"},
      {{"--service", "cart", "--config", "XYZ"}, "XYZ"},
      {{"--service", "cart", "--fence", "yes"}, "write off, on, dry-run or strict"},
      {{"--service", "cart", "--priorities", "yes"}, "write off or on"},
      {{"--service", "cart", "--admission", "yes"}, "write off or credits"},
      {{"--service", "cart", "--fence-limit", "best"}, "one of fixed, sct, aimd, vegas, gradient2, not best"},
      {{"--service", "cart", "--fence-limit", "sct"}, "on or strict, not off"},
      {{"--service", "cart", "--fence-limit", "a.Users=3"}, "the limit of a.Users needs a fence"},
      {{"--service", "cart", "--fence", "strict", "--fence-limit", "a.Users=0"}, "SERVICE+SERVICE=LIMIT"},
      {{"--service", "cart", "--fence", "strict", "--fence-limit", "a=3", "--fence-limit", "a=4"},
       "a has two limits"},
      {{"--service", "cart", "--fence", "strict", "--fence-limit", "sct", "--fence-limit", "aimd"},
       "one limiter"},
      {{"--service", "cart", "--shed", "on"}, "write off or codel"},
      {{"--service", "cart", "--peer-cert", "/c"}, "--peer-cert and --peer-key go with --peer-ca"},
      {{"--service", "cart", "--peer-ca", "/nowhere/ca.pem"}, "/nowhere/ca.pem"},
      {{"--service", "cart", "--peer-plain", "front"}, "--peer-plain front: no --peer has this name"},
      {{"--service", "cart", "--queue", "fast"}, "write fifo or lifo"},
      {{"--service", "cart", "--shed-target", "60"},
       "--shed-interval 100 must be at least twice --shed-target 60"},
      {{"--service", "cart", "--colour", "red"}, "--colour: unknown flag or word; see --help"},
      {{"cart"}, "cart: unknown flag or word; did you mean \"--service cart\"?"},
      {{"--service", "front", "--store", "cache=unix:/c", "--peer", "crat=127.0.0.1:1"},
       "front does not call it; did you mean \"cart\"?"},
      {{"chek"}, "chek: unknown flag or word; did you mean \"check\"?"},
      {{"--service", "cart", "--listen", "9090"},
       "--listen: address \"9090\" has no host; write 127.0.0.1:9090"},
      {{"--service", "cart", "--peer", "a=b"}, "--peer a=b: "},
      {{"--service", "cart", "--listn=0"}, "--listn=0: unknown flag or word; did you mean \"--listen\"?"},
      {{"--monolith", "--instances", "cart=0"}, "SERVICE=COUNT"},
      {{"--monolith", "--instances", "carts=2"}, "there is no service carts; did you mean \"cart\"?"},
      {{"--service", "cart", "--instances", "cart=2"}, "--instances cart=2 needs --monolith"},
      {{"--service", "cart", "--outside", "cart"}, "--outside cart needs several services in one process"},
      {{"--monolith", "--outside", "other"}, "--outside: this process has no service other"},
      {{"--monolith", "--service", "cart"}, "cannot be combined"},
      {{"--service", "crat"}, "--service: unknown value \"crat\"; did you mean \"cart\"?"},
      {{"--service", "cart", "--drain", "2 days"}, "--drain: \"2 days\" is not a time; write 10s or 500ms"},
      {{"--service", "cart", "--drain", "25h"}, "--drain: 90000 is not from 0 to 86400"},
      {{"--service", "cart", "--max-message-bytes", "4XB"},
       "--max-message-bytes: \"4XB\" is not a number of bytes"},
      {{"--service", "cart", "--trace-sample", "0.5"}, "--trace-sample needs --trace-to"},
      {{"--service", "cart", "--trace-to", "zipkin=h:1"}, "write zipkin=http://localhost:9411"},
      {{"--service", "cart", "--tls-cert", "/c"}, "(--tls-cert) and its private key (--tls-key): give both"},
      {{"--service", "cart", "--tls-client-ca", "/c"},
       "(--tls-cert) and its private key (--tls-key): give both"},
      {{"--service", "cart", "--peer-ca", "/a", "--peer-cert", "/c"},
       "--peer-cert and --peer-key need each other"},
      {{"--service", "beside", "--store", "cache=unix:/a,unix:/b"}, "there are 1 and 2"},
      {{"check"}, "checked"},
  };
  for (const auto& [args, text] : cases) {
    const HostRun run = Say(args);
    EXPECT_EQ(run.code, 104) << text;
    EXPECT_THAT(run.err + run.out, HasSubstr(text));
  }
}

TEST(Host, TimesAndSizesMayHaveUnits) {
  const auto error = [](const std::string& flag, const char* value) {
    return Say({"--service", "cart", "--trace-to", "memory", flag, value, "--shared", "11"}).err;
  };
  for (const char* flag :
       {"--slo", "--trace-slow", "--shed-target", "--shed-interval", "--admission-target", "--hedge-after"}) {
    EXPECT_THAT(error(flag, "999999h"), HasSubstr(Join(flag, ": 3599996400000 is not from 0"))) << "in ms";
    EXPECT_THAT(error(flag, "5ms"), HasSubstr("--shared: 11 is not from 0 to 9"));
  }
  for (const char* flag : {"--drain", "--max-connection-idle", "--max-connection-age",
                           "--max-connection-age-grace", "--resolve-interval"}) {
    EXPECT_THAT(error(flag, "999999h"), HasSubstr(Join(flag, ": 3599996400 is not from 0"))) << "in seconds";
    EXPECT_THAT(error(flag, "1m30s"), HasSubstr("--shared: 11"));
  }
  EXPECT_THAT(error("--max-message-bytes", "4GiB"), HasSubstr(": 4294967296 is not from 1 to 2147483647"));
  EXPECT_THAT(error("--max-message-bytes", "4MB"), HasSubstr("--shared: 11"));
}

TEST(Host, ACommandThatCannotConnectFails) {
  const HostRun run = Say({"far"});
  EXPECT_EQ(run.code, 1) << "its command line is right";
  EXPECT_THAT(run.err, HasSubstr("nobody"));
}

TEST(Host, ACommandThatFindsBrokenDataEndsWithACodeOfItsOwn) {
  const HostRun run = Say({"audit"});
  EXPECT_EQ(run.code, 99);
  EXPECT_THAT(run.err, HasSubstr("broken"));
}

TEST(Host, HelpNamesServicesAndFlags) {
  const HostRun run = Say({"--help"});
  EXPECT_EQ(run.code, 0);
  for (const char* text : {"A shop.", "--service", "--monolith", "--peer", "--shared", "--config", "check"}) {
    EXPECT_THAT(run.out, HasSubstr(text));
  }
}

TEST(Host, HelpOfACommandHasItsOwnExamples) {
  const HostRun all = Say({"--help"}), check = Say({"check", "--help"}), bare = Say({"bare", "--help"});
  EXPECT_THAT(all.out, HasSubstr("shop --monolith"));
  EXPECT_THAT(check.out, AllOf(HasSubstr("shop check"), Not(HasSubstr("shop --monolith"))));
  EXPECT_THAT(bare.out, Not(HasSubstr("Examples")));
}

TEST(Host, MemoryNeedsNoPeers) {
  const HostRun run = Say({"--service", "front", "--memory"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "memory 12582912\n") << "a process, and no data";
}

TEST(Host, AMonolithsServicesFindEachOther) {
  HostProgram shop = Shop(std::make_shared<int>(7));
  shop.services.erase(shop.services.begin());
  shop.services.push_back({.name = "cart", .make = shop.services[0].make});
  shop.services[0].stores.clear();
  const HostRun run = RunHost(shop, {"--monolith", "--instances", "cart=2"});
  EXPECT_THAT(run.err, HasSubstr("2 carts, cart cart-0, cart cart-1"));
}

TEST(Host, ServicesOfAGroupFindEachOther) {
  const HostRun both = Say({"--service", "cart,front", "--store", "cache=unix:/c"});
  EXPECT_EQ(both.code, 104);
  EXPECT_THAT(both.err, HasSubstr("1 carts, cache unix:/c, cart cart\n")) << "in the process, without --peer";
  const HostRun memory = Say({"--service", "cart,front", "--memory"});
  EXPECT_EQ(memory.out, "memory 12582912\n") << memory.err;
}

class Named final : public Service {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  std::string_view FullName() const override { return name_; }
  std::vector<MethodHandler> Handlers() override {
    return {
        {.name = "Go", .handler = [](Context&, std::string_view, std::string*) { return absl::OkStatus(); }}};
  }

 private:
  const std::string name_;
};

// A service that calls the others that it is told, and serves.
HostProgram Callers() {
  const auto maker = [](std::string name, std::vector<std::string> callees) {
    return HostedService{.name = name, .make = [name, callees](Env& env) -> MadeService {
                           for (const std::string& callee : callees) env.Channels(callee);
                           return std::make_unique<Named>("test." + name);
                         }};
  };
  return {.name = "shop",
          .title = "A shop.",
          .examples = "",
          .services = {maker("cart", {"stock"}), maker("front", {"cart", "pay"}), maker("stock", {})}};
}

TEST(Host, AGroupIsHeldToTheCallsOfItsServices) {
  const auto say = [](std::vector<std::string> args) {
    args.insert(args.end(), {"--service", "cart,front", "--listen", "127.0.0.1:0"});
    const HostRun run = RunHost(Callers(), std::move(args));
    EXPECT_EQ(run.code, 104);
    return run.err;
  };
  EXPECT_THAT(say({}), HasSubstr("cart calls stock: say where it is, --peer stock=ADDR"));
  EXPECT_THAT(say({"--peer", "stock=127.0.0.1:1"}), HasSubstr("front calls pay: say where it is"));
  EXPECT_THAT(say({"--peer", "stock=127.0.0.1:1", "--peer", "pay=127.0.0.1:2", "--peer", "cart=127.0.0.1:3"}),
              HasSubstr("--peer cart: this process is cart"));
  EXPECT_THAT(say({"--peer", "stock=127.0.0.1:1", "--peer", "pay=127.0.0.1:2", "--peer", "ads=127.0.0.1:3"}),
              HasSubstr("--peer ads: none of cart, front calls it"));
}

TEST(Host, AStubOfSeveralInstancesHasTheOptionsOfTheFirstCall) {
  struct Refuse final : ClientInterceptor {
    absl::Status Before(const OutgoingCall&, Metadata&) override {
      return absl::DataLossError("intercepted");
    }
  };
  struct Cart {
    struct Stub {
      explicit Stub(Channel* to) : channel(to) {}
      Channel* channel;
    };
  };
  static Refuse refuse;
  const auto call = [](Env& env) -> MadeService {
    env.Channels("cart", {.interceptors = {&refuse}});
    Context ctx(Deadline::In(kMaxTestWait));
    google::protobuf::StringValue in, out;
    return env.Stub<Cart>("cart").channel->Call(ctx, "/test.Cart/Go", in, &out);
  };
  const HostProgram shop{
      .name = "shop", .title = "A shop.", .examples = "", .services = {{.name = "front", .make = call}}};
  const HostRun run = RunHost(shop, {"--service", "front", "--peer", "cart=127.0.0.1:1,127.0.0.1:2"});
  EXPECT_THAT(run.err, HasSubstr("intercepted"));
}

TEST(Host, AServiceMayBringOthers) {
  // Another of the same name: the server has got both.
  const auto make = [](Env& env) -> MadeService {
    env.AlsoServe(std::make_unique<Named>("test.Page"));
    env.AlsoServe(std::make_unique<Named>("test.Page"));
    return std::make_unique<Named>("test.Shop");
  };
  const HostProgram shop{
      .name = "shop", .title = "A shop.", .examples = "", .services = {{.name = "shop", .make = make}}};
  for (const char* form : {"--service=shop", "--monolith"}) {
    const HostRun run = RunHost(shop, {form, "--listen", "127.0.0.1:0"});
    EXPECT_EQ(run.code, 104);
    EXPECT_THAT(run.err, HasSubstr("method /test.Page/Go is served twice"));
  }
}

// A service whose works say on a pipe when they begin and end, and when what it keeps goes.
class Working final : public Service {
 public:
  std::string_view FullName() const override { return "test.Working"; }
  std::vector<MethodHandler> Handlers() override { return {}; }
};

int ServeWorking(int out) {
  struct Kept {
    ~Kept() { EXPECT_EQ(write(fd, "gone;", 5), 5); }
    int fd;
  };
  const auto make = [out](Env& env) -> MadeService {
    env.Keep(std::make_unique<Kept>(out));
    env.WhileServing([out] { EXPECT_EQ(write(out, "start;", 6), 6); },
                     [out] { EXPECT_EQ(write(out, "stop;", 5), 5); });
    return std::make_unique<Working>();
  };
  const HostProgram program{.name = "works",
                            .title = "Works.",
                            .examples = "",
                            .services = {{.name = "one", .make = make}, {.name = "two", .make = make}}};
  std::vector<std::string> args = {"works", "--service", "one", "--listen", "127.0.0.1:0"};
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  return HostMain(static_cast<int>(argv.size()), argv.data(), program);
}

// Calls `page` and what it has brought along, in the process and then where that serves, says on a pipe what comes of it,
// and serves on.
int ServeCaller(int out, const std::vector<std::string>& more) {
  const auto page = [](Env& env) -> MadeService {
    env.AlsoServe(std::make_unique<Named>("test.Beside"));
    return std::make_unique<Named>("test.Page");
  };
  const auto caller = [out](Env& env) -> MadeService {
    Channel* const within = env.SharedChannel("page");
    env.WhileServing(
        [=, &env] {
          Client client;
          Channel outside(&client, env.addresses().front());
          std::string said;
          for (Channel* channel : {within, &outside}) {
            for (const char* path : {"/test.Beside/Go", "/test.Page/Go", "/test.None/Go"}) {
              Context ctx(kMaxTestWait);
              google::protobuf::StringValue text;
              said += Join(absl::StatusCodeToString(channel->Call(ctx, path, text, &text).code()), ";");
            }
          }
          EXPECT_EQ(write(out, said.data(), said.size()), static_cast<ssize_t>(said.size()));
        },
        [] {});
    return std::make_unique<Working>();
  };
  const HostProgram program{.name = "shop",
                            .title = "A shop.",
                            .examples = "",
                            .services = {{.name = "page", .make = page, .outside = {"test.Beside"}},
                                         {.name = "caller", .make = caller}}};
  std::vector<std::string> args = {"shop", "--listen", "127.0.0.1:0"};
  args.insert(args.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  return HostMain(static_cast<int>(argv.size()), argv.data(), program);
}

// That service hears this with the flags.
std::string HeardWith(const std::vector<std::string>& flags) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  auto process = deploy::Process::Spawn({.name = "shop", .run = [&] {
                                           close(ends[0]);
                                           _exit(ServeCaller(ends[1], flags));
                                         }});
  close(ends[1]);
  EXPECT_TRUE(process.ok()) << process.status();
  std::string heard;
  char buffer[64];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    heard.append(buffer, static_cast<size_t>(got));
    (*process)->BeginToEnd();
  }
  close(ends[0]);
  const absl::Status ended = (*process)->End(kMaxTestWait);
  EXPECT_TRUE(ended.ok()) << ended;
  return heard;
}

TEST(Host, WithinAMonolithOthersCallWhatAServiceBrings) {
  EXPECT_EQ(HeardWith({"--monolith"}), "OK;OK;UNIMPLEMENTED;OK;OK;UNIMPLEMENTED;");
}

// Its services trust their callers.
TEST(Host, OthersReachOnlyWhatIsOutside) {
  constexpr char kWithinOnly[] = "OK;OK;UNIMPLEMENTED;UNIMPLEMENTED;UNIMPLEMENTED;UNIMPLEMENTED;";
  EXPECT_EQ(HeardWith({"--monolith", "--outside", "caller"}), kWithinOnly);
  EXPECT_EQ(HeardWith({"--service", "page,caller", "--outside", "caller"}), kWithinOnly);
  EXPECT_EQ(HeardWith({"--monolith", "--outside", "page"}),
            "OK;OK;UNIMPLEMENTED;OK;UNIMPLEMENTED;UNIMPLEMENTED;");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--monolith", "--outside", "other"},
                                                {"--service", "cart", "--outside", "cart"}}) {
    const HostRun run = Say(wrong);
    EXPECT_EQ(run.code, 104);
    EXPECT_THAT(run.err, HasSubstr("--outside"));
  }
}

TEST(Host, WorksGoOnWhileTheProcessServes) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto process = deploy::Process::Spawn({.name = "works", .run = [&ends] {
                                           close(ends[0]);
                                           _exit(ServeWorking(ends[1]));
                                         }});
  close(ends[1]);
  ASSERT_TRUE(process.ok()) << process.status();
  std::string heard;
  char buffer[64];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    heard.append(buffer, static_cast<size_t>(got));
    if (heard == "start;") (*process)->BeginToEnd();
  }
  close(ends[0]);
  const absl::Status ended = (*process)->End(kMaxTestWait);
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(heard, "start;stop;gone;");
}

}  // namespace
}  // namespace curtail
