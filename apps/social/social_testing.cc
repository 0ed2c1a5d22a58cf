// SPDX-License-Identifier: Apache-2.0
#include "apps/social/social_testing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::social {
namespace {

const std::vector<std::string> kServices = {"unique-id",
                                            "user",
                                            "block-user",
                                            "social-graph",
                                            "user-mention",
                                            "url-shorten",
                                            "text",
                                            "media",
                                            "post-storage",
                                            "favorite",
                                            "repost-reply",
                                            "read-post",
                                            "search-index",
                                            "search",
                                            "direct-message",
                                            "user-statistics",
                                            "user-recommender",
                                            "ads",
                                            "media-frontend",
                                            "user-timeline",
                                            "home-timeline",
                                            "write-home-timeline",
                                            "compose-post",
                                            "front-end"};

int InstancesOf(const std::string& service) { return service == "search-index" ? 2 : 1; }

// True once the process has said that it is ready.
bool AwaitReady(int fd) {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  std::string said;
  while (said.find("ready ") == std::string::npos) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, static_cast<int>(InMillis(deadline.Remaining()))) <= 0) return false;
    char buffer[512];
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got <= 0) return false;
    said.append(buffer, static_cast<size_t>(got));
  }
  return true;
}

}  // namespace

SocialProcess::SocialProcess(std::vector<std::string> args, uint64_t most_file_bytes) {
  args.insert(args.begin(), SOCIAL_PROGRAM);
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  int out[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (most_file_bytes != 0) {
      const rlimit limit{.rlim_cur = most_file_bytes, .rlim_max = most_file_bytes};
      signal(SIGXFSZ, SIG_IGN);  // so that the write fails instead
      if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
    }
    dup2(out[1], STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(out[1]);
  EXPECT_TRUE(AwaitReady(out[0])) << args[2];
  close(out[0]);
}

void SocialProcess::Stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  int how = 0;
  EXPECT_EQ(waitpid(pid_, &how, 0), pid_);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
  pid_ = -1;
}

void SocialProcess::Kill() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void SocialProcess::Stall() const {
  kill(pid_, SIGSTOP);
  int how = 0;
  EXPECT_EQ(waitpid(pid_, &how, WUNTRACED), pid_);
  EXPECT_TRUE(WIFSTOPPED(how)) << how;
}

void SocialProcess::GoOn() const { kill(pid_, SIGCONT); }

SocialDeployment::SocialDeployment(std::string config, bool monolith, std::vector<std::string> flags)
    : config_(std::move(config)), monolith_(monolith), flags_(std::move(flags)) {
  if (monolith) {
    Start("front-end");
  } else {
    for (const std::string& service : kServices) Start(service);
  }
  front_ = Connect("front-end");
  queue_ = Connect("write-home-timeline");
  index_ = Connect("search");
}

std::unique_ptr<Channel> SocialDeployment::Connect(const std::string& service) {
  ChannelOptions patient;
  patient.wait_for_ready = true;
  return std::make_unique<Channel>(&client_, AddressOf(service), patient);
}

std::string SocialDeployment::AddressOf(const std::string& service, int instance) const {
  return Join("unix:", dir_.File(monolith_ ? "front-end" : service), instance);
}

void SocialDeployment::Start(const std::string& service, uint64_t most_file_bytes) {
  const int count = monolith_ ? 1 : InstancesOf(service);
  processes_[service].clear();
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> args = {"--config",        config_,    "--data",
                                     dir_.File("data"), "--listen", AddressOf(service, i)};
    if (monolith_) {
      args.insert(args.begin(), "--monolith");
      for (const std::string& one : kServices) {
        if (InstancesOf(one) > 1) args.insert(args.end(), {"--instances", Join(one, "=", InstancesOf(one))});
      }
    } else {
      args.insert(args.begin(), {"--service", service});
      args.insert(args.end(), {"--shard", Join(i, "/", count)});
      for (const std::string& peer : kServices) {
        std::string addresses = AddressOf(peer, 0);
        for (int other = 1; other < InstancesOf(peer); ++other) addresses += "," + AddressOf(peer, other);
        args.insert(args.end(), {"--peer", Join(peer, "=", addresses)});
      }
    }
    args.insert(args.end(), flags_.begin(), flags_.end());
    processes_[service].push_back(std::make_unique<SocialProcess>(std::move(args), most_file_bytes));
  }
}

void SocialDeployment::Kill(const std::string& service) {
  for (const auto& process : processes_.at(service)) process->Kill();
}

void SocialDeployment::Stall(const std::string& service) const {
  for (const auto& process : processes_.at(service)) process->Stall();
}

void SocialDeployment::GoOn(const std::string& service) const {
  for (const auto& process : processes_.at(service)) process->GoOn();
}

namespace {

// Until `enough(state)`.
template <class Stub, class Enough>
void AwaitState(const Stub& queue, Enough enough) {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  QueueState state;
  absl::Status status;
  int looks = 0;
  Nanos longest{0};  // from one answer to the next: the machine may stand still
  for (TimePoint last = Now(); looks == 0 || !status.ok() || !enough(state); std::this_thread::yield()) {
    Context ctx(deadline);
    status = queue.Look(ctx, Nothing(), &state);
    const TimePoint now = Now();
    longest = std::max(longest, now - std::exchange(last, now));
    ++looks;
    // A connection to a process that was killed.
    ASSERT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
    ASSERT_FALSE(deadline.Expired()) << state.waiting() << " jobs wait, " << state.delivered()
                                     << " are delivered, " << state.failed_attempts() << " attempts failed; "
                                     << looks << " looks, the longest took " << InMillis(longest)
                                     << " ms; the last: " << status;
  }
}

bool NoneWaits(const QueueState& state) { return state.waiting() == 0; }

}  // namespace

void SocialDeployment::AwaitQueue() { AwaitState(WriteHomeTimeline::Stub(queue_.get()), NoneWaits); }
void SocialDeployment::AwaitIndex() { AwaitState(social::Search::Stub(index_.get()), NoneWaits); }
void SocialDeployment::AwaitFailedAttempt() {
  AwaitState(WriteHomeTimeline::Stub(queue_.get()),
             [](const QueueState& state) { return state.failed_attempts() > 0; });
}

void SocialDeployment::Train() const {
  EXPECT_EQ(std::system(Join(SOCIAL_PROGRAM, " train --quiet --data ", dir_.File("data")).c_str()), 0);
}

std::vector<std::string> PostgresqlWords(const std::string& socket, const std::string& data) {
  return {SOCIAL_PROGRAM, "postgresql", "--socket", socket, "--data", data};
}

}  // namespace curtail::social
