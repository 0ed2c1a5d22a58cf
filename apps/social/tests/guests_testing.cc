// SPDX-License-Identifier: Apache-2.0
#include "apps/social/tests/guests_testing.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "apps/social/data.h"
#include "apps/social/tests/left_testing.h"
#include "curtail/base/strings.h"

namespace curtail::social {
namespace {

using absl::StatusCode;
using apps::Possible;
using apps::Span;

constexpr int kActsOfGuest = 6;  // before it is deleted

}  // namespace

void Guests::LiveOne(Rng& rng, const apps::Actors& actors) {
  Guest guest{.author = next_++};
  guest.name = Join("guest_", guest.author);
  if (const absl::Status status = app_.Register(guest.name, &guest.session); !status.ok()) {
    EXPECT_TRUE(is_fault_(status)) << status;
    return;
  }
  {
    const std::lock_guard lock(mu_);
    guests_.push_back(guest);
  }
  for (int i = 0; i < kActsOfGuest && !actors.resting(); ++i) ActAsGuest(rng, guest);
  {
    const std::lock_guard lock(mu_);
    leaving_ = true;
  }
  changed_.notify_all();
  for (bool again = false; !TryDelete(guest, again); again = true) {
    failed_ += 1;
    if (actors.resting()) return;
  }
  {
    const std::lock_guard lock(mu_);
    SetGone(&guests_.back());
    guest = guests_.back();
    leaving_ = false;
    gone_ += 1;
  }
  changed_.notify_all();
  ExpectGone(rng, guest);
}

bool Guests::AwaitLeaving() {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, kMaxTestWait, [this] { return leaving_; });
}

bool Guests::AwaitGone() {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, kMaxTestWait, [this, wanted = gone_ + 1] { return gone_ >= wanted; });
}

void Guests::ActOne(Rng& rng) {
  Guest guest;
  {
    const std::lock_guard lock(mu_);
    if (guests_.empty()) return;
    guest = guests_.back();
  }
  rng.Below(2) == 0 ? ActAsHost(rng, guest) : ActAsGuest(rng, guest);
}

bool Guests::TryDelete(const Guest& guest, bool again) const {
  const absl::Status status = app_.DeleteUser(guest.name);
  if (status.ok() || (again && absl::IsUnauthenticated(status))) return true;
  EXPECT_TRUE(is_fault_(status)) << status;
  return false;
}

void Guests::SetGone(Guest* guest) {
  for (const uint64_t post : PostsOf(*guest)) posts_.Remove(post, history_.Now());
  guest->gone = true;
}

std::vector<uint64_t> Guests::PostsOf(const Guest& guest) const {
  return posts_.Those(history_.Now(),
                      [&](const Authored& post, Possible) { return post.author == guest.author; });
}

void Guests::ExpectLate(const Guest& guest, const absl::Status& status, StatusCode code) const {
  // A block may be what refuses it, too.
  const bool early = !guest.gone && (status.ok() || absl::IsPermissionDenied(status));
  EXPECT_TRUE(early || status.code() == code || is_fault_(status))
      << guest.name << (guest.gone ? " is gone, " : " is there, ") << status;
}

void Guests::ActAsHost(Rng& rng, const Guest& guest) {
  const Session& host = AnyHost(rng);
  const std::vector<uint64_t> posts = PostsOf(guest);
  std::vector<uint64_t> ids;
  uint64_t id = 0;
  switch (rng.Below(7)) {
    case 0:
    case 1:
      return ExpectLate(guest, app_.Follow(host, guest.name), StatusCode::kNotFound);
    case 2:
      return ExpectLate(guest, app_.Send(host, guest.name, "to a guest", &id), StatusCode::kNotFound);
    case 3:
      return ExpectLate(guest, app_.Timeline(host, guest.name, &ids), StatusCode::kNotFound);
    case 4:
      return ExpectLate(guest, app_.Block(host, guest.name), StatusCode::kNotFound);
    case 5:
      if (!posts.empty())
        ExpectLate(guest, app_.Like(host, posts[rng.Below(posts.size())]), StatusCode::kNotFound);
      return;
    default:
      break;
  }
  std::vector<Conversation> listed;
  const absl::Status status = app_.ListConversations(host, &listed);
  EXPECT_TRUE(status.ok() || is_fault_(status)) << status;
  for (const Conversation& one : listed) {
    EXPECT_FALSE(guest.gone && one.with().id() == guest.session.user()) << guest.name << " is gone";
  }
}

void Guests::ActAsGuest(Rng& rng, const Guest& guest) {
  const Session& host = AnyHost(rng);
  uint64_t id = 0;
  switch (rng.Below(8)) {
    case 0:
      return ExpectLate(guest, app_.Follow(guest.session, host.name()), StatusCode::kUnauthenticated);
    case 1:
      return ExpectLate(guest, app_.Send(guest.session, host.name(), "to a host", &id),
                        StatusCode::kUnauthenticated);
    case 2:
      return ExpectLate(guest, app_.Block(guest.session, host.name()), StatusCode::kUnauthenticated);
    case 3:
      return ExpectLate(guest, app_.CreateAd(guest.session, &id), StatusCode::kUnauthenticated);
    case 4: {
      const std::vector<uint64_t> kept =
          posts_.Those(history_.Now(), [](const Authored&, Possible exists) { return !exists.no; });
      if (kept.empty()) return;
      const absl::Status status = app_.Like(guest.session, kept[rng.Below(kept.size())]);
      if (!absl::IsNotFound(status)) ExpectLate(guest, status, StatusCode::kUnauthenticated);
      return;
    }
    default:
      return ComposeOne(rng, guest);
  }
}

// In doubt from the beginning, as its author may be deleted at any time.
void Guests::ComposeOne(Rng& rng, const Guest& guest) {
  ComposeRequest request;
  request.set_text(Join("of a guest for @", AnyHost(rng).name(), " and @", AnyHost(rng).name()));
  Post post;
  const apps::Operation told = history_.Do([&] { return app_.Compose(guest.session, request, &post); },
                                           {StatusCode::kUnauthenticated});
  ExpectLate(guest, told.status, StatusCode::kUnauthenticated);
  if (!told.ok()) return;
  posts_.Add(post.id(), {.author = guest.author}, told);
  posts_.Remove(post.id(), {told.span.ended, Span::kOpen});
}

void Guests::ExpectGone(Rng& rng, const Guest& guest) const {
  const Session& host = AnyHost(rng);
  std::vector<uint64_t> ids;
  ExpectLate(guest, app_.Timeline(host, guest.name, &ids), StatusCode::kNotFound);
  for (const uint64_t id : PostsOf(guest)) {
    Post post;
    ExpectLate(guest, app_.Get(host, id, &post), StatusCode::kNotFound);
  }
}

void Guests::SeeOff() {
  const Leftovers leftovers(&app_);
  std::vector<uint64_t> all;
  for (const Session& host : hosts_) all.push_back(host.user());
  for (const Guest& guest : guests_) all.push_back(guest.session.user());
  for (Guest& guest : guests_) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!guest.gone && !TryDelete(guest, /*again=*/true)) ASSERT_FALSE(deadline.Expired()) << guest.name;
    SetGone(&guest);
    EXPECT_EQ(leftovers.Of(guest.session.user(), all), "") << guest.name;
    // The name is free.
    EXPECT_NE(app_.Register(guest.name).user(), guest.session.user()) << guest.name;
  }
  std::printf("%zu guests are gone, %d calls to delete one failed\n", guests_.size(), failed_);
  EXPECT_FALSE(guests_.empty());
}

}  // namespace curtail::social
