// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/index/text_index.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "apps/kit/index/words.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"

namespace curtail::apps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TextIndexTest : public testing::Test {
 protected:
  std::unique_ptr<TextIndex> Open() {
    auto index = TextIndex::Open(dir_.File("index"), /*sync=*/false);
    EXPECT_TRUE(index.ok()) << index.status();
    return *std::move(index);
  }
  static std::vector<uint64_t> Find(const TextIndex& index, const TextIndex::Query& query) {
    std::vector<TextIndex::Hit> hits;
    const absl::Status status = index.Find(query, &hits);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(std::ranges::is_sorted(hits, std::greater<>(), &TextIndex::Hit::score));
    std::vector<uint64_t> ids;
    for (const TextIndex::Hit& hit : hits) ids.push_back(hit.id);
    return ids;
  }
  static void Apply(TextIndex& index, const std::vector<TextIndex::Change>& changes) {
    const absl::Status status = index.Apply(changes);
    EXPECT_TRUE(status.ok()) << status;
  }
  TempDir dir_;
};

TEST_F(TextIndexTest, FindsPostsThatHoldAllWords) {
  auto index = Open();
  const uint64_t late = uint64_t{1} << 62;
  Apply(*index,
        {{1, "The quick brown fox"}, {2, "the fox, the fox, the FOX!"}, {late, "a quick dog; ähnlich 東京"}});
  EXPECT_THAT(Find(*index, {.text = "quick", .newest = true, .limit = 9}), ElementsAre(late, 1));
  EXPECT_THAT(Find(*index, {.text = "fox THE", .limit = 9}), ElementsAre(2, 1));  // it is all of post 2
  EXPECT_THAT(Find(*index, {.text = "fox dog", .limit = 9}), IsEmpty());
  EXPECT_THAT(Find(*index, {.text = "ÄHNLICH", .limit = 9}), ElementsAre(late));
  EXPECT_THAT(Find(*index, {.text = "quick -fox OR Q1 fo*", .limit = 9}), IsEmpty());  // no syntax
  std::vector<TextIndex::Hit> hits;
  EXPECT_TRUE(absl::IsInvalidArgument(index->Find({.text = " ... ", .limit = 9}, &hits)));
  EXPECT_TRUE(
      absl::IsInvalidArgument(index->Find({.text = "a b c d e f g h i j k l m n o p q", .limit = 9}, &hits)));
}

TEST_F(TextIndexTest, NarrowsByTagAndNumber) {
  auto index = Open();
  Apply(*index, {{.id = 1, .text = "fox fox", .tags = {"Drama", "War"}, .number = 1950},
                 {.id = 2, .text = "fox", .tags = {"War"}, .number = 1960},
                 {.id = 3, .text = "fox drama"}});
  const auto find = [&](TextIndex::Query query) {
    query.text = "fox", query.limit = 9;
    return Find(*index, query);
  };
  EXPECT_THAT(find({}), ElementsAre(1, 3, 2));
  EXPECT_THAT(find({.tag = "War"}), ElementsAre(1, 2));
  EXPECT_THAT(find({.tag = "Drama"}), ElementsAre(1)) << "a word is not a tag";
  EXPECT_THAT(find({.newest = true, .tag = "War"}), ElementsAre(2, 1));
  EXPECT_THAT(find({.least = 1951}), ElementsAre(2));
  EXPECT_THAT(find({.least = 1950, .greatest = 1960}), ElementsAre(1, 2));
  EXPECT_THAT(find({.tag = "War", .greatest = 1959}), ElementsAre(1));
  EXPECT_THAT(find({.tag = "war"}), IsEmpty());
  EXPECT_THAT(Find(*index, {.limit = 9, .tag = "War"}), ElementsAre(2, 1)) << "without words the newest";
  EXPECT_THAT(Find(*index, {.text = " . ", .limit = 1, .least = 1}), ElementsAre(2));
}

