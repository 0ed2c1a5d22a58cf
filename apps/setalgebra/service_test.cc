// SPDX-License-Identifier: Apache-2.0
//
// Both tiers in one process, over real sockets, on the glosses of WordNet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "apps/kit/testing/configs_to_test.h"
#include "apps/setalgebra/data/collection.h"
#include "apps/setalgebra/index/index.h"
#include "apps/setalgebra/leaf_service.h"
#include "apps/setalgebra/query_service.h"
#include "apps/setalgebra/workload.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/server_testing.h"
#include "setalgebra.curtail.h"

namespace curtail::setalgebra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<uint32_t>;

constexpr Nanos kPatience = std::chrono::seconds(20);
constexpr uint64_t kSeed = 20261122;
constexpr size_t kStopWords = 50;

// A Leaf that answers only when it is told to go on, or when its time is up.
class StalledLeaf final : public Leaf::Service {
 public:
  absl::Status Intersect(Context& ctx, const IntersectRequest&, IntersectReply*) override {
    const Deadline give_up = std::min(ctx.deadline(), Deadline::In(kPatience));
    std::unique_lock lock(mu_);
    while (!open_ && !ctx.cancelled() && !give_up.Expired()) {
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    return ctx.deadline().Expired() ? absl::DeadlineExceededError("stalled")
                                    : absl::UnavailableError("stalled");
  }
  void Open() {
    const std::lock_guard lock(mu_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = false;  // guarded by mu_
};

// Leaves over a collection, which may serve several mid-tiers.
struct Leaves {
  Leaves(const std::string& data, uint32_t count, const std::string& config = "SIB1") {
    for (uint32_t i = 0; i < count; ++i) {
      auto index = Index::Load(*DataSpec::Parse(data), Shard{i, count}, {kStopWords, 2, true});
      EXPECT_TRUE(index.ok()) << index.status();
      servers.push_back(StartServer(config, std::make_unique<LeafService>(*std::move(index))));
      addresses.push_back(servers.back()->addresses()[0]);
    }
  }
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::string> addresses;
};

// A mid-tier under a threading model.
class MidTier {
 public:
  MidTier(const std::vector<std::string>& leaves, const std::string& config,
          QueryPlannerOptions options = {}) {
    std::vector<Channel*> channels;
    for (const std::string& address : leaves) {
      channels_.push_back(std::make_unique<Channel>(&client_, address));
      channels.push_back(channels_.back().get());
    }
    planner_ = std::make_unique<QueryPlanner>(channels, options);
    server_ = StartServer(config, MakeQueryService(*planner_));
    front_ = std::make_unique<Channel>(&front_client_, server_->addresses()[0]);
  }
  absl::Status Query(const QueryRequest& request, QueryReply* reply, Nanos timeout = kPatience) {
    Context ctx(timeout);
    return SetAlgebra::Stub(front_.get()).Query(ctx, request, reply);
  }
  Server& server() { return *server_; }

 private:
  Client client_, front_client_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Channel> front_;
  std::unique_ptr<QueryPlanner> planner_;
  std::unique_ptr<Server> server_;  // stops before what it calls
};

QueryRequest Ask(const std::vector<std::string>& terms, bool allow_partial = false) {
  QueryRequest request;
  for (const std::string& term : terms) request.add_terms(term);
  request.set_allow_partial(allow_partial);
  return request;
}

Ids Documents(const QueryReply& reply) { return {reply.documents().begin(), reply.documents().end()}; }

// WordNet read by plain code that shares nothing with the index but the reader of lines.
struct Reference {
  struct Query {
    std::vector<std::string> terms;
    std::set<std::string> ignored;
    Ids answer;
  };

  Reference() {
    const auto reader = OpenDocuments(*DataSpec::Parse("wordnet"));
    std::string_view text;
    while ((*reader)->Next(&text).value()) AddDocument(std::string(text) + " ");
    std::vector<std::pair<int64_t, std::string>> ranked;
    for (const auto& [name, number] : numbers) {
      ranked.emplace_back(-counts[number], name);
      names[number] = name;
    }
    std::sort(ranked.begin(), ranked.end());
    for (size_t i = 0; i < ranked.size(); ++i) {
      if (i < kStopWords) stop_words.insert(ranked[i].second);
      (i < 3000 ? frequent : rare).push_back(ranked[i].second);
    }
    Rng random(kSeed);
    for (int i = 0; i < 300; ++i) queries.push_back(Draw(random));
  }
  void AddDocument(const std::string& text) {
    std::set<uint32_t> words;
    std::string word;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0 || byte >= 0x80) {
        word.push_back(static_cast<char>(std::tolower(byte)));
      } else if (!word.empty()) {
        const uint32_t number = numbers.emplace(word, static_cast<uint32_t>(numbers.size())).first->second;
        counts.resize(numbers.size());
        ++counts[number];
        words.insert(number);
        word.clear();
      }
    }
    documents.emplace_back(words.begin(), words.end());
  }
  // Looks at every word of every document.
  Ids Scan(const std::vector<std::string>& terms) const {
    std::vector<uint32_t> wanted;
    for (const std::string& term : terms) {
      if (stop_words.count(term) == 0) wanted.push_back(numbers.at(term));
    }
    Ids found;
    for (uint32_t d = 0; d < documents.size(); ++d) {
      const bool all = std::all_of(wanted.begin(), wanted.end(), [&](uint32_t number) {
        return std::find(documents[d].begin(), documents[d].end(), number) != documents[d].end();
      });
      if (all) found.push_back(d);
    }
    return found;
  }
  // Words of one document, frequent words, or rare words.
  Query Draw(Rng& random) const {
    std::set<std::string> terms;
    const uint64_t kind = random.Below(4);
    std::vector<std::string> words;
    for (const uint32_t number : documents[random.Below(documents.size())]) words.push_back(names.at(number));
    const size_t size = 1 + random.Below(kind == 0 ? 10 : 3);
    for (size_t i = 0; i < size; ++i) {
      const auto& from = kind < 2 && !words.empty() ? words : kind < 3 ? frequent : rare;
      terms.insert(from[random.Below(from.size())]);
    }
    Query query{.terms = {terms.begin(), terms.end()}};
    for (const std::string& term : terms) {
      if (stop_words.count(term) > 0) query.ignored.insert(term);
    }
    query.answer = Scan(query.terms);
    return query;
  }

  std::map<std::string, uint32_t> numbers;
  std::map<uint32_t, std::string> names;         // the other way round
  std::vector<int64_t> counts;                   // by number
  std::vector<std::vector<uint32_t>> documents;  // words, rising
  std::set<std::string> stop_words;
  std::vector<std::string> frequent, rare;
  std::vector<Query> queries;
};

const Reference& WordNet() {
  static const Reference reference;
  return reference;
}

class ModelsTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, ModelsTest,
                         testing::ValuesIn(apps::ConfigsToTest({"SDB1-4", "FIB1", "ADB1-2-2"},
                                                               {"SIB1", "FDB1-2", "AIB1-1", "AIP1-1"})),
                         [](const auto& info) { return info.param.substr(0, 3); });

