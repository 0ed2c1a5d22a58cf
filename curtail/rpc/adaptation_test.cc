// SPDX-License-Identifier: Apache-2.0
//
// Servers that choose their config by the load.
#include <dirent.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <deque>
#include <fstream>
#include <functional>

#include "curtail/adapt/profile_testing.h"
#include "curtail/exec/spin_budget.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;
using testing::Not;

// A file that goes with the object.
class TempFile {
 public:
  explicit TempFile(const std::string& text)
      : path_(Join(testing::TempDir(), "adaptation-", getpid(), "-", ++made_)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TempFile() { unlink(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static inline int made_ = 0;
  const std::string path_;
};

// How many threads of this process have this name.
int ThreadsNamed(std::string_view name) {
  int found = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* const task = readdir(tasks)) {
    std::string comm;
    std::ifstream(Join("/proc/self/task/", task->d_name, "/comm")) >> comm;
    found += comm == name;
  }
  closedir(tasks);
  return found;
}

std::string TextOf(Profile profile) {
  profile.service = "test.Echo";
  return ProfileJson(profile).value();
}

// `low` answers sooner and sustains 300 requests a second, `high` sustains all.
Profile LowAndHigh(std::string_view low, std::string_view high) {
  return MakeProfile({100, 300, 1000, 10'000, 100'000},
                     {{low, 300, [](double) { return 100; }}, {high, 1e18, [](double) { return 500; }}});
}

constexpr Method<StringValue, StringValue> kEach{"/test.Echo/Each"};

// Echo as a coroutine, for all models, and as a stream.
class CoroutineEcho final : public Service {
 public:
  std::string_view FullName() const override { return "test.Echo"; }
  std::vector<MethodHandler> Handlers() override {
    return {internal::CoroutineMethod<StringValue, StringValue>(
                "Echo",
                [](Context&, const StringValue& in, StringValue* out) -> Coroutine {
                  out->set_value(in.value());
                  co_return absl::OkStatus();
                }),
            {.name = "Each",
             .kind = MethodHandler::Kind::kEachMessage,
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [](Context&, const StringValue& in, StringValue* out) {
                   out->set_value(in.value());
                   return absl::OkStatus();
                 }),
             .never_waits = true}};
  }
};

// Makes calls of kEcho and checks that each is answered once.
class Caller {
 public:
  explicit Caller(const std::string& address) : channel_(&client_, address) {}

  // Keeps `in_flight` calls open until `enough` or the longest wait; returns whether it was enough.
  bool Drive(size_t in_flight, const std::function<bool()>& enough) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    bool reached = false;
    while (!(reached = enough()) && !deadline.Expired()) {
      while (answers_.size() - done_ < in_flight) Start();
      done_ += client_.Poll(Deadline::In(milliseconds(10)));
    }
    while (done_ < answers_.size() && !deadline.Expired()) done_ += client_.Poll(deadline);
    return reached;
  }
  // One call in each `gap` at most, whether or not those before are answered.
  bool Trickle(const std::function<bool()>& enough, Nanos gap = milliseconds(20)) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!enough()) {
      if (deadline.Expired()) return false;
      Start();
      const Deadline next = Deadline::In(gap);
      while (!next.Expired()) done_ += client_.Poll(next);
    }
    return true;
  }
  // That all calls succeeded, and how many they are.
  void ExpectAllAnsweredOnce(size_t at_least) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (done_ < answers_.size() && !deadline.Expired()) done_ += client_.Poll(deadline);
    EXPECT_EQ(done_, answers_.size());
    EXPECT_GE(done_, at_least);
    for (const Answer& answer : answers_) {
      ASSERT_TRUE(answer.good) << answer.status;
      ASSERT_EQ(answer.times, 1);
    }
  }
  size_t done() const { return done_; }

 private:
  struct Answer final : Completion {
    void Done(absl::Status&& s, std::string&& reply) override {
      StringValue value;
      good = s.ok() && value.ParseFromString(reply) && value.value() == expected;
      status = std::move(s);
      ++times;
    }
    std::string expected;
    absl::Status status;
    int times = 0;
    bool good = false;
  };

  void Start() {
    const size_t n = answers_.size();
    answers_.emplace_back().expected = Join(n);
    channel_.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, Text(Join(n)).SerializeAsString(),
                   &answers_.back());
  }

  Client client_;
  std::deque<Answer> answers_;  // stay where they are; after the client that may still refer to them
  Channel channel_;
  size_t done_ = 0;
};

