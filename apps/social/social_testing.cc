// SPDX-License-Identifier: Apache-2.0
#include "apps/social/social_testing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>
#include <thread>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::social {
namespace {

const std::vector<std::string> kServices = {
    "unique-id", "user",         "social-graph",  "user-mention",  "url-shorten",         "text",
    "media",     "post-storage", "user-timeline", "home-timeline", "write-home-timeline", "compose-post",
    "front-end"};

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

// All pages of a timeline, by a call of one.
template <class Page, class Read>
absl::Status AllPages(Page page, Read read, std::vector<uint64_t>* ids) {
  ids->clear();
  page.set_limit(7);
  do {
    Context ctx(kMaxTestWait);
    Posts posts;
    if (absl::Status status = read(ctx, page, &posts); !status.ok()) return status;
    for (const Post& post : posts.posts()) ids->push_back(post.id());
    page.set_before(posts.next());
  } while (page.before() != 0);
  return absl::OkStatus();
}

}  // namespace

SocialProcess::SocialProcess(std::vector<std::string> args) {
  args.insert(args.begin(), SOCIAL_PROGRAM);
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  int out[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
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

SocialDeployment::SocialDeployment(std::string config, bool monolith, std::vector<std::string> flags)
    : config_(std::move(config)), monolith_(monolith), flags_(std::move(flags)) {
  if (monolith) {
    Start("front-end");
  } else {
    for (const std::string& service : kServices) Start(service);
  }
  ChannelOptions patient;
  patient.wait_for_ready = true;
  front_ = std::make_unique<Channel>(&client_, AddressOf("front-end"), patient);
  queue_ = std::make_unique<Channel>(&client_, AddressOf("write-home-timeline"), patient);
}

std::string SocialDeployment::AddressOf(const std::string& service) const {
  return "unix:" + dir_.File(monolith_ ? "front-end" : service);
}

void SocialDeployment::Start(const std::string& service) {
  std::vector<std::string> args = {"--config",        config_,    "--data",
                                   dir_.File("data"), "--listen", AddressOf(service)};
  if (monolith_) {
    args.insert(args.begin(), "--monolith");
  } else {
    args.insert(args.begin(), {"--service", service});
    for (const std::string& peer : kServices)
      args.insert(args.end(), {"--peer", Join(peer, "=", AddressOf(peer))});
  }
  args.insert(args.end(), flags_.begin(), flags_.end());
  processes_[service] = std::make_unique<SocialProcess>(std::move(args));
}

void SocialDeployment::Kill(const std::string& service) { processes_.at(service)->Kill(); }

void SocialDeployment::AwaitQueue() {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  QueueState state;
  do {
    Context ctx(deadline);
    const absl::Status status = WriteHomeTimeline::Stub(queue_.get()).Look(ctx, Nothing(), &state);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_FALSE(deadline.Expired()) << state.waiting() << " jobs wait";
    std::this_thread::yield();
  } while (state.waiting() > 0);
}

Session SocialDeployment::Register(const std::string& name) {
  Credentials credentials;
  credentials.set_name(name);
  credentials.set_password(kTestPassword);
  Context ctx(kMaxTestWait);
  Session session;
  const absl::Status status = Front().Register(ctx, credentials, &session);
  EXPECT_TRUE(status.ok()) << status;
  return session;
}

Post SocialDeployment::Compose(const Session& by, const std::string& text) {
  ComposeRequest request;
  request.set_token(by.token());
  request.set_text(text);
  Context ctx(kMaxTestWait);
  Post post;
  const absl::Status status = Front().Compose(ctx, request, &post);
  EXPECT_TRUE(status.ok()) << status;
  return post;
}

namespace {

Relation RelationOf(const Session& by, const std::string& name) {
  Relation relation;
  relation.set_token(by.token());
  relation.set_name(name);
  return relation;
}

}  // namespace

absl::Status SocialDeployment::Follow(const Session& by, const std::string& name) {
  Context ctx(kMaxTestWait);
  Changed changed;
  return Front().Follow(ctx, RelationOf(by, name), &changed);
}
absl::Status SocialDeployment::Unfollow(const Session& by, const std::string& name) {
  Context ctx(kMaxTestWait);
  Changed changed;
  return Front().Unfollow(ctx, RelationOf(by, name), &changed);
}
absl::Status SocialDeployment::Block(const Session& by, const std::string& name) {
  Context ctx(kMaxTestWait);
  Changed changed;
  return Front().Block(ctx, RelationOf(by, name), &changed);
}
absl::Status SocialDeployment::Unblock(const Session& by, const std::string& name) {
  Context ctx(kMaxTestWait);
  Changed changed;
  return Front().Unblock(ctx, RelationOf(by, name), &changed);
}

absl::Status SocialDeployment::Delete(const Session& by, uint64_t post) {
  PostRequest request;
  request.set_token(by.token());
  request.set_id(post);
  Context ctx(kMaxTestWait);
  Changed changed;
  return Front().DeletePost(ctx, request, &changed);
}

absl::Status SocialDeployment::Home(const Session& by, std::vector<uint64_t>* ids) {
  HomePage page;
  page.set_token(by.token());
  return AllPages(
      page, [&](Context& ctx, const HomePage& p, Posts* r) { return Front().ReadHomeTimeline(ctx, p, r); },
      ids);
}

absl::Status SocialDeployment::Timeline(const Session& by, const std::string& name,
                                        std::vector<uint64_t>* ids) {
  UserPage page;
  page.set_token(by.token());
  page.set_name(name);
  return AllPages(
      page, [&](Context& ctx, const UserPage& p, Posts* r) { return Front().ReadUserTimeline(ctx, p, r); },
      ids);
}

}  // namespace curtail::social
