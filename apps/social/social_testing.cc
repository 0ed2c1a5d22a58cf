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
  ChannelOptions patient;
  patient.wait_for_ready = true;
  front_ = std::make_unique<Channel>(&client_, AddressOf("front-end", 0), patient);
  queue_ = std::make_unique<Channel>(&client_, AddressOf("write-home-timeline", 0), patient);
  index_ = std::make_unique<Channel>(&client_, AddressOf("search", 0), patient);
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

Session SocialDeployment::Register(const std::string& name) {
  Credentials credentials;
  credentials.set_name(name);
  credentials.set_password(kTestPassword);
  Context ctx(patience_);
  Session session;
  const absl::Status status = Front().Register(ctx, credentials, &session);
  EXPECT_TRUE(status.ok()) << status;
  return session;
}

absl::Status SocialDeployment::DeleteUser(const std::string& name) {
  Credentials credentials;
  credentials.set_name(name);
  credentials.set_password(kTestPassword);
  Context ctx(patience_);
  Changed changed;
  return Front().DeleteUser(ctx, credentials, &changed);
}

Post SocialDeployment::Compose(const Session& by, const std::string& text) {
  ComposeRequest request;
  request.set_text(text);
  Post post;
  const absl::Status status = Compose(by, request, &post);
  EXPECT_TRUE(status.ok()) << status;
  return post;
}

absl::Status SocialDeployment::Compose(const Session& by, ComposeRequest request, Post* post) {
  request.set_token(by.token());
  Context ctx(patience_);
  return Front().Compose(ctx, request, post);
}

namespace {

Relation RelationOf(const Session& by, const std::string& name) {
  Relation relation;
  relation.set_token(by.token());
  relation.set_name(name);
  return relation;
}
PostRequest RequestOf(const Session& by, uint64_t post) {
  PostRequest request;
  request.set_token(by.token());
  request.set_id(post);
  return request;
}
PostPage PageOf(const Session& by, uint64_t post) {
  PostPage page;
  page.set_token(by.token());
  page.set_id(post);
  return page;
}
UserPage PageOf(const Session& by, const std::string& name) {
  UserPage page;
  page.set_token(by.token());
  page.set_name(name);
  return page;
}

// `changed` may be null.
template <class Call>
absl::Status Noting(bool* changed, Call call) {
  Changed reply;
  const absl::Status status = call(&reply);
  if (changed != nullptr) *changed = reply.changed();
  return status;
}

}  // namespace

absl::Status SocialDeployment::Follow(const Session& by, const std::string& name, bool* changed) {
  Context ctx(patience_);
  return Noting(changed, [&](Changed* reply) { return Front().Follow(ctx, RelationOf(by, name), reply); });
}
absl::Status SocialDeployment::Unfollow(const Session& by, const std::string& name, bool* changed) {
  Context ctx(patience_);
  return Noting(changed, [&](Changed* reply) { return Front().Unfollow(ctx, RelationOf(by, name), reply); });
}
absl::Status SocialDeployment::Block(const Session& by, const std::string& name, bool* changed) {
  Context ctx(patience_);
  return Noting(changed, [&](Changed* reply) { return Front().Block(ctx, RelationOf(by, name), reply); });
}
absl::Status SocialDeployment::Unblock(const Session& by, const std::string& name, bool* changed) {
  Context ctx(patience_);
  return Noting(changed, [&](Changed* reply) { return Front().Unblock(ctx, RelationOf(by, name), reply); });
}

absl::Status SocialDeployment::Delete(const Session& by, uint64_t post) {
  Context ctx(patience_);
  Changed changed;
  return Front().DeletePost(ctx, RequestOf(by, post), &changed);
}

absl::Status SocialDeployment::Get(const Session& by, uint64_t post, Post* reply) {
  Context ctx(patience_);
  return Front().GetPost(ctx, RequestOf(by, post), reply);
}

absl::Status SocialDeployment::Like(const Session& by, uint64_t post, bool* changed) {
  Context ctx(patience_);
  return Noting(changed,
                [&](Changed* reply) { return Front().AddFavorite(ctx, RequestOf(by, post), reply); });
}

absl::Status SocialDeployment::Unlike(const Session& by, uint64_t post, bool* changed) {
  Context ctx(patience_);
  return Noting(changed,
                [&](Changed* reply) { return Front().RemoveFavorite(ctx, RequestOf(by, post), reply); });
}

absl::Status SocialDeployment::FavoredBy(const Session& by, uint64_t post, std::vector<std::string>* names) {
  Context ctx(patience_);
  People people;
  const absl::Status status = Front().ListFavoredBy(ctx, PageOf(by, post), &people);
  names->clear();
  for (const Person& person : people.people()) names->push_back(person.name());
  return status;
}