class AdaptationTest : public RpcBase, public testing::Test {
 protected:
  static ServerOptions Options(std::string policy, std::string config = "SIB1") {
    ServerOptions options;
    options.config = *Config::Parse(config);
    options.max_threads = 16;
    options.policy = std::move(policy);
    options.any_machine = true;
    return options;
  }
  absl::StatusOr<std::unique_ptr<Server>> TryStart(ServerOptions options, bool coroutine = false) {
    std::vector<std::unique_ptr<Service>> services;
    if (coroutine) {
      services.push_back(std::make_unique<CoroutineEcho>());
    } else {
      services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>{}, &cancelled_));
    }
    return Server::Start(std::move(options), std::move(services));
  }
  std::unique_ptr<Server> Start(ServerOptions options, bool coroutine = false) {
    auto server = TryStart(std::move(options), coroutine);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  // Why a server does not start with these options.
  std::string Refusal(ServerOptions options) {
    auto server = TryStart(std::move(options));
    EXPECT_TRUE(absl::IsInvalidArgument(server.status())) << server.status();
    return std::string(Message(server.status()));
  }
  static std::string ConfigOfServer(Server& server) { return server.config().ToString(); }

  // A burst takes it from `low` to `high`, and a trickle back.
  void ExpectUpAndBack(const std::string& low, const std::string& high, bool coroutine) {
    const TempFile profile(TextOf(LowAndHigh(low, high)));
    ServerOptions options = Options("mutune", low);
    options.profile = profile.path();
    const auto server = Start(std::move(options), coroutine);
    ASSERT_NE(server, nullptr);
    const int threads = static_cast<int>(server->Sample(true).process.threads);
    Caller caller(server->addresses()[0]);
    ASSERT_TRUE(caller.Trickle([&] { return caller.done() >= 5; }));
    EXPECT_EQ(ConfigOfServer(*server), low);
    EXPECT_TRUE(caller.Drive(16, [&] { return ConfigOfServer(*server) == high; }));
    // A switch is in force a moment before it is noted.
    EXPECT_TRUE(caller.Trickle([&] {
      return ConfigOfServer(*server) == low && server->Sample().policy.value().decisions.size() >= 2;
    }));
    caller.ExpectAllAnsweredOnce(20);
    const PolicyStats stats = server->Sample().policy.value();
    ASSERT_GE(stats.decisions.size(), 2u);
    EXPECT_EQ(stats.decisions.front().to.ToString(), high);
    EXPECT_EQ(stats.decisions.front().reason, "the load is beyond the present config");
    EXPECT_GT(stats.decisions.front().rate_per_s, 300);
    EXPECT_EQ(stats.decisions.back().to.ToString(), low);
    EXPECT_EQ(stats.switches, stats.decisions.size());
    EXPECT_EQ(stats.arrivals, caller.done());
    EXPECT_EQ(static_cast<int>(server->Sample(true).process.threads), threads);
    EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
  }
};

TEST_F(AdaptationTest, SwitchesUpInABurstAndBack) { ExpectUpAndBack("SIB1", "SDB1-4", false); }
TEST_F(AdaptationTest, SwitchesToFibersAndBack) { ExpectUpAndBack("SIB1", "FDB1-2", false); }
TEST_F(AdaptationTest, SwitchesACoroutineServiceToAsynchronousModels) {
  ExpectUpAndBack("FIB1", "ADB1-2-2", true);
}

