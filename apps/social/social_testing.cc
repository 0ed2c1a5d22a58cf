// SPDX-License-Identifier: Apache-2.0
#include "apps/social/social_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include "content.curtail.h"
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

}  // namespace

SocialProcess::SocialProcess(std::vector<std::string> args, const std::vector<std::string>& words,
                             uint64_t most_file_bytes) {
  const std::string name = args[1];
  args.insert(args.begin(), SOCIAL_PROGRAM);
  args.insert(args.begin(), words.begin(), words.end());
  auto process =
      deploy::Process::Spawn({.name = name, .argv = std::move(args), .max_file_bytes = most_file_bytes});
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return;
  }
  process_ = *std::move(process);
  const absl::Status ready = process_->AwaitLine("ready ", Deadline::In(kMaxTestWait), nullptr).status();
  EXPECT_TRUE(ready.ok()) << ready;
}

SocialProcess::~SocialProcess() {
  if (process_ == nullptr) return;
  const absl::Status ended = process_->End(kMaxTestWait);
  EXPECT_TRUE(ended.ok()) << ended;
}

void SocialProcess::Kill() { std::exchange(process_, nullptr)->Kill(); }

void SocialProcess::Stall() const {
  process_->Pause();
  EXPECT_TRUE(process_->Running());
}

SocialDeployment::SocialDeployment(std::string config, bool monolith, std::vector<std::string> flags,
                                   std::vector<std::string> words)
    : config_(std::move(config)), monolith_(monolith), flags_(std::move(flags)), words_(std::move(words)) {
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
    processes_[service].push_back(std::make_unique<SocialProcess>(std::move(args), words_, most_file_bytes));
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
void SocialDeployment::AwaitFinished() {
  const std::unique_ptr<Channel> storage = Connect("post-storage");
  const Deadline deadline = Deadline::In(kMaxTestWait);
  Posts left;
  do {
    left.Clear();
    Context ctx(deadline);
    const absl::Status status = PostStorage::Stub(storage.get()).ListDeleted(ctx, PostsOfAuthor(), &left);
    ASSERT_TRUE(status.ok()) << left.posts_size() << " deleted posts are not settled: " << status;
  } while (!left.posts().empty());
}
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
