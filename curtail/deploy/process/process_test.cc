// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/process/process.h"
#include "curtail/base/testing.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::deploy {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr Nanos kMaxWait = seconds(20);

class ProcessTest : public testing::Test {
 protected:
  ~ProcessTest() override { unlink(log_.c_str()); }

  absl::StatusOr<std::unique_ptr<Process>> Shell(const std::string& script) {
    return Process::Spawn({"shell", {"/bin/sh", "-c", script}, log_});
  }

  const std::string log_ = absl::StrCat(testing::TempDir(), "/curtail_process_test.", getpid(), ".log");
};

bool Exists(pid_t pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

// 'T' for a stopped process; see proc(5).
char StateOf(pid_t pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t end = text.rfind(')');
  return end == std::string::npos || end + 2 >= text.size() ? '?' : text[end + 2];
}

bool ReachesState(pid_t pid, bool stopped) {
  const Deadline limit = Deadline::In(kMaxWait);
  while ((StateOf(pid) == 'T') != stopped) {
    if (limit.Expired()) return false;
    BetweenLooks();
  }
  return true;
}

TEST_F(ProcessTest, ReadsTheLineItWaitsFor) {
  auto process = Shell("echo starting; echo ready 127.0.0.1:5; echo more; exec sleep 100");
  ASSERT_TRUE(process.ok()) << process.status();
  absl::StatusOr<std::string> line = (*process)->AwaitLine("ready ", Deadline::In(kMaxWait), nullptr);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(*line, "127.0.0.1:5");
  EXPECT_EQ(*(*process)->AwaitLine("mor", Deadline::In(kMaxWait), nullptr), "e");
}

TEST_F(ProcessTest, ReadsTheFirstOfSeveralLines) {
  auto process = Shell("echo listening on 127.0.0.1:5; echo ready 127.0.0.1:6; exec sleep 100");
  ASSERT_TRUE(process.ok()) << process.status();
  const auto line = (*process)->AwaitAnyLine({"ready ", "listening on "}, Deadline::In(kMaxWait), nullptr);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(*line, "127.0.0.1:5");
}

TEST_F(ProcessTest, AChildThatEndsIsReportedWithItsLog) {
  auto process = Shell("echo the disk is on fire >&2; exit 3");
  ASSERT_TRUE(process.ok());
  const absl::Status status = (*process)->AwaitLine("ready ", Deadline::In(kMaxWait), nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("shell ended with code 3"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the disk is on fire"));
  EXPECT_FALSE((*process)->Running());
}

TEST_F(ProcessTest, WaitingEndsAtTheDeadlineAndWhenStopped) {
  auto process = Shell("exec sleep 100");
  ASSERT_TRUE(process.ok());
  EXPECT_EQ((*process)->AwaitLine("ready ", Deadline::In(Nanos(0)), nullptr).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  const std::atomic<bool> stop{true};
  EXPECT_EQ((*process)->AwaitLine("ready ", Deadline::In(kMaxWait), &stop).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(ProcessTest, TerminateAsksFirst) {
  auto process = Shell("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done");
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE((*process)->AwaitLine("up", Deadline::In(kMaxWait), nullptr).ok());
  const int status = (*process)->Terminate(kMaxWait);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_FALSE(Exists((*process)->pid())) << "reaped";
  EXPECT_EQ((*process)->Terminate(kMaxWait), status);
}

TEST_F(ProcessTest, TerminateKillsWhoWillNotListen) {
  auto process = Shell("trap '' TERM; echo up; while :; do sleep 0.01; done");
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE((*process)->AwaitLine("up", Deadline::In(kMaxWait), nullptr).ok());
  const int status = (*process)->Terminate(std::chrono::milliseconds(20));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST_F(ProcessTest, KillDoesNotAsk) {
  auto process = Shell("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done");
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE((*process)->AwaitLine("up", Deadline::In(kMaxWait), nullptr).ok());
  const int status = (*process)->Kill();
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_FALSE(Exists((*process)->pid())) << "reaped";
  EXPECT_EQ((*process)->Kill(), status);
}

TEST_F(ProcessTest, EndTakesCodeZeroOnly) {
  const auto end = [this](const std::string& on_term, Nanos grace) {
    auto process = Shell(absl::StrCat("trap '", on_term, "' TERM; echo up; while :; do sleep 0.01; done"));
    EXPECT_TRUE(process.ok());
    EXPECT_TRUE((*process)->AwaitLine("up", Deadline::In(kMaxWait), nullptr).ok());
    return (*process)->End(grace);
  };
  EXPECT_TRUE(end("exit 0", kMaxWait).ok());
  const absl::Status failed = end("echo the disk is on fire >&2; exit 7", kMaxWait);
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("shell ended with code 7\n    | the disk is on fire"));
  EXPECT_EQ(end("", std::chrono::milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ProcessTest, AwaitEndEndsWithTheChildOrAtTheDeadline) {
  auto process = Shell("read line; exit 3");  // at once, as it has no input
  ASSERT_TRUE(process.ok());
  EXPECT_TRUE((*process)->AwaitEnd(Deadline::In(kMaxWait)));
  EXPECT_EQ((*process)->HowItEnded(), "ended with code 3");
  auto stays = Shell("exec sleep 100");
  ASSERT_TRUE(stays.ok());
  EXPECT_FALSE((*stays)->AwaitEnd(Deadline::In(std::chrono::milliseconds(20))));
}

TEST_F(ProcessTest, AWriteBeyondTheBoundFails) {
  const std::string file = absl::StrCat(log_, ".written");
  auto process = Process::Spawn(
      {.name = "shell",
       .argv = {"sh", "-c", absl::StrCat("head -c 5000 /dev/zero > ", file, " || echo refused")},
       .log_path = log_,
       .max_file_bytes = 4096});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(*(*process)->ReadToEnd(Deadline::In(kMaxWait)), "refused\n");
  unlink(file.c_str());
}

TEST_F(ProcessTest, OutputGoesWithTheErrorsWhereItIsAskedTo) {
  for (const bool own_log : {true, false}) {
    auto outer = Process::Spawn({.name = "outer", .log_path = log_, .run = [&] {
                                   auto inner = Process::Spawn({.name = "inner",
                                                                .argv = {"echo", "words"},
                                                                .log_path = own_log ? log_ : "",
                                                                .out_to_log = true});
                                   if (inner.ok()) (*inner)->AwaitEnd(Deadline::In(kMaxWait));
                                 }});
    ASSERT_TRUE(outer.ok()) << outer.status();
    EXPECT_EQ(*(*outer)->ReadToEnd(Deadline::In(kMaxWait)), "");
    EXPECT_EQ((*outer)->LogTail(), "\n    | words");
    unlink(log_.c_str());
  }
}

TEST_F(ProcessTest, APausedProcessStopsGoesOnAndEnds) {
  auto process = Shell("echo up; while :; do sleep 0.01; done");
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE((*process)->AwaitLine("up", Deadline::In(kMaxWait), nullptr).ok());
  (*process)->Pause();
  EXPECT_TRUE(ReachesState((*process)->pid(), true));
  (*process)->Resume();
  EXPECT_TRUE(ReachesState((*process)->pid(), false));
  (*process)->Pause();
  EXPECT_TRUE(ReachesState((*process)->pid(), true));
  const int status = (*process)->Terminate(kMaxWait);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM) << "no need to kill it";
}

TEST_F(ProcessTest, AMissingProgramIsNotFound) {
  EXPECT_EQ(Process::Spawn({"ghost", {"/nonexistent/program"}, log_}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Process::Spawn({"folder", {"/tmp"}, log_}).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(ProcessTest, AChildDiesWithItsParentEvenIfThatIsKilled) {
  // A copy of this process spawns the child, prints its pid, and is killed without a chance to clean up.
  auto parent = Process::Spawn({.name = "parent", .run = [this] {
                                  auto process = Shell("echo up; while :; do sleep 0.01; done");
                                  if (!process.ok()) return;
                                  if (!(*process)->AwaitLine("up", Deadline::In(kMaxWait), nullptr).ok())
                                    return;
                                  dprintf(STDOUT_FILENO, "child %d\n", (*process)->pid());
                                  for (;;) pause();
                                }});
  ASSERT_TRUE(parent.ok()) << parent.status();
  const absl::StatusOr<std::string> line = (*parent)->AwaitLine("child ", Deadline::In(kMaxWait), nullptr);
  ASSERT_TRUE(line.ok()) << line.status();
  const pid_t child = std::stoi(*line);
  ASSERT_TRUE(Exists(child));
  (*parent)->Kill();
  // It is reaped by init, or stays a zombie where there is none.
  const Deadline limit = Deadline::In(kMaxWait);
  while (Exists(child) && StateOf(child) != 'Z' && !limit.Expired()) BetweenLooks();
  EXPECT_FALSE(limit.Expired());
}

TEST_F(ProcessTest, ReadsAllOutputOfAChildThatEnds) {
  auto process = Shell("echo one; sleep 0.05; printf two; echo trouble >&2; exit 5");
  ASSERT_TRUE(process.ok());
  const absl::StatusOr<std::string> out = (*process)->ReadToEnd(Deadline::In(kMaxWait));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, "one\ntwo");
  EXPECT_EQ(WEXITSTATUS((*process)->Terminate(Nanos(0))), 5);
  EXPECT_THAT((*process)->LogTail(), HasSubstr("trouble"));
}

// A program that the child has started holds its output open.
TEST_F(ProcessTest, NeverWaitsForAReaderOfWhatIsDiscarded) {
  auto process = Shell("echo ready; sleep 600 & head -c 300000 /dev/zero");
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE((*process)->AwaitLine("ready", Deadline::In(kMaxWait), nullptr).ok());
  (*process)->DiscardOutput();
  EXPECT_TRUE((*process)->AwaitEnd(Deadline::In(kMaxWait)));
}

TEST_F(ProcessTest, ReadingEndsAtTheDeadline) {
  auto process = Shell("echo one; exec sleep 100");
  ASSERT_TRUE(process.ok());
  EXPECT_EQ((*process)->ReadToEnd(Deadline::In(std::chrono::milliseconds(20))).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE((*process)->Running());
}

TEST_F(ProcessTest, RunsAFunctionInACopyOfThisProcess) {
  int ran = 0;
  auto process = Process::Spawn({.name = "copy", .counted = true, .run = [&ran] {
                                   ran = 1;
                                   (void)!write(STDOUT_FILENO, "here\n", 5);
                                 }});
  ASSERT_TRUE(process.ok()) << process.status();
  const absl::StatusOr<std::string> out = (*process)->ReadToEnd(Deadline::In(kMaxWait));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, "here\n");
  EXPECT_EQ((*process)->Terminate(Nanos(0)), 0);
  EXPECT_EQ(ran, 0) << "the copy's variable is another";
}

TEST_F(ProcessTest, BecomesAProgram) {
  EXPECT_EQ(BecomeProgram({"/nonexistent/program"}).code(), absl::StatusCode::kNotFound);
  auto process = Process::Spawn({.name = "copy", .run = [] {
                                   (void)BecomeProgram({"sh", "-c", "echo $0 $1", "one", "two"});
                                   _exit(1);
                                 }});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(*(*process)->ReadToEnd(Deadline::In(kMaxWait)), "one two\n");
  EXPECT_TRUE((*process)->End(Nanos(0)).ok());
}

TEST_F(ProcessTest, TellsItsUsage) {
  auto process = Process::Spawn({.name = "shell",
                                 .argv = {"/bin/sh", "-c",
                                          "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.01; "
                                          "echo done; exec sleep 100"},
                                 .log_path = log_,
                                 .nice = 5,
                                 .counted = true});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE((*process)->AwaitLine("done", Deadline::In(kMaxWait), nullptr).ok());
  const ProcessUsage usage = (*process)->Usage();
  EXPECT_GT(usage.cpu_us, 0);
  EXPECT_GT(usage.resident_mib, 0);
  EXPECT_GT(usage.context_switches, 0) << "it has slept";
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>((*process)->pid())), 5);
}

TEST_F(ProcessTest, RemembersThePeakOfItsMemory) {
  constexpr size_t kMib = 64;
  auto process = Process::Spawn({.name = "copy", .log_path = log_, .run = [] {
                                   std::vector<char> much(kMib << 20, 'x');
                                   std::printf("has %c\n", much.back());
                                   much = {};
                                   std::puts("done");
                                   std::fflush(stdout);
                                   pause();
                                 }});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE((*process)->AwaitLine("done", Deadline::In(kMaxWait), nullptr).ok());
  const double now = ResidentMib((*process)->pid());
  EXPECT_GE(PeakResidentMib((*process)->pid()), std::max<double>(kMib, now));
  EXPECT_GT(now, 0);
}

TEST_F(ProcessTest, CountsCpuTime) {
  auto process = Shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; exec sleep 100");
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE((*process)->AwaitLine("done", Deadline::In(kMaxWait), nullptr).ok());
  EXPECT_GT((*process)->Cpu(), Nanos(0));
}

}  // namespace
}  // namespace curtail::deploy
