// SPDX-License-Identifier: Apache-2.0
//
// social_large_bench: what reads of a user cost who has written very much.
//
// One process has all services and new stores. A user composes --large posts, another one --small, each with a
// word of its own. Then calls about the two take turns, so that what disturbs the machine disturbs both. A round
// gives the ratio of the two p50; the report has its median over the rounds. Exit code 99 if one is above --limit.
//
//   social_large_bench --program build/release/apps/social/social
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/parallel.h"
#include "apps/social/data.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/round.h"
#include "bench/common/spread.h"
#include "curtail/base/histogram.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/deploy/process/process.h"
#include "curtail/rpc/channel.h"
#include "search.curtail.h"
#include "social.curtail.h"

namespace {

using namespace curtail;
using namespace curtail::social;

constexpr Nanos kPatience = std::chrono::seconds(60);
constexpr int kThreads = 16;

struct LargeFlags : bench::CommonFlags {
  std::string program = "social";
  uint64_t small = 1000, large = 100'000;
  int calls = 100;
  double limit = 1.5;
  std::vector<std::string> words;  // further ones of the program
};

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "social_large_bench: " << status << "\n";
  std::exit(1);
}

// Calls of a kind about a user, and their p50 by round.
struct Kind {
  const char* name;
  std::function<void(const char*)> call;
  std::vector<double> small_ms = {}, large_ms = {}, ratios = {};
};

class LargeBench {
 public:
  LargeBench(const LargeFlags& flags, bench::Session& progress) : flags_(flags) {
    std::vector<std::string> words = {flags.program, "--monolith",      "--config", "FDB1-2", "--no-sync",
                                      "--data",      dir_.File("data"), "--listen", address_};
    words.insert(words.end(), flags.words.begin(), flags.words.end());
    auto process = deploy::Process::Spawn({.name = "social", .argv = words});
    Require(process.status());
    process_ = *std::move(process);
    Require(process_->AwaitLine("ready ", Deadline::In(kPatience), nullptr).status());
    progress.Progress(Join("composing ", flags.small + flags.large, " posts"));
    Fill("small", flags.small);
    Fill("large", flags.large);
    progress.Progress("waiting for the index");
    AwaitIndex();
  }

  // A round is `calls` calls of each kind about each user.
  std::vector<Kind> Measure(bench::Session& session) {
    std::vector<Kind> kinds = {{"user timeline", [&](const char* name) { Read(name); }},
                               {"statistics", [&](const char* name) { Count(name); }},
                               {"search, newest", [&](const char* name) { Search(name, true); }},
                               {"search, best", [&](const char* name) { Search(name, false); }}};
    const bench::RoundPlan plan{.rounds = flags_.rounds, .subjects = kinds.size(), .stop = &session.stop()};
    const absl::Status ended = bench::RunRounds(plan, [&](const bench::Turn& turn) {
      Kind& kind = kinds[turn.subject];
      session.Progress(Join(bench::RoundText(plan, turn), kind.name));
      Histogram small, large;
      for (int i = 0; i < flags_.calls; ++i)
        Time("small", kind.call, &small), Time("large", kind.call, &large);
      kind.small_ms.push_back(InMillis(small.Percentile(50)));
      kind.large_ms.push_back(InMillis(large.Percentile(50)));
      kind.ratios.push_back(kind.large_ms.back() / kind.small_ms.back());
      return absl::OkStatus();
    });
    if (!ended.ok()) session.Note("interrupted: the report is partial");
    return kinds;
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
  void Read(const char* name) {
    UserPage page;
    page.set_name(name);
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
  void Search(const char* name, bool newest) {
    SearchRequest request;
    request.set_text(name);
    request.set_newest(newest);
    Context ctx(kPatience);
    Posts posts;
    Require(stub_.SearchPosts(ctx, request, &posts));
    if (posts.posts().empty()) Require(absl::InternalError("a search finds nothing"));
  }

  const LargeFlags flags_;
  const TempDir dir_;
  const std::string address_ = Join("unix:", dir_.File("social"));
  std::unique_ptr<deploy::Process> process_;
  Client client_;
  Channel channel_{&client_, address_};
  const Social::Stub stub_{&channel_};
};

int Run(const LargeFlags& flags) {
  bench::Session session(flags);
  const bench::Machine machine = bench::LookAtMachine();
  session.Note(bench::ToString(machine));
  LargeBench large(flags, session);
  bench::Table table("results");
  bool failed = false;
  for (const Kind& kind : large.Measure(session)) {
    table.Add({{"call", "p50 in ms", kind.name},
               {"small_p50_ms", "small", kind.small_ms},
               {"large_p50_ms", "large", kind.large_ms},
               {"ratio", "ratio", kind.ratios, bench::Range(bench::Fixed(2))}});
    failed = failed || bench::SpreadOf(kind.ratios).median > flags.limit;
  }
  bench::Report report("social_large", flags, machine);
  report.Set("small_posts", flags.small).Set("large_posts", flags.large).Set("limit", flags.limit);
  report.Add(std::move(table)).Say(failed ? "a ratio is above " + bench::Fixed(2)(flags.limit) : "");
  return session.Finish("social_large_bench", report, absl::OkStatus(), failed ? kThreshold : kOk);
}

}  // namespace

int main(int argc, char** argv) {
  LargeFlags flags;
  CLI::App app("What reads of a user cost who has written very much.", "social_large_bench");
  app.add_option("--program", flags.program, "The program of the social network")->capture_default_str();
  app.add_option("--small", flags.small, "Posts of the one user")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--large", flags.large, "Posts of the other")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--calls", flags.calls, "Calls of a kind in a round")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--limit", flags.limit, "Of a ratio; above it the exit code is 99")->capture_default_str();
  app.add_option("words", flags.words, "Further words of the program, after --");
  bench::AddCommonFlags(app, &flags, {});
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags)) return *code;
  return Run(flags);
}
