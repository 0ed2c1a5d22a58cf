// SPDX-License-Identifier: Apache-2.0
//
// Words, kernels and posting lists against plain code that does the same slowly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "apps/setalgebra/data/words.h"
#include "apps/setalgebra/index/kernels.h"
#include "apps/setalgebra/index/postings.h"
#include "curtail/base/rng.h"

namespace curtail::setalgebra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<uint16_t>;

constexpr uint64_t kSeed = 20261122;

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  ForEachWord(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(Words, AreRunsOfLettersDigitsAndHighBytes) {
  EXPECT_THAT(WordsOf("The cat's 2 kittens, e.g. Tom-9"),
              ElementsAre("the", "cat", "s", "2", "kittens", "e", "g", "tom", "9"));
  EXPECT_THAT(WordsOf("caf\xc3\xa9 \xff\x80 Z\x7f"), ElementsAre("caf\xc3\xa9", "\xff\x80", "z"));
  EXPECT_THAT(WordsOf(std::string_view("a\0b", 3)), ElementsAre("a", "b"));
  EXPECT_THAT(WordsOf(""), ElementsAre());
  EXPECT_THAT(WordsOf(" ,;\n"), ElementsAre());
}

TEST(Words, LongerRunsAreNone) {
  const std::string longest(kMaxWord, 'x'), longer(kMaxWord + 1, 'x');
  EXPECT_THAT(WordsOf("a " + longest + " b " + longer + " c"), ElementsAre("a", longest, "b", "c"));
}

TEST(NormalTerm, IsOneWord) {
  EXPECT_EQ(*NormalTerm("Dog"), "dog");
  EXPECT_EQ(*NormalTerm(" (dog) "), "dog");
  for (const auto& [term, says] :
       std::vector<std::pair<std::string, std::string>>{{"", "no letter"},
                                                        {"--", "no letter"},
                                                        {"hot dog", "2 words"},
                                                        {std::string(300, 'x'), "longer than"}}) {
    const absl::Status status = NormalTerm(term).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << term;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }
}

TEST(WordTable, NumbersWordsInTheirOrder) {
  WordTable table;
  std::set<std::string> words;
  Rng random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    std::string word(random.Below(20), '\0');
    for (char& c : word) c = static_cast<char>('a' + random.Below(3));
    const bool is_new = words.insert(word).second;
    EXPECT_EQ(table.Find(word) == WordTable::kNone, is_new);
    const uint32_t number = table.Insert(word);
    if (is_new) {
      EXPECT_EQ(number, words.size() - 1);
    }
    EXPECT_EQ(table.Find(word), number);
    EXPECT_EQ(table.word(number), word);
  }
  EXPECT_EQ(table.size(), words.size());
}

// ----- kernels -----

Numbers RandomList(Rng& random, size_t size, uint32_t range) {
  std::set<uint16_t> numbers;
  while (numbers.size() < size) numbers.insert(static_cast<uint16_t>(random.Below(range)));
  return {numbers.begin(), numbers.end()};
}