TEST_F(TextIndexTest, KeepsWhatWasAppliedLast) {
  auto index = Open();
  Apply(*index, {{1, "one"}, {2, "one"}});
  Apply(*index, {{2, "two"}, {1, "", /*remove=*/true}, {7, "", /*remove=*/true}});
  EXPECT_TRUE(absl::IsUnavailable(TextIndex::Open(dir_.File("index"), false).status()));  // in use
  index = nullptr;
  index = Open();
  EXPECT_THAT(Find(*index, {.text = "one", .limit = 9}), IsEmpty());
  EXPECT_THAT(Find(*index, {.text = "two", .limit = 9}), ElementsAre(2));
  EXPECT_FALSE(TextIndex::Open(dir_.Write("file", "no index"), false).ok());
}

// Property: by time, a query finds what a look at every post finds, page after page.
TEST_F(TextIndexTest, AgreesWithALookAtEveryPost) {
  Rng rng(TestSeed());
  auto index = Open();
  std::map<uint64_t, std::set<uint64_t>> posts;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> texts(20);
    std::vector<TextIndex::Change> changes;
    for (std::string& text : texts) {
      const uint64_t post = 1 + rng.Below(100);
      const bool remove = rng.Below(4) == 0;
      posts[post].clear();
      for (uint64_t i = rng.Below(5); i > 0 && !remove; --i) {
        const uint64_t word = rng.Below(6);
        text += Join(" w", word);
        posts[post].insert(word);
      }
      changes.push_back({post, text, remove});
    }
    Apply(*index, changes);
    const uint64_t a = rng.Below(6), b = rng.Below(6);
    std::vector<uint64_t> expected, found;
    for (auto post = posts.rbegin(); post != posts.rend(); ++post) {
      if (post->second.contains(a) && post->second.contains(b)) expected.push_back(post->first);
    }
    std::vector<uint64_t> page;
    uint64_t before = 0;
    do {
      page = Find(*index, {.text = Join("w", a, " w", b), .newest = true, .before = before, .limit = 3});
      found.insert(found.end(), page.begin(), page.end());
      if (!page.empty()) before = page.back();
    } while (page.size() == 3);
    EXPECT_EQ(found, expected) << a << " " << b;
  }
}

// Property: with more posts than a block has, which come in about the order of their ids, a query finds what a look at
// every post finds, by time and by score.
TEST_F(TextIndexTest, AgreesWithALookAtVeryManyPosts) {
  Rng rng(TestSeed());
  auto index = Open();
  constexpr uint64_t kPosts = 5000, kTogether = 50;
  std::vector<uint64_t> ids(kPosts);
  for (uint64_t i = 0; i < kPosts; ++i) ids[i] = i + 1;
  for (uint64_t i = 0; i + kTogether < kPosts; ++i) std::swap(ids[i], ids[i + rng.Below(kTogether)]);
  std::swap(ids[10], ids[kPosts - 10]);  // one is very late, and one very early
  std::map<std::string, std::vector<std::pair<uint64_t, uint64_t>>> expected;  // how often, and the post
  std::vector<std::string> texts;
  for (const uint64_t id : ids) {
    texts.emplace_back("all");
    for (const auto& [word, one_in] : {std::pair("all", 20), {"rare", 700}, {"some", 9}}) {
      const uint64_t times = rng.Below(one_in) == 0 ? 1 + rng.Below(3) : 0;
      for (uint64_t i = 0; i < times; ++i) texts.back() += Join(" ", word);
      const uint64_t all = times + (std::string_view(word) == "all" ? 1 : 0);
      if (all > 0) expected[word].emplace_back(all, id);
    }
  }
  for (uint64_t i = 0; i < kPosts; i += 500) {
    std::vector<TextIndex::Change> changes;
    for (uint64_t j = i; j < i + 500; ++j) changes.push_back({ids[j], texts[j]});
    Apply(*index, changes);
  }
  for (auto& [word, posts] : expected) {
    const auto found = [&](bool newest, uint64_t before) {
      return Find(*index, {.text = word, .newest = newest, .before = before, .limit = 40});
    };
    const auto first = [&](uint64_t before) {
      std::vector<uint64_t> most;
      for (const auto& [times, post] : posts) {
        if (post < before && most.size() < 40) most.push_back(post);
      }
      return most;
    };
    std::ranges::sort(posts, std::greater<>());
    EXPECT_EQ(found(/*newest=*/false, 0), first(kPosts + 1)) << word;
    std::ranges::sort(posts, std::greater<>(), [](const auto& one) { return one.second; });
    EXPECT_EQ(found(/*newest=*/true, 0), first(kPosts + 1)) << word;
    for (const uint64_t before : {uint64_t{4000}, kPosts / 2, uint64_t{1025}, uint64_t{30}, uint64_t{1}})
      EXPECT_EQ(found(/*newest=*/true, before), first(before)) << word << " before " << before;
  }
}

