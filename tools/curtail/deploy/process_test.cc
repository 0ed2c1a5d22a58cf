// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/process.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
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
    std::this_thread::yield();
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
  // A second process spawns the child, tells its pid, and is killed without a chance to clean up.
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    auto process = Shell("echo up; while :; do sleep 0.01; done");
    const pid_t pid = process.ok() && (*process)->AwaitLine("up", Deadline::In(kMaxWait), nullptr).ok()
                          ? (*process)->pid()
                          : -1;
    (void)!write(report[1], &pid, sizeof(pid));
    for (;;) pause();
  }
  pid_t child = -1;
  ASSERT_EQ(read(report[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  ASSERT_GT(child, 0);
  ASSERT_TRUE(Exists(child));
  kill(parent, SIGKILL);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  // It is reaped by init, or stays a zombie where there is none.
  const Deadline limit = Deadline::In(kMaxWait);
  while (Exists(child) && StateOf(child) != 'Z' && !limit.Expired()) std::this_thread::yield();
  EXPECT_FALSE(limit.Expired());
  close(report[0]);
  close(report[1]);
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

TEST_F(ProcessTest, CountsCpuTime) {
  auto process = Shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; exec sleep 100");
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE((*process)->AwaitLine("done", Deadline::In(kMaxWait), nullptr).ok());
  EXPECT_GT((*process)->Cpu(), Nanos(0));
}

}  // namespace
}  // namespace curtail::tool