namespace {

const auto& ItemsOf(const Posts& posts) { return posts.posts(); }
const auto& ItemsOf(const DirectMessages& messages) { return messages.messages(); }

}  // namespace

template <class Reply, class Page, class Read>
absl::Status SocialDeployment::AllPages(Page page, Read read, std::vector<uint64_t>* ids) const {
  ids->clear();
  page.set_limit(7);
  do {
    Context ctx(patience_);
    Reply reply;
    if (absl::Status status = read(ctx, page, &reply); !status.ok()) return status;
    for (const auto& item : ItemsOf(reply)) ids->push_back(item.id());
    page.set_before(reply.next());
  } while (page.before() != 0);
  return absl::OkStatus();
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
  return AllPages(
      PageOf(by, name),
      [&](Context& ctx, const UserPage& p, Posts* r) { return Front().ReadUserTimeline(ctx, p, r); }, ids);
}

absl::Status SocialDeployment::Favorites(const Session& by, const std::string& name,
                                         std::vector<uint64_t>* ids) {
  return AllPages(
      PageOf(by, name),
      [&](Context& ctx, const UserPage& p, Posts* r) { return Front().ReadFavorites(ctx, p, r); }, ids);
}

absl::Status SocialDeployment::Replies(const Session& by, uint64_t post, std::vector<uint64_t>* ids) {
  return AllPages(
      PageOf(by, post),
      [&](Context& ctx, const PostPage& p, Posts* r) { return Front().ReadReplies(ctx, p, r); }, ids);
}

absl::Status SocialDeployment::Reposts(const Session& by, uint64_t post, std::vector<uint64_t>* ids) {
  return AllPages(
      PageOf(by, post),
      [&](Context& ctx, const PostPage& p, Posts* r) { return Front().ReadReposts(ctx, p, r); }, ids);
}

absl::Status SocialDeployment::Search(const Session& by, const std::string& text, bool newest,
                                      std::vector<uint64_t>* ids) {
  SearchRequest request;
  request.set_token(by.token());
  request.set_text(text);
  request.set_newest(newest);
  request.set_limit(7);
  ids->clear();
  do {
    Context ctx(patience_);
    Posts posts;
    if (absl::Status status = Front().SearchPosts(ctx, request, &posts); !status.ok()) return status;
    for (const Post& post : posts.posts()) ids->push_back(post.id());
    request.set_from(posts.next());
  } while (request.from() != 0);
  return absl::OkStatus();
}

absl::Status SocialDeployment::Following(const std::string& name, std::vector<std::string>* names) {
  Context ctx(patience_);
  People people;
  const absl::Status status = Front().ListFollowing(ctx, PageOf(Session(), name), &people);
  names->clear();
  for (const Person& person : people.people()) names->push_back(person.name());
  return status;
}

absl::Status SocialDeployment::Send(const Session& by, const std::string& to, const std::string& text,
                                    uint64_t* id) {
  MessageRequest request;
  request.set_token(by.token()), request.set_to(to), request.set_text(text);
  Context ctx(patience_);
  DirectMessage message;
  const absl::Status status = Front().SendMessage(ctx, request, &message);
  *id = message.id();
  return status;
}

absl::Status SocialDeployment::ReadConversation(const Session& by, const std::string& name,
                                                std::vector<uint64_t>* ids) {
  return AllPages<DirectMessages>(
      PageOf(by, name),
      [&](Context& ctx, const UserPage& p, DirectMessages* r) { return Front().ReadConversation(ctx, p, r); },
      ids);
}

absl::Status SocialDeployment::ListConversations(const Session& by,
                                                 std::vector<Conversation>* conversations) {
  HomePage page;
  page.set_token(by.token());
  Context ctx(patience_);
  Conversations listed;
  const absl::Status status = Front().ListConversations(ctx, page, &listed);
  conversations->assign(listed.conversations().begin(), listed.conversations().end());
  return status;
}

absl::Status SocialDeployment::DeleteMessage(const Session& by, uint64_t message) {
  Context ctx(patience_);
  Changed changed;
  return Front().DeleteMessage(ctx, RequestOf(by, message), &changed);
}

absl::Status SocialDeployment::SearchUsers(const Session& by, const std::string& prefix,
                                           std::vector<std::string>* names) {
  NamePage page;
  page.set_token(by.token());
  page.set_prefix(prefix);
  page.set_limit(2);
  names->clear();
  do {
    Context ctx(patience_);
    FoundPeople people;
    if (absl::Status status = Front().SearchUsers(ctx, page, &people); !status.ok()) return status;
    for (const Person& person : people.people()) names->push_back(person.name());
    page.set_after(people.next());
  } while (!page.after().empty());
  return absl::OkStatus();
}

}  // namespace curtail::social