// Threads that list by a tag at once share no query: Xapian counts a query's users without a lock.
TEST_F(TextIndexTest, ListsOnManyThreadsStress) {
  auto index = Open();
  Apply(*index, {{.id = 1, .text = "one", .tags = {"odd"}}, {.id = 2, .text = "two", .tags = {"even"}}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = Repeats(10'000, 100'000); i > 0; --i) {
        ASSERT_THAT(Find(*index, {.limit = 9, .tag = "odd"}), ElementsAre(1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Property: whoever searches while others change the index finds each post that stays.
TEST_F(TextIndexTest, SearchesWhileItChangesStress) {
  auto index = Open();
  Apply(*index, {{1, "stays here"}});
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 50; ++i) {
        if (t == 0) {
          Apply(*index, {{2 + i, "stays away"}, {i == 0 ? 999 : 1 + i, "", /*remove=*/true}});
        } else {
          EXPECT_THAT(Find(*index, {.text = "here stays", .limit = 9}), ElementsAre(1));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class WordsTest : public testing::Test {
 protected:
  WordsTest() {
    auto index = TextIndex::Open(dir_.File("index"), /*sync=*/false);
    EXPECT_TRUE(index.ok()) << index.status();
    index_ = *std::move(index);
  }
  // True if a post of this text is found by the query.
  bool Finds(const std::string& query, const std::string& text) {
    const TextIndex::Change change{.id = ++last_, .text = text};
    EXPECT_TRUE(index_->Apply({&change, 1}).ok());
    std::vector<TextIndex::Hit> hits;
    const absl::Status found = index_->Find({.text = query, .newest = true, .limit = 1}, &hits);
    EXPECT_TRUE(found.ok()) << found;
    return !hits.empty() && hits[0].id == last_;
  }

  const TempDir dir_;
  std::unique_ptr<TextIndex> index_;
  uint64_t last_ = 0;
};

TEST_F(WordsTest, AreTheSameHoweverTheyAreWritten) {
  EXPECT_TRUE(Finds("STRASSE",
                    "Stra\xc3\x9f"
                    "e"));
  EXPECT_TRUE(
      Finds("stra\xc3\x9f"
            "e",
            "STRASSE"));
  EXPECT_TRUE(Finds("\xce\x9f\xce\x94\xce\x9f\xce\xa3", "\xce\xbf\xce\xb4\xce\xbf\xcf\x82"));  // final sigma
  EXPECT_TRUE(Finds("caf\xc3\xa9", "cafe\xcc\x81"));  // composed and not
  EXPECT_TRUE(Finds("file", "\xef\xac\x81le"));       // a ligature
  EXPECT_TRUE(Finds("it's", "IT'S"));
  EXPECT_FALSE(Finds("cafe", "caf\xc3\xa9"));
  EXPECT_TRUE(
      Finds("broken\xff"
            "bytes",
            "broken\xff"
            "bytes"));
}

TEST_F(WordsTest, ALongWordIsNotPassedOver) {
  const std::string most(240, 'a');
  EXPECT_TRUE(Finds(most, "a word: " + most));
  EXPECT_TRUE(Finds(std::string(65, 'b'), std::string(65, 'b')));
  EXPECT_FALSE(Finds("word " + std::string(100, 'c'), "a word"));
  EXPECT_FALSE(Finds("word " + std::string(241, 'd'), "a word " + std::string(241, 'd')));
}

TEST(Passwords, AreTheSameFromEachKeyboard) {
  EXPECT_EQ(Composed("pa\xcc\x8a"
                     "ss"),
            "p\xc3\xa5ss");
  EXPECT_EQ(Composed("Pass \xef\xac\x81"), "Pass \xef\xac\x81");  // case and ligatures count
  EXPECT_EQ(Composed("\xff"), "\xff");
}

}  // namespace
}  // namespace curtail::apps
