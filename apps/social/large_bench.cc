// SPDX-License-Identifier: Apache-2.0
//
// social_large_bench: what reads of a user cost who has written very much.
//
// One process has all services and new stores. A user composes --large posts, another one --small, each with a
// word of its own. Then calls about the two take turns, so that what disturbs the machine disturbs both. The
// exit code is 99 if the p50 of one is above --limit times that of the other.
//
//   social_large_bench --program build/release/apps/social/social
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "apps/kit/parallel.h"
#include "apps/kit/temp_dir.h"
#include "curtail/base/histogram.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/process.h"
#include "curtail/rpc/channel.h"
#include "search.curtail.h"
#include "social.curtail.h"

namespace {

using namespace curtail;
using namespace curtail::social;

constexpr Nanos kPatience = std::chrono::seconds(60);
constexpr int kThreads = 16;

struct LargeFlags {
  std::string program = "social";
  uint64_t small = 1000, large = 100'000;
  int calls = 500;
  double limit = 1.5;
  std::vector<std::string> words;  // further ones of the program
};

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "social_large_bench: " << status << "\n";
  std::exit(1);
}

class LargeBench {
 public:
  explicit LargeBench(const LargeFlags& flags) : flags_(flags) {
    std::vector<std::string> words = {flags.program, "--monolith",      "--config", "FDB1-2", "--no-sync",
                                      "--data",      dir_.File("data"), "--listen", address_};
    words.insert(words.end(), flags.words.begin(), flags.words.end());
    auto process = deploy::Process::Spawn({.name = "social", .argv = words});
    Require(process.status());
    process_ = *std::move(process);
    Require(process_->AwaitLine("ready ", Deadline::In(kPatience), nullptr).status());
    Fill("small", flags.small);
    Fill("large", flags.large);
    AwaitIndex();
  }

  // Returns how much slower the slowest is.
  double Measure() {
    double worst = 0;
    for (const auto& [what, call] : std::vector<std::pair<const char*, std::function<void(const char*)>>>{
             {"user timeline", [&](const char* name) { Read(name, 0); }},
             {"statistics", [&](const char* name) { Count(name); }},
             {"search, newest", [&](const char* name) { Search(name, true, 0); }},
             {"search, best", [&](const char* name) { Search(name, false, 0); }}}) {
      Histogram small, large;
      for (int i = 0; i < flags_.calls; ++i) Time("small", call, &small), Time("large", call, &large);
      const double few = InMillis(small.Percentile(50)), many = InMillis(large.Percentile(50));
      const double ratio = many / few;
      std::printf("%-16s %8.3f ms %8.3f ms %6.2f\n", what, few, many, ratio);
      worst = std::max(worst, ratio);
    }
    return worst;
  }

 private:
  void Fill(const char* name, uint64_t posts) {
    Credentials credentials;
    credentials.set_name(name);
    credentials.set_password("a password");
    Session session;
    Context ctx(kPatience);
    Require(stub_.Register(ctx, credentials, &session));
    Require(apps::ForRanges(0, posts, kThreads, [&](size_t begin, size_t end) {
      Client client;
      Channel channel(&client, address_);
      for (size_t i = begin; i < end; ++i) {
        ComposeRequest request;
        request.set_token(session.token());
        request.set_text(Join("post ", i, " of the ", name));
        Context one(kPatience);
        Post post;
        absl::Status status = Social::Stub(&channel).Compose(one, request, &post);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    }));
  }
  void AwaitIndex() {
    QueueState state;
    do {
      Context ctx(kPatience);
      Require(social::Search::Stub(&channel_).Look(ctx, Nothing(), &state));
    } while (state.waiting() > 0);
  }

  static void Time(const char* name, const std::function<void(const char*)>& call, Histogram* times) {
    const TimePoint begin = Now();
    call(name);
    times->Record(Now() - begin);
  }
  void Read(const char* name, uint64_t before) {
    UserPage page;
    page.set_name(name);
    page.set_before(before);
    Context ctx(kPatience);
    Posts posts;
    Require(stub_.ReadUserTimeline(ctx, page, &posts));
    if (posts.posts().empty()) Require(absl::InternalError("an empty timeline"));
  }
  void Count(const char* name) {
    UserRequest request;
    request.set_name(name);
    Context ctx(kPatience);
    Statistics statistics;
    Require(stub_.GetStatistics(ctx, request, &statistics));
    if (statistics.posts() == 0) Require(absl::InternalError("no posts are counted"));
  }
  void Search(const char* name, bool newest, uint64_t from) {
    SearchRequest request;
    request.set_text(name);
    request.set_newest(newest);
    request.set_from(from);
    Context ctx(kPatience);
    Posts posts;
    Require(stub_.SearchPosts(ctx, request, &posts));
    if (posts.posts().empty()) Require(absl::InternalError("a search finds nothing"));
  }

  const LargeFlags flags_;
  const apps::TempDir dir_;
  const std::string address_ = Join("unix:", dir_.File("social"));
  std::unique_ptr<deploy::Process> process_;
  Client client_;
  Channel channel_{&client_, address_};
  const Social::Stub stub_{&channel_};
};

}  // namespace

int main(int argc, char** argv) {
  LargeFlags flags;
  CLI::App app("What reads of a user cost who has written very much");
  app.add_option("--program", flags.program, "The program of the social network")->capture_default_str();
  app.add_option("--small", flags.small, "Posts of the one user")->capture_default_str();
  app.add_option("--large", flags.large, "Posts of the other")->capture_default_str();
  app.add_option("--calls", flags.calls, "Calls of a kind")->capture_default_str();
  app.add_option("--limit", flags.limit, "How much more a call about the other may take")
      ->capture_default_str();
  app.add_option("words", flags.words, "Further words of the program, after --");
  CLI11_PARSE(app, argc, argv);
  std::printf("%-16s %11s %11s\n", "p50", "small", "large");
  return LargeBench(flags).Measure() <= flags.limit ? 0 : 99;
}
