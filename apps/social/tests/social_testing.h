// SPDX-License-Identifier: Apache-2.0
//
// social_testing.h - the whole application in processes of its own, and a client.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "apps/social/data.h"
#include "curtail/base/clock.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/app_under_test.h"
#include "curtail/rpc/channel.h"
#include "search.curtail.h"
#include "social.curtail.h"
#include "timelines.curtail.h"

namespace curtail::social {

// The services of the topology and a folder of data; stores are the test's own.
class SocialDeployment {
 public:
  // `config` of all of them. `monolith`: one process. `flags`: more of each process. `words` stand before the program on
  // each command line. `set`: variables of the topology, "users=3".
  SocialDeployment(const std::string& config, bool monolith, std::vector<std::string> flags = {},
                   std::vector<std::string> words = {}, std::vector<std::string> set = {});
  // Drains the processes, and expects that they end well, unless they were killed.
  ~SocialDeployment();
  SocialDeployment(const SocialDeployment&) = delete;
  SocialDeployment& operator=(const SocialDeployment&) = delete;

  // Its processes; not in a monolith.
  deploy::AppUnderTest* parts() const { return app_.get(); }
  // All instances of one service; not in a monolith.
  void Kill(const std::string& service) { app_->Kill(service); }
  void Stall(const std::string& service) const { app_->Stall(service); }
  void GoOn(const std::string& service) const { app_->GoOn(service); }
  // Beyond `most_file_bytes` of a file a write fails, as on a full disk; 0: no bound.
  void Start(const std::string& service, uint64_t most_file_bytes = 0);

  // How long a call of a client may take; kMaxTestWait at first. No call is in progress.
  void SetPatience(Nanos patience) { patience_ = patience; }
  // Entries of the pages that clients ask for; 7 at first.
  void SetPageLimit(uint32_t limit) { page_limit_ = limit; }

  Social::Stub Front() const { return Social::Stub(front_.get()); }
  // To the first instance of a service. It ends before this object.
  std::unique_ptr<Channel> Connect(const std::string& service);
  // Waits until all that was composed is in the home timelines; fails the test if that takes too long.
  void AwaitQueue();
  // Waits until the delivery of a post has been tried in vain, by the process that runs now.
  void AwaitFailedAttempt();
  // As AwaitQueue(), for the index of the search.
  void AwaitIndex();
  // Waits until nothing is left of deleted posts; fails the test if that takes too long.
  void AwaitFinished();

  std::string AddressOf(const std::string& service, int instance = 0) const;
  // A file of the data folder.
  std::string DataFile(const std::string& name) const { return dir_.File("data") + "/" + name; }
  // Runs `social train`.
  void Train() const;

  // A user that is logged in. Fails the test if it cannot.
  Session Register(const std::string& name);
  // All users have kTestPassword.
  absl::Status Register(const std::string& name, Session* session);
  absl::Status Login(const std::string& name, Session* session);
  Post Compose(const Session& by, const std::string& text);
  // `request` needs no token.
  absl::Status Compose(const Session& by, ComposeRequest request, Post* post);
  absl::Status Follow(const Session& by, const std::string& name, bool* changed = nullptr);
  absl::Status Unfollow(const Session& by, const std::string& name, bool* changed = nullptr);
  absl::Status Block(const Session& by, const std::string& name, bool* changed = nullptr);
  absl::Status Unblock(const Session& by, const std::string& name, bool* changed = nullptr);
  absl::Status Delete(const Session& by, uint64_t post);
  absl::Status DeleteUser(const std::string& name);
  // The ids on all pages, newest first.
  absl::Status Home(const Session& by, std::vector<uint64_t>* ids);
  absl::Status Timeline(const Session& by, const std::string& name, std::vector<uint64_t>* ids);
  absl::Status Replies(const Session& by, uint64_t post, std::vector<uint64_t>* ids);
  absl::Status Reposts(const Session& by, uint64_t post, std::vector<uint64_t>* ids);
  absl::Status Favorites(const Session& by, const std::string& name, std::vector<uint64_t>* ids);
  // The names on the first page.
  absl::Status FavoredBy(const Session& by, uint64_t post, std::vector<std::string>* names);
  // The ids on all pages.
  absl::Status Search(const Session& by, const std::string& text, bool newest, std::vector<uint64_t>* ids);
  absl::Status SearchUsers(const Session& by, const std::string& prefix, std::vector<std::string>* names);
  absl::Status Get(const Session& by, uint64_t post, Post* reply);
  absl::Status Like(const Session& by, uint64_t post, bool* changed = nullptr);
  absl::Status Unlike(const Session& by, uint64_t post, bool* changed = nullptr);
  // The names that a user follows, on the first page.
  absl::Status Following(const std::string& name, std::vector<std::string>* names);
  absl::Status Send(const Session& by, const std::string& to, const std::string& text, uint64_t* id);
  // The ids of the messages on all pages, newest first.
  absl::Status ReadConversation(const Session& by, const std::string& name, std::vector<uint64_t>* ids);
  // The first page.
  absl::Status ListConversations(const Session& by, std::vector<Conversation>* conversations);
  absl::Status DeleteMessage(const Session& by, uint64_t message);
  absl::Status GetStatistics(const Session& by, const std::string& name, Statistics* reply);
  absl::Status CreateAd(const Session& by, uint64_t* id);
  // The ids of those that it is shown, ten at most.
  absl::Status ShowAds(const Session& by, std::vector<uint64_t>* ids);

 private:
  // All pages of a timeline, or another list of `Reply`, by a call of one.
  template <class Reply = Posts, class Page, class Read>
  absl::Status AllPages(Page page, Read read, std::vector<uint64_t>* ids) const;

  const TempDir dir_;
  const bool monolith_;
  const std::vector<std::string> words_;
  Nanos patience_ = kMaxTestWait;
  uint32_t page_limit_ = 7;
  const std::unique_ptr<deploy::AppUnderTest> app_;
  Client client_;
  std::unique_ptr<Channel> front_, queue_, index_;
};

// The command line of `social postgresql` on a socket, for a PostgresqlProcess.
std::vector<std::string> PostgresqlWords(const std::string& socket, const std::string& data);

inline constexpr char kTestPassword[] = "a password";

}  // namespace curtail::social