Numbers Expected(const Numbers& a, const Numbers& b) {
  Numbers both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

class KernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  // The lists lie at the end of their memory, so that sanitizers see a read behind them.
  void Check(const Numbers& a, const Numbers& b) {
    const Numbers want = Expected(a, b), shorter = a.size() <= b.size() ? a : b,
                  longer = a.size() <= b.size() ? b : a;
    Numbers out(shorter.size() + Kernels::kSlack, 0xbeef);
    out.resize(GetParam()->merge(a.data(), a.size(), b.data(), b.size(), out.data()));
    EXPECT_EQ(out, want) << "merge of " << a.size() << " and " << b.size();
    out.assign(shorter.size() + Kernels::kSlack, 0xbeef);
    out.resize(GetParam()->gallop(shorter.data(), shorter.size(), longer.data(), longer.size(), out.data()));
    EXPECT_EQ(out, want) << "gallop of " << shorter.size() << " and " << longer.size();
    out.assign(shorter.size() + Kernels::kSlack, 0xbeef);
    out.resize(Intersect(*GetParam(), a.data(), a.size(), b.data(), b.size(), out.data()));
    EXPECT_EQ(out, want) << a.size() << " and " << b.size();
  }
};
INSTANTIATE_TEST_SUITE_P(Available, KernelsTest, testing::ValuesIn(AvailableKernels()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(KernelsTest, AgreeWithTheStandardLibraryOnAllShortLengths) {
  Rng random(kSeed);
  for (size_t n = 0; n <= 70; ++n) {
    for (size_t m = 0; m <= 70; ++m) Check(RandomList(random, n, 100), RandomList(random, m, 100));
  }
}

TEST_P(KernelsTest, AgreeOnLongAndSkewedLists) {
  Rng random(kSeed + 1);
  for (const uint32_t range : {5000u, 20000u, 65536u}) {
    for (const size_t n : {1u, 15u, 17u, 100u, 1001u, 4096u}) {
      for (const size_t m : {16u, 255u, 256u, 1500u, 4095u, 4096u}) {
        Check(RandomList(random, n, range), RandomList(random, m, range));
      }
    }
  }
}

TEST_P(KernelsTest, AgreeAtTheEdgesOfTheNumbers) {
  Numbers all(4096), even, high;
  for (uint32_t i = 0; i < 4096; ++i) {
    all[i] = static_cast<uint16_t>(i * 16 + 15);
    even.push_back(static_cast<uint16_t>(i * 2));
    high.push_back(static_cast<uint16_t>(65535 - 4095 + i));
  }
  const std::vector<Numbers> lists = {{}, {0}, {65535}, {0, 65535}, all, even, high};
  for (const Numbers& a : lists) {
    for (const Numbers& b : lists) Check(a, b);
  }
}

// ----- posting lists -----

using Documents = std::vector<std::vector<uint32_t>>;  // by document: words

// In several parts, one of them empty.
std::vector<ForwardLists> InParts(const Documents& documents, size_t a_part) {
  std::vector<ForwardLists> parts(1);
  for (const auto& words : documents) {
    if (parts.back().ends.size() == a_part) parts.emplace_back();
    ForwardLists& part = parts.back();
    part.words.insert(part.words.end(), words.begin(), words.end());
    part.ends.push_back(static_cast<uint32_t>(part.words.size()));
  }
  parts.insert(parts.begin() + 1, ForwardLists{});
  return parts;
}

std::vector<uint32_t> Read(PostingList list) {
  std::vector<uint32_t> documents;
  std::vector<PostingList> one = {list};
  IntersectLists(*ScalarKernels(), one, 0, &documents);
  return documents;
}

// Words 0 to 5 are in every 1st, 2nd, 3rd, 17th, 1000th, 60000th document; word 6 in the last only.
Documents Regular(uint32_t count) {
  Documents documents(count);
  const uint32_t every[] = {1, 2, 3, 17, 1000, 60000};
  for (uint32_t d = 0; d < count; ++d) {
    for (uint32_t word = 0; word < 6; ++word) {
      if (d % every[word] == 0) documents[d].push_back(word);
    }
  }
  documents.back().push_back(6);
  return documents;
}

TEST(PostingStore, KeepsListsOfAnyLength) {
  for (const uint32_t count : {1u, 65535u, 65536u, 65537u, 200000u}) {
    const Documents documents = Regular(count);
    const auto store = PostingStore::Build(7, InParts(documents, 1000));
    ASSERT_TRUE(store.ok()) << store.status();
    uint64_t postings = 0;
    for (uint32_t word = 0; word < 7; ++word) {
      std::vector<uint32_t> want;
      for (uint32_t d = 0; d < count; ++d) {
        if (std::count(documents[d].begin(), documents[d].end(), word) > 0) want.push_back(d);
      }
      postings += want.size();
      EXPECT_EQ(store->list(word).size(), want.size());
      EXPECT_TRUE(Read(store->list(word)) == want) << "word " << word << " of " << count;
    }
    EXPECT_EQ(store->postings(), postings);
    EXPECT_LE(store->bytes(), postings * 2 + 7 * (6 + 4 * (count / 65536 + 1)));
  }
}

class ListsTest : public testing::TestWithParam<const Kernels*> {};
INSTANTIATE_TEST_SUITE_P(Available, ListsTest, testing::ValuesIn(AvailableKernels()),
                         [](const auto& info) { return std::string(info.param->name); });

// Arrays and bitmaps, one and several chunks, chunks that one list lacks.
TEST_P(ListsTest, IntersectAsTheStandardLibraryDoes) {
  Rng random(kSeed + 2);
  constexpr uint32_t kCount = 150000, kWords = 12;
  Documents documents(kCount);
  for (uint32_t d = 0; d < kCount; ++d) {
    for (uint32_t word = 0; word < kWords; ++word) {
      const bool hole = word % 3 == 2 && d / 65536 == 1;
      if (!hole && random.Uniform01() < 0.9 / (1 << word)) documents[d].push_back(word);
    }
  }
  const auto store = PostingStore::Build(kWords, InParts(documents, 4096));
  ASSERT_TRUE(store.ok()) << store.status();
  std::vector<std::vector<uint32_t>> plain;
  for (uint32_t word = 0; word < kWords; ++word) plain.push_back(Read(store->list(word)));
  for (int round = 0; round < 300; ++round) {
    const size_t terms = 1 + random.Below(round % 3 == 0 ? kMaxTerms : 3);
    std::vector<PostingList> lists;
    std::vector<uint32_t> want = plain[0];
    for (size_t i = 0; i < terms; ++i) {
      const uint32_t word = static_cast<uint32_t>(random.Below(i == 0 ? kWords : 4));
      lists.push_back(store->list(word));
      std::vector<uint32_t> both;
      std::set_intersection(want.begin(), want.end(), plain[word].begin(), plain[word].end(),
                            std::back_inserter(both));
      want = i == 0 ? plain[word] : both;
    }
    std::vector<uint32_t> found = {7};
    IntersectLists(*GetParam(), lists, 1000, &found);
    ASSERT_EQ(found.size(), want.size() + 1);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(found[i + 1], want[i] + 1000);
  }
}

}  // namespace
}  // namespace curtail::setalgebra