// 300 random queries of the whole of WordNet, seed kSeed, for each number of shards and each model. Under a sanitizer for one
// number, as each one's indexes take long to make.
TEST_P(ModelsTest, AgreesWithBruteForce) {
  static std::map<uint32_t, std::unique_ptr<Leaves>> deployments;  // each loaded once
  for (const uint32_t shards : kSanitized ? std::vector{2u} : std::vector{1u, 2u, 4u}) {
    auto& leaves = deployments[shards];
    if (leaves == nullptr) leaves = std::make_unique<Leaves>("wordnet", shards);
    MidTier mid_tier(leaves->addresses, GetParam());
    size_t not_empty = 0;
    for (const Reference::Query& query : WordNet().queries) {
      SCOPED_TRACE(testing::PrintToString(query.terms));
      QueryReply reply;
      const absl::Status status = mid_tier.Query(Ask(query.terms), &reply);
      if (query.ignored.size() == query.terms.size()) {
        ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
        continue;
      }
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(Documents(reply), query.answer);
      ASSERT_EQ(reply.shards(), shards);
      ASSERT_EQ(reply.shards_answered(), shards);
      ASSERT_EQ(reply.failures_size(), 0);
      ASSERT_EQ(std::set<std::string>(reply.ignored_terms().begin(), reply.ignored_terms().end()),
                query.ignored);
      not_empty += query.answer.empty() ? 0 : 1;
    }
    EXPECT_GE(not_empty, 150u);
  }
}