// At each load another config is best, and the paper's estimate wanders over many.
Profile AnotherAtEachLoad() {
  const std::vector<double> loads = {250, 500, 1000, 2000, 4000, 8000, 16'000, 32'000, 64'000};
  std::vector<TestCurve> curves;
  const std::vector<std::string> configs = {"SIB1", "SDB1-4", "FIB1", "ADB1-2-2"};
  for (size_t c = 0; c < configs.size(); ++c) {
    curves.push_back({.config = configs[c], .p99_us = [c, &loads](double load) {
                        const size_t i = std::find(loads.begin(), loads.end(), load) - loads.begin();
                        return i % 4 == c ? 100 : 1000;
                      }});
  }
  return MakeProfile(loads, curves);
}

// Property: a policy that switches all the time loses, fails and doubles no request.
TEST_F(AdaptationTest, ConstantSwitchingHarmsNoRequestStress) {
  const TempFile profile(TextOf(AnotherAtEachLoad()));
  ServerOptions options = Options("mutune:paper");
  options.profile = profile.path();
  const auto server = Start(std::move(options), /*coroutine=*/true);
  ASSERT_NE(server, nullptr);
  Caller caller(server->addresses()[0]);
  const Deadline enough = Deadline::In(seconds(1));
  EXPECT_TRUE(caller.Drive(16, [&] { return enough.Expired() && server->Sample().policy->switches >= 100; }));
  caller.ExpectAllAnsweredOnce(100);
  EXPECT_EQ(server->Sample().policy->failures, 0u);
  EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
}

// The numbers that follow `key` in a JSON text, in their order.
std::vector<int64_t> NumbersAfter(const std::string& json, const std::string& key) {
  std::vector<int64_t> numbers;
  const std::string name = Join("\"", key, "\":");
  for (size_t at = json.find(name); at != std::string::npos; at = json.find(name, at + 1)) {
    numbers.push_back(std::strtoll(json.c_str() + at + name.size(), nullptr, 10));
  }
  return numbers;
}

TEST_F(AdaptationTest, TheAdminInterfaceTellsOfEachDecisionAndWhen) {
  const TempFile profile(TextOf(AnotherAtEachLoad()));
  ServerOptions options = Options("mutune:paper");
  options.profile = profile.path();
  options.admin = "127.0.0.1:0";
  const int64_t before = Now().time_since_epoch().count();
  const auto server = Start(std::move(options), /*coroutine=*/true);
  ASSERT_NE(server, nullptr);
  Caller caller(server->addresses()[0]);
  ASSERT_TRUE(caller.Drive(16, [&] { return server->Sample().policy->switches >= 40; }));
  EXPECT_EQ(server->Sample().policy->decisions.size(), 32u);
  Client client;
  Channel admin(&client, server->admin_address());
  std::string answer;
  ASSERT_TRUE(Call(admin, {"/curtail.admin.v1.Admin/GetDecisions"}, "", &answer).ok());
  EXPECT_THAT(answer, testing::StartsWith("{\"schema_version\":1,\"now_ns\":"));
  EXPECT_THAT(answer, HasSubstr("\"reason\":\"lowest prediction\",\"failure\":\"\"}"));
  const std::vector<int64_t> now = NumbersAfter(answer, "now_ns");
  const std::vector<int64_t> switches = NumbersAfter(answer, "switches");
  const std::vector<int64_t> at = NumbersAfter(answer, "at_ns");
  ASSERT_EQ(now.size(), 1u);
  ASSERT_EQ(switches.size(), 1u);
  ASSERT_GE(at.size(), 40u);
  // A switch that the policy makes meanwhile may be in one of the two only.
  EXPECT_NEAR(static_cast<double>(at.size()), static_cast<double>(switches[0]), 1);
  EXPECT_GE(at.front(), before);
  EXPECT_TRUE(std::is_sorted(at.begin(), at.end()));
  EXPECT_LE(at.back(), now[0]);
  EXPECT_LE(now[0], Now().time_since_epoch().count());
}

TEST_F(AdaptationTest, OnlineLearnsWithoutAProfile) {
  ServerOptions options = Options("online");
  options.slo = seconds(1);
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  Caller caller(server->addresses()[0]);
  // It tries another config only when it has measured the present one.
  EXPECT_TRUE(caller.Trickle(
      [&] {
        const PolicyStats stats = server->Sample().policy.value();
        return std::any_of(stats.decisions.begin(), stats.decisions.end(),
                           [](const PolicyDecision& decision) { return decision.reason == "trial"; });
      },
      std::chrono::microseconds(500)));
  caller.ExpectAllAnsweredOnce(300);
  EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
}

TEST_F(AdaptationTest, MessagesOfStreamsCount) {
  const TempFile profile(TextOf(LowAndHigh("SIB1", "SDB1-4")));
  ServerOptions options = Options("mutune");
  options.profile = profile.path();
  const auto server = Start(std::move(options), /*coroutine=*/true);
  ASSERT_NE(server, nullptr);
  Client client;
  Channel channel(&client, server->addresses()[0]);
  for (int i = 0; i < 10; ++i) {
    std::string answer;
    const absl::Status status = Call(channel, kEach, Join(i), &answer);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(answer, Join(i));
  }
  EXPECT_EQ(server->Sample().policy->arrivals, 10u);
}

TEST_F(AdaptationTest, IpiBlocksOrPollsByTheThreadsThatWait) {
  const auto server = Start(Options("ipi:SDB1-4"));
  ASSERT_NE(server, nullptr);
  Caller caller(server->addresses()[0]);
  const auto is = [&](const char* config) {
    return [&, config] { return ConfigOfServer(*server) == config; };
  };
  // Nothing to do: no thread is active.
  EXPECT_TRUE(caller.Trickle(is("SDP1-4")));
  caller.ExpectAllAnsweredOnce(0);
  // Each worker is held up where the server cannot see that it waits.
  Client client;
  Channel channel(&client, server->addresses()[0]);
  struct Ignore final : Completion {
    void Done(absl::Status&&, std::string&&) override {}
  } ignore;
  for (int i = 0; i < 4; ++i) {
    channel.Start(kHang.path, Deadline::In(kMaxTestWait), {}, Text("x").SerializeAsString(), &ignore);
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (gate_.arrived() < 4 && !deadline.Expired()) client.Poll(Deadline::In(milliseconds(5)));
  const auto held_up = is(UsableCpus() < 4 ? "SDB1-4" : "SDP1-4");
  while (!held_up() && !deadline.Expired()) client.Poll(Deadline::In(milliseconds(5)));
  EXPECT_TRUE(held_up()) << ConfigOfServer(*server);
  gate_.Open();
  for (int left = 4; left > 0 && !deadline.Expired();) left -= static_cast<int>(client.Poll(deadline));
  EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
}

// Property: threads that switch in the middle of their waits lose no request, and leave the right count behind.
TEST_F(AdaptationTest, IpiUnderLoadHarmsNoRequestStress) {
  for (const char* policy : {"ipi:SDB1-4", "ipi:SDB2-8", "ipi:SIB3"}) {
    const auto server = Start(Options(policy));
    ASSERT_NE(server, nullptr);
    std::string idle = std::string(policy).substr(4);
    idle[2] = 'P';  // nobody is active
    Caller caller(server->addresses()[0]);
    const Deadline enough = Deadline::In(milliseconds(300));
    EXPECT_TRUE(caller.Drive(16, [&] { return enough.Expired() && caller.done() >= 100; }));
    caller.ExpectAllAnsweredOnce(100);
    const Deadline deadline = Deadline::In(kMaxTestWait);
    Client client;
    while (ConfigOfServer(*server) != idle && !deadline.Expired()) client.Poll(Deadline::In(milliseconds(5)));
    EXPECT_EQ(ConfigOfServer(*server), idle);
    EXPECT_EQ(server->Sample().policy->failures, 0u);
    EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
  }
}

TEST_F(AdaptationTest, TheTimerThreadExistsOnlyForPoliciesThatSwitch) {
  const TempFile profile(TextOf(LowAndHigh("SIB1", "SDB1-4")));
  for (const char* policy : {"", "static:SDB1-4", "mutune"}) {
    const auto server = Start(Options(policy));
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(ThreadsNamed("adapt"), 0) << policy;
  }
  ServerOptions options = Options("mutune");
  options.profile = profile.path();
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(ThreadsNamed("adapt"), 1);
  EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
  EXPECT_EQ(ThreadsNamed("adapt"), 0);
}

TEST_F(AdaptationTest, WithoutAPolicyThereIsNothingToReport) {
  const auto server = Start(Options(""));
  ASSERT_NE(server, nullptr);
  EXPECT_FALSE(server->Sample().policy.has_value());
}

TEST_F(AdaptationTest, StaticIsTheConfigItNames) {
  const auto server = Start(Options("static:SDB1-20"));
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(ConfigOfServer(*server), "SDB1-20");  // with more threads than were asked for
  EXPECT_FALSE(server->Sample().policy->switches_by_itself);
  EXPECT_TRUE(server->SwitchTo(*Config::Parse("SIB2")).ok());
  EXPECT_THAT(Refusal(Options("static:ADB1-4-4")), HasSubstr("straight-line handler"));
}

TEST_F(AdaptationTest, WithoutAProfileTheConfigStaysAndTheNoteSaysSo) {
  for (const char* policy : {"mutune", "mutune:paper", "fm", "tbd", "ipi"}) {
    const auto server = Start(Options(policy, "SDB1-4"));
    ASSERT_NE(server, nullptr);
    const PolicyStats stats = server->Sample().policy.value();
    EXPECT_FALSE(stats.switches_by_itself) << policy;
    EXPECT_THAT(stats.note, HasSubstr("the config stays SDB1-4"));
    EXPECT_EQ(ConfigOfServer(*server), "SDB1-4");
  }
}

TEST_F(AdaptationTest, ProfilesThatDoNotFitAreRefused) {
  const std::string good = TextOf(LowAndHigh("SIB1", "SDB1-4"));
  const auto refusal = [&](const std::string& text, bool any_machine = true) {
    const TempFile file(text);
    ServerOptions options = Options("mutune");
    options.profile = file.path();
    options.any_machine = any_machine;
    const std::string why = Refusal(std::move(options));
    EXPECT_THAT(why, HasSubstr(file.path()));
    return why;
  };
  EXPECT_THAT(refusal(""), HasSubstr("JSON"));
  EXPECT_THAT(refusal(good.substr(0, good.size() / 2)), HasSubstr("JSON"));
  std::string other_summary = good;
  other_summary.replace(other_summary.find("\"saturation_per_s\":"), 19, "\"saturation_per_S\":");
  refusal(other_summary);
  EXPECT_THAT(refusal(good, /*any_machine=*/false), HasSubstr("another machine"));
  std::string other_service = good;
  other_service.replace(other_service.find("test.Echo"), 9, "test.Ecce");
  EXPECT_THAT(refusal(other_service), HasSubstr("not of \"test.Echo\""));
  // None of its configs is for a straight-line service.
  EXPECT_THAT(refusal(TextOf(LowAndHigh("AIB1-1", "ADB1-2-2")), true), Not(HasSubstr("JSON")));
}

TEST_F(AdaptationTest, AProfileOfThisMachineIsTaken) {
  Profile profile = LowAndHigh("SIB1", "SDB1-4");
  profile.machine = ThisMachineFingerprint();
  const TempFile file(TextOf(profile));
  ServerOptions options = Options("mutune", "SDB1-4");
  options.profile = file.path();
  options.any_machine = false;
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(ConfigOfServer(*server), "SIB1");  // the best for no load, from the first moment
}

TEST_F(AdaptationTest, MistakesAreExplained) {
  EXPECT_THAT(Refusal(Options("mootune")), HasSubstr("there is static:CONFIG"));
  EXPECT_THAT(Refusal(Options("static:X")), HasSubstr("config \"X\""));
  ServerOptions no_policy = Options("");
  no_policy.profile = "p.json";
  EXPECT_THAT(Refusal(no_policy), HasSubstr("no policy"));
  ServerOptions no_file = Options("mutune");
  no_file.profile = "/nonexistent/p.json";
  EXPECT_THAT(Refusal(no_file), HasSubstr("profile /nonexistent/p.json: No such file"));
  no_file.profile = "/";
  EXPECT_THAT(Refusal(no_file), HasSubstr("profile /: Is a directory"));
  ServerOptions no_slo = Options("online");
  no_slo.slo = Nanos(0);
  EXPECT_THAT(Refusal(no_slo), HasSubstr("SLO"));
}

TEST_F(AdaptationTest, ConfigsForMoreThreadsAreLeftOut) {
  const TempFile profile(TextOf(LowAndHigh("SIB1", "SDB1-50")));
  ServerOptions options = Options("mutune");
  options.profile = profile.path();
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  EXPECT_THAT(server->Sample().policy->note, HasSubstr("SDB1-50"));
  Caller caller(server->addresses()[0]);
  EXPECT_TRUE(caller.Drive(16, [&] { return caller.done() >= 1000; }));
  EXPECT_EQ(server->Sample().policy->switches, 0u);
}

TEST_F(AdaptationTest, NobodyElseSwitches) {
  const TempFile profile(TextOf(LowAndHigh("SIB1", "SDB1-4")));
  ServerOptions options = Options("mutune");
  options.profile = profile.path();
  options.admin = "127.0.0.1:0";
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(server->SwitchTo(*Config::Parse("SDB1-4"))));
  Client client;
  Channel admin(&client, server->admin_address());
  const absl::Status status = Call(admin, {"/curtail.admin.v1.Admin/Switch"}, "SDB1-4");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("static:SDB1-4"));
  EXPECT_EQ(ConfigOfServer(*server), "SIB1");
}

