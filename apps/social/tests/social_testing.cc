// SPDX-License-Identifier: Apache-2.0
#include "apps/social/tests/social_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "apps/kit/testing/start_app.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::social {
namespace {

std::vector<std::string> With(std::vector<std::string> set, const std::string& data) {
  set.insert(set.end(), {"post-cache.replicas=0", "load-balancer.replicas=0", "data=" + data});
  return set;
}

// Tests call more of a monolith than clients may.
std::vector<std::string> FlagsOf(bool monolith, std::vector<std::string> flags) {
  if (!monolith) return flags;
  for (const char* service :
       {"write-home-timeline", "search", "user", "post-storage", "social-graph", "block-user", "favorite",
        "repost-reply", "direct-message", "home-timeline", "ads"})
    flags.insert(flags.end(), {"--outside", service});
  return flags;
}

}  // namespace

SocialDeployment::SocialDeployment(const std::string& config, bool monolith, std::vector<std::string> flags,
                                   std::vector<std::string> words, std::vector<std::string> set)
    : monolith_(monolith),
      words_(words),
      app_(apps::StartApp(SOCIAL_TOPOLOGY, {.config = config,
                                            .monolith = monolith,
                                            .set = With(std::move(set), dir_.File("data")),
                                            .options = {.flags = FlagsOf(monolith, std::move(flags)),
                                                        .launch = {.wrapper = std::move(words)}}})),
      front_(Connect("front-end")),
      queue_(Connect("write-home-timeline")),
      index_(Connect("search")) {}

SocialDeployment::~SocialDeployment() {
  for (auto* channel : {&front_, &queue_, &index_}) channel->reset();
  const absl::Status ended = app_->Stop();
  EXPECT_TRUE(ended.ok()) << ended;
}

std::unique_ptr<Channel> SocialDeployment::Connect(const std::string& service) {
  ChannelOptions patient;
  patient.wait_for_ready = true;
  return std::make_unique<Channel>(&client_, AddressOf(service), patient);
}

std::string SocialDeployment::AddressOf(const std::string& service, int instance) const {
  return app_->AddressOf(monolith_ ? "front-end" : service, instance);
}

void SocialDeployment::Start(const std::string& service, uint64_t most_file_bytes) {
  const absl::Status started = app_->Restart(service, {.max_file_bytes = most_file_bytes, .wrapper = words_});
  EXPECT_TRUE(started.ok()) << started;
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
  for (TimePoint last = Now(); looks == 0 || !status.ok() || !enough(state); BetweenLooks()) {
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
    BetweenLooks();
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