constexpr char kSmall[] = "synthetic:N=4000,words=500,seed=5";

class SmallTest : public ModelsTest {
 protected:
  Leaves leaves_{kSmall, 4};
};
INSTANTIATE_TEST_SUITE_P(Models, SmallTest, testing::Values("SDB1-4", "FIB1", "ADB1-2-2"),
                         [](const auto& info) { return info.param.substr(0, 3); });

// A word of the collection that is no stop word, with documents in all shards.
std::string SomeWord() {
  const auto counts = CountWords(*DataSpec::Parse(kSmall), 1, true);
  return std::string(counts->words.word(MostFrequent(*counts, kStopWords + 1).back()));
}

TEST_P(SmallTest, BadRequestsAreInvalidArgument) {
  MidTier mid_tier(leaves_.addresses, GetParam());
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "0 terms; want 1 to 10"},
      {std::vector<std::string>(11, "a"), "11 terms"},
      {{"dog", ""}, "holds no letter"},
      {{"hot dog"}, "2 words"},
      {{std::string(1000, 'x')}, "longer than 255"},
      {{"ba", "BA"}, "too common to be indexed, like 'ba'"},  // the most frequent word
  };
  for (const auto& [terms, says] : cases) {
    QueryReply reply;
    const absl::Status status = mid_tier.Query(Ask(terms), &reply);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << says << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }
}

TEST_P(SmallTest, TermsAreWordsInAnyCaseAndCountOnce) {
  MidTier mid_tier(leaves_.addresses, GetParam());
  std::string word = SomeWord(), upper = word;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  QueryReply one, same, with_stop_word, unknown;
  ASSERT_TRUE(mid_tier.Query(Ask({word}), &one).ok());
  ASSERT_TRUE(mid_tier.Query(Ask({upper, "(" + word + ")"}), &same).ok());
  ASSERT_TRUE(mid_tier.Query(Ask({word, "Ba"}), &with_stop_word).ok());
  ASSERT_TRUE(mid_tier.Query(Ask({word, "unknown"}), &unknown).ok());
  EXPECT_GT(one.documents_size(), 0);
  EXPECT_EQ(Documents(same), Documents(one));
  EXPECT_EQ(Documents(with_stop_word), Documents(one));
  EXPECT_THAT(with_stop_word.ignored_terms(), ElementsAre("ba"));
  EXPECT_EQ(unknown.documents_size(), 0);
}