TEST_F(AdaptationTest, TheAdminInterfaceTellsOfThePolicy) {
  const TempFile profile(TextOf(LowAndHigh("SIB1", "SDB1-4")));
  ServerOptions options = Options("mutune", "SDB1-4");
  options.profile = profile.path();
  options.admin = "127.0.0.1:0";
  const auto server = Start(std::move(options));
  ASSERT_NE(server, nullptr);
  Client client;
  Channel admin(&client, server->admin_address());
  std::string answer;
  ASSERT_TRUE(Call(admin, {"/curtail.admin.v1.Admin/GetStatus"}, "", &answer).ok());
  EXPECT_THAT(answer, HasSubstr("\"policy\":{\"name\":\"mutune\",\"note\":\"\",\"switches_by_itself\":true"));
  EXPECT_THAT(answer, HasSubstr("\"from\":\"SDB1-4\",\"to\":\"SIB1\",\"reason\":\""));
  const auto plain = Start([] {
    ServerOptions options = Options("");
    options.admin = "127.0.0.1:0";
    return options;
  }());
  ASSERT_NE(plain, nullptr);
  Channel other(&client, plain->admin_address());
  ASSERT_TRUE(Call(other, {"/curtail.admin.v1.Admin/GetStatus"}, "", &answer).ok());
  EXPECT_THAT(answer, HasSubstr("\"policy\":null"));
  ASSERT_TRUE(Call(other, {"/curtail.admin.v1.Admin/GetDecisions"}, "", &answer).ok());
  EXPECT_THAT(answer, HasSubstr("\"switches\":0,\"decisions\":[]}"));
}

}  // namespace
}  // namespace curtail