TEST_P(SmallTest, ADeadLeafFailsTheQueryByNameUnlessPartsAreAllowed) {
  MidTier mid_tier(leaves_.addresses, GetParam());
  const std::string word = SomeWord();
  QueryReply whole, part;
  ASSERT_TRUE(mid_tier.Query(Ask({word}, true), &whole).ok());
  EXPECT_EQ(whole.shards_answered(), 4u);
  leaves_.servers[2].reset();
  QueryReply none;
  const absl::Status failed = mid_tier.Query(Ask({word}), &none);
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable) << failed;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("leaf " + leaves_.addresses[2]));

  const absl::Status status = mid_tier.Query(Ask({word}, true), &part);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(part.shards_answered(), 3u);
  EXPECT_EQ(part.shards(), 4u);
  ASSERT_EQ(part.failures_size(), 1);
  EXPECT_THAT(part.failures(0), HasSubstr("leaf " + leaves_.addresses[2]));
  Ids want;
  for (const uint32_t id : Documents(whole)) {
    if (id < 2000 || id >= 3000) want.push_back(id);
  }
  EXPECT_EQ(Documents(part), want);
  EXPECT_LT(want.size(), static_cast<size_t>(whole.documents_size()));

  for (auto& server : leaves_.servers) server.reset();
  EXPECT_EQ(mid_tier.Query(Ask({word}, true), &none).code(), absl::StatusCode::kUnavailable);
}

TEST_P(SmallTest, AStalledLeafDoesNotStallAPartialAnswer) {
  auto stalled = std::make_unique<StalledLeaf>();
  StalledLeaf* const leaf = stalled.get();
  const auto server = StartServer("SDB1-4", std::move(stalled));
  std::vector<std::string> addresses = leaves_.addresses;
  addresses[1] = server->addresses()[0];
  const std::string word = SomeWord();
  {
    // By nine tenths of the caller's time.
    MidTier mid_tier(addresses, GetParam());
    QueryReply reply;
    const absl::Status status = mid_tier.Query(Ask({word}, true), &reply, std::chrono::seconds(2));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(reply.shards_answered(), 3u);
    EXPECT_THAT(reply.failures(0), HasSubstr("leaf " + addresses[1]));
  }
  // By a timeout of the leaves' own.
  MidTier mid_tier(addresses, GetParam(), {.leaf_timeout = std::chrono::seconds(1)});
  QueryReply reply;
  const TimePoint start = Now();
  absl::Status status = mid_tier.Query(Ask({word}, true), &reply);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply.shards_answered(), 3u);
  EXPECT_LT(Now() - start, kPatience / 2);
  status = mid_tier.Query(Ask({word}), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("leaf " + addresses[1]));
  leaf->Open();
}

TEST_P(SmallTest, LeavesThatDoNotFitAreNoticed) {
  const std::string word = SomeWord();
  // A stop word alone is an error of its own, which must not hide this one.
  const std::string stop_word = "ba";
  const auto expect = [&](const std::vector<std::string>& addresses, const std::string& says) {
    for (const auto& request : {Ask({word}), Ask({word}, true), Ask({stop_word})}) {
      MidTier mid_tier(addresses, GetParam());
      QueryReply reply;
      const absl::Status status = mid_tier.Query(request, &reply);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(says));
    }
  };
  const auto& right = leaves_.addresses;
  expect({right[0], right[2], right[1], right[3]}, "serves shard 2/4, but is leaf 1 of 4");
  expect({right[0], right[1]}, "serves shard 0/4, but is leaf 0 of 2");
  const Leaves others("synthetic:N=4000,words=500,seed=6", 4);
  expect({right[0], right[1], right[2], others.addresses[3]}, "hold different collections");
}

TEST(SetAlgebra, NoLeafIsWaitedForWithoutEndByDefault) { EXPECT_EQ(kLeafTimeoutMs, 1000); }

TEST(SetAlgebra, OneServerSwitchesAmongAllModels) {
  const Leaves leaves(kSmall, 2);
  MidTier mid_tier(leaves.addresses, "SIB1");
  const std::string word = SomeWord();
  QueryReply want;
  ASSERT_TRUE(mid_tier.Query(Ask({word}), &want).ok());
  for (const char* config : {"SIP1", "SDB1-2", "SDP1-2", "FIB1", "FIP1", "FDB1-2", "FDP1-2", "AIB1-1",
                             "AIP1-1", "ADB1-2-2", "ADP1-2-2", "SIB1"}) {
    const absl::Status switched = mid_tier.server().SwitchTo(*Config::Parse(config));
    ASSERT_TRUE(switched.ok()) << config << ": " << switched;
    QueryReply reply;
    const absl::Status status = mid_tier.Query(Ask({word}), &reply);
    ASSERT_TRUE(status.ok()) << config << ": " << status;
    EXPECT_EQ(Documents(reply), Documents(want)) << config;
  }
}

// ----- the workload -----

WorkloadOptions SmallWorkload() {
  WorkloadOptions options;
  options.data = kSmall;
  options.count = 200, options.judged = 100, options.quiet = true;
  return options;
}

TEST(Workload, RightRepliesScoreOneAndOthersZero) {
  const auto workload = MakeWorkload(SmallWorkload());
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ((*workload)->method(), "/curtail.setalgebra.SetAlgebra/Query");
  EXPECT_EQ((*workload)->score_name(), "exact");
  const Leaves leaves(kSmall, 4);
  MidTier mid_tier(leaves.addresses, "SIB1");
  size_t not_empty = 0, longest = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    QueryRequest request;
    ASSERT_TRUE(request.ParseFromString((*workload)->Request(i)));
    longest = std::max(longest, static_cast<size_t>(request.terms_size()));
    QueryReply reply;
    const absl::Status status = mid_tier.Query(request, &reply);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(reply.ignored_terms_size(), 0);
    not_empty += reply.documents_size() > 0 ? 1 : 0;
    const double score = (*workload)->Score(i, reply.SerializeAsString());
    if (i >= 100) {
      EXPECT_TRUE(std::isnan(score));
      continue;
    }
    EXPECT_EQ(score, 1) << i;
    EXPECT_EQ((*workload)->Score(i + 200, reply.SerializeAsString()), 1);
    reply.add_documents(4000);
    EXPECT_EQ((*workload)->Score(i, reply.SerializeAsString()), 0);
    EXPECT_EQ((*workload)->Score(i, "no message"), 0);
  }
  EXPECT_GE(not_empty, 100u);  // those drawn from one document at the least
  EXPECT_EQ(longest, 10u);
}

TEST(Workload, IsTheSameForOneSeedAndAnyNumberOfThreads) {
  WorkloadOptions options = SmallWorkload();
  options.threads = 1;
  const auto one = MakeWorkload(options);
  options.threads = 3;
  const auto three = MakeWorkload(options);
  options.seed = 2;
  const auto other = MakeWorkload(options);
  ASSERT_TRUE(one.ok() && three.ok() && other.ok());
  size_t different = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    EXPECT_EQ((*one)->Request(i), (*three)->Request(i));
    different += (*one)->Request(i) != (*other)->Request(i) ? 1 : 0;
  }
  EXPECT_GE(different, 100u);
}

TEST(Workload, RefusesWhatCannotBe) {
  const auto code = [](auto change) {
    WorkloadOptions options = SmallWorkload();
    change(options);
    return MakeWorkload(options).status().code();
  };
  EXPECT_EQ(code([](auto& o) { o.max_terms = 11; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.max_terms = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.count = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.count = SIZE_MAX; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.together = std::nan(""); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.stop_words = 500; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.data = "nothing.txt"; }), absl::StatusCode::kNotFound);
}

TEST(Workload, AsksNothingThatCannotBeSent) {
  const TempDir dir;
  WorkloadOptions options = SmallWorkload();
  options.data = dir.Write("latin1.txt", "caf\xe9 caf\xc3\xa9 x\xed\xa0\x80 \xf5\n");
  options.stop_words = 0, options.count = 50, options.together = 0.5;
  const auto workload = MakeWorkload(options);
  ASSERT_TRUE(workload.ok()) << workload.status();
  for (uint64_t i = 0; i < 50; ++i) {
    QueryRequest request;
    ASSERT_TRUE(request.ParseFromString((*workload)->Request(i)));
    ASSERT_THAT(request.terms(), ElementsAre("caf\xc3\xa9"));
  }
}

}  // namespace
}  // namespace curtail::setalgebra
