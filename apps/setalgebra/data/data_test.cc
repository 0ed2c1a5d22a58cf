// SPDX-License-Identifier: Apache-2.0
//
// The formats of collections, what is wrong with files, and passes over them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "apps/setalgebra/data/collection.h"
#include "apps/setalgebra/data/data_spec.h"
#include "apps/setalgebra/index/index.h"
#include "apps/setalgebra/offline.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::setalgebra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Texts = std::vector<std::string>;

absl::Status ReadInto(const std::string& data, Texts* documents) {
  const absl::StatusOr<DataSpec> spec = DataSpec::Parse(data);
  if (!spec.ok()) return spec.status();
  const auto reader = OpenDocuments(*spec);
  if (!reader.ok()) return reader.status();
  std::string_view document;
  for (;;) {
    const absl::StatusOr<bool> more = (*reader)->Next(&document);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
    documents->emplace_back(document);
  }
}

Texts Read(const std::string& data) {
  Texts documents;
  const absl::Status status = ReadInto(data, &documents);
  EXPECT_TRUE(status.ok()) << status;
  return documents;
}

void ExpectError(const std::string& data, absl::StatusCode code, const std::string& says) {
  Texts documents;
  const absl::Status status = ReadInto(data, &documents);
  EXPECT_EQ(status.code(), code) << data << ": " << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(says)) << data;
}

TEST(DataSpec, RefusesWhatItDoesNotUnderstand) {
  for (const char* bad :
       {"", "wordnets", "file.pdf", ".txt", "wikitext:", "synthetic:", "synthetic:words=5", "synthetic:N=0",
        "synthetic:N=5,N", "synthetic:N=5,colour=red", "synthetic:N=5,words=0", "synthetic:N=5,skew=nan",
        "synthetic:N=5,length=-1", "synthetic:N=5000000000"}) {
    const absl::Status status = DataSpec::Parse(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("write wordnet")) << bad;
  }
}

TEST(Lines, AreADocumentEach) {
  const TempDir dir;
  const std::string path = dir.Write("a.txt", "one two\n\nthree\r\nfour");
  EXPECT_THAT(Read(path), ElementsAre("one two", "", "three", "four"));
  EXPECT_THAT(Read("lines:" + dir.Write("a.tsv", "x\ty\n")), ElementsAre("x\ty"));
  ExpectError(dir.File("none.txt"), absl::StatusCode::kNotFound, "none.txt");
  ExpectError(dir.Write("cut.gz", "\x1f\x8b\x08"), absl::StatusCode::kDataLoss, "cut.gz, offset 3");
  ExpectError(dir.Write("cut.bz2", "BZh91AY&SY"), absl::StatusCode::kDataLoss, "cut.bz2, offset 10");
}

TEST(WordNet, IsItsGlosses) {
  const Texts documents = Read("wordnet");
  ASSERT_EQ(documents.size(), 117659u);
  EXPECT_EQ(documents[1], "an entity that has physical existence  ");
}

TEST(WordNet, NamesTheLineThatIsWrong) {
  const TempDir dir;
  for (const char* part : {"data.verb", "data.adj", "data.adv"}) dir.Write(part, "");
  dir.Write("data.noun", "  1 licence\n001 n | a thing\n002 n 03\n");
  ExpectError("wordnet:" + dir.File("."), absl::StatusCode::kDataLoss, "data.noun, line 3");
  ExpectError("wordnet:" + dir.File("nowhere"), absl::StatusCode::kNotFound,
              "install the package wordnet-base");
}

TEST(WikiText, CutsAtTitles) {
  const TempDir dir;
  const std::string path =
      dir.Write("w",
                " \n = Anarchism = \n \n Text = here . \n = no title = \n \n = = Section = = \n"
                " More \n \n = B = \n x\n");
  EXPECT_THAT(
      Read("wikitext:" + path),
      ElementsAre(" = Anarchism = \n \n Text = here . \n = no title = \n \n = = Section = = \n More \n \n",
                  " = B = \n x\n"));
  EXPECT_THAT(Read("wikitext:" + dir.Write("v", "before\n\n= T =")), ElementsAre("before\n\n", "= T =\n"));
  EXPECT_THAT(Read("wikitext:" + dir.Write("e", " \n\n")), ElementsAre());
}

constexpr char kDump[] = R"(<mediawiki xmlns="x" a='>'>
  <siteinfo><sitename>Wiki &amp; Co</sitename><!-- <page> --></siteinfo>
  <page>
    <title>Caf&#233; &lt;1&gt;</title> <ns>0</ns> <id>1</id>
    <revision><text bytes="9">old</text></revision>
    <revision><contributor><username>Bob</username></contributor>
      <text xml:space="preserve">'''A''' [[link]] &quot;q&quot; &#x1F600;
second <![CDATA[<b> & ]]]></text></revision>
  </page>
  <page><title>Talk</title><ns>1</ns><revision><text>not here</text></revision></page>
  <page><title>R</title><ns>0</ns><redirect title="Caf" /><revision><text>#REDIRECT</text></revision></page>
  <page><title>Empty</title><ns>0</ns><revision><text deleted="deleted" /></revision></page>
</mediawiki>
)";

TEST(Wikipedia, IsTheArticlesOfADump) {
  const TempDir dir;
  EXPECT_THAT(
      Read("wikipedia:" + dir.Write("d.xml", kDump)),
      ElementsAre("Caf\xc3\xa9 <1>\n'''A''' [[link]] \"q\" \xf0\x9f\x98\x80\nsecond <b> & ]", "Empty\n"));
}

TEST(Wikipedia, NamesTheLineThatIsWrong) {
  const TempDir dir;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"no xml", "line 1: syntax error at column 1; is it an XML dump of MediaWiki?"},
      {"<a>\n<page>\n", "inside of <page>, which begins at line 2; it is truncated"},
      {"<a>\n</b></a>", "line 2: </b> closes <a> of line 1"},
      {"</a>", "line 1: not well-formed (invalid token) at column 2; is it"},
      {"<a>\n\n&nbsp;</a>", "line 3: unknown entity &nbsp;"},
      {"<a>&#xD800;</a>", "unknown entity"},
      {"<a>&#0;</a>", "unknown entity"},
      {"<a>&#99999999999;</a>", "unknown entity"},
      {"<a>AT&T and other companies</a>", "line 1: not well-formed (invalid token) at column 8"},
      {"<a>\n<b <c></a>", "line 2: not well-formed (invalid token) at column 4"},
      {"<a>< /></a>", "line 1: not well-formed (invalid token) at column 5"},
      {"<page><page>", "<page> inside of <page>"},
      {"<a></a><!-- ", "ends inside of a tag"},
      {"<!DOCTYPE a [<!ENTITY b \"c\">]><a/>", "document type"},
      {"<a/><b/>", "line 1: junk after document element"},
      {"<a>\xff</a>", "line 1: not well-formed (invalid token) at column 4"},
      {"<!DOCTYPE a SYSTEM \"a.dtd\"><a>&b;</a>", "unknown entity &b;"},
      {"", "no element found"},
      {"<a>\n<title>x", "ends at offset 13 inside of <title>, which begins at line 2"},
      {"<a><![CDATA[x", "ends at offset 14 inside of <a>"},
  };
  for (const auto& [text, says] : cases) {
    ExpectError("wikipedia:" + dir.Write("bad.xml", text), absl::StatusCode::kDataLoss, says);
  }
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "<a>";
  ExpectError("wikipedia:" + dir.Write("deep.xml", deep), absl::StatusCode::kDataLoss, "nested deeper");
}

// "A billion laughs": a few lines of entities that would expand to gigabytes.
TEST(Wikipedia, RefusesEntitiesThatExpand) {
  std::string text = "<!DOCTYPE mediawiki [\n<!ENTITY lol0 \"lol\">\n";
  for (int i = 1; i < 10; ++i) {
    text += Join("<!ENTITY lol", i, " \"");
    for (int k = 0; k < 10; ++k) text += Join("&lol", i - 1, ";");
    text += "\">\n";
  }
  text += "]>\n<mediawiki><page><title>T</title><text>&lol9;</text></page></mediawiki>\n";
  const TempDir dir;
  ExpectError("wikipedia:" + dir.Write("laughs.xml", text), absl::StatusCode::kDataLoss,
              "line 1: a document type with definitions");
}

// A token that expat must see as a whole does not fill the memory.
TEST(Wikipedia, RefusesLongTags) {
  const TempDir dir;
  for (const char* begin : {"<!-- ", "<a b='", "<?a ", "<!DOCTYPE a SYSTEM '", "<a><b x='y' ", "<"}) {
    const std::string line(100'000, 'x');
    std::string text = begin;
    for (int i = 0; i < 40; ++i) text += line + "\n";
    Texts documents;
    const absl::Status status = ReadInto("wikipedia:" + dir.Write("long.xml", text), &documents);
    EXPECT_FALSE(status.ok()) << begin;
    EXPECT_THAT(std::string(status.message()),
                testing::AnyOf(HasSubstr("longer than 1 MiB"), HasSubstr("not well-formed")))
        << begin;
  }
}

TEST(Synthetic, DocumentsDependOnTheirNumberOnly) {
  const Texts few = Read("synthetic:N=50,words=1000,seed=3"),
              many = Read("synthetic:N=500,words=1000,seed=3");
  ASSERT_EQ(many.size(), 500u);
  EXPECT_EQ(few, Texts(many.begin(), many.begin() + 50));
  EXPECT_NE(Read("synthetic:N=50,words=1000,seed=4"), few);
  const auto counts = CountWords(*DataSpec::Parse("synthetic:N=5000,words=300,length=10,skew=1"), 2, true);
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->words.size(), 300u);  // no two ranks have one word
  uint64_t words = 0;
  for (const uint64_t count : counts->counts) words += count;
  EXPECT_NEAR(static_cast<double>(words) / 5000, 10, 0.5);
  const auto top = MostFrequent(*counts, 2);
  EXPECT_NEAR(static_cast<double>(counts->counts[top[0]]) / static_cast<double>(counts->counts[top[1]]), 2,
              0.2);
}

TEST(Collection, EveryDocumentIsSeenOnceByAnyNumberOfThreads) {
  const DataSpec spec = *DataSpec::Parse("synthetic:N=40000,words=100");
  for (const int threads : {1, 3}) {
    std::vector<std::vector<uint64_t>> seen(static_cast<size_t>(threads));
    const PassOptions pass{threads, true, "", 100, 39000};
    const absl::Status status = ForBatches(spec, pass, [&](int thread, const Batch& batch) {
      for (size_t i = 0; i < batch.size(); ++i) seen[static_cast<size_t>(thread)].push_back(batch.first + i);
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    std::vector<uint64_t> all;
    for (const auto& part : seen) all.insert(all.end(), part.begin(), part.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), 38900u);
    EXPECT_EQ(all.front(), 100u);
    EXPECT_EQ(all.back(), 38999u);
  }
}

TEST(Collection, AnErrorEndsThePass) {
  const TempDir dir;
  const DataSpec spec = *DataSpec::Parse("wikipedia:" + dir.Write("bad.xml", std::string(kDump) + "</x>"));
  EXPECT_EQ(CountWords(spec, 3, true).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Index::Load(spec, Shard{}, {5, 2, true}).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Collection, StopWordsAreTheMostFrequentAndTheSameForAll) {
  const TempDir dir;
  const std::string data = dir.Write("d.txt", "the a the\nthe cat a b\nsat the b\n");
  const auto counts = CountWords(*DataSpec::Parse(data), 1, true);
  ASSERT_TRUE(counts.ok());
  Texts top;
  for (const uint32_t word : MostFrequent(*counts, 3)) top.emplace_back(counts->words.word(word));
  EXPECT_THAT(top, ElementsAre("the", "a", "b"));
  uint64_t fingerprint = 0;
  for (uint32_t shard = 0; shard < 3; ++shard) {
    const auto index = Index::Load(*DataSpec::Parse(data), Shard{shard, 3}, {3, 2, true});
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ((*index)->stop_words().size(), 3u);
    EXPECT_EQ((*index)->words().size(), shard == 0 ? 0u : 1u);
    if (shard > 0) {
      EXPECT_EQ((*index)->fingerprint(), fingerprint);
    }
    fingerprint = (*index)->fingerprint();
  }
  EXPECT_NE((*Index::Load(*DataSpec::Parse(data), Shard{}, {2, 1, true}))->fingerprint(), fingerprint);
  EXPECT_EQ(Index::Load(*DataSpec::Parse(data), Shard{0, 4}, {3, 1, true}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CountWords(*DataSpec::Parse(dir.Write("e.txt", "")), 1, true).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Collection, FingerprintsTellOrderAndBoundariesOfDocuments) {
  const TempDir dir;
  const auto fingerprint = [&](const std::string& text, int threads = 1) {
    return Fingerprint(*CountWords(*DataSpec::Parse(dir.Write("d.txt", text)), threads, true), 1);
  };
  const uint64_t whole = fingerprint("a b\nc d\ne f\n");
  EXPECT_EQ(fingerprint("a b\nc d\ne f\n", 3), whole);
  EXPECT_NE(fingerprint("c d\na b\ne f\n"), whole);  // order
  EXPECT_NE(fingerprint("a\nb c d\ne f\n"), whole);  // boundaries
}

TEST(Collection, OneThatChangesBetweenTheReadingsIsAnError) {
  const TempDir dir;
  const std::string before = "a b\nc d\na c\nb d\n";
  const DataSpec spec = *DataSpec::Parse(dir.Write("d.txt", before));
  const auto load = [&](const std::string& text, uint32_t shard) {
    dir.Write("d.txt", before);
    WordCounts counts = *CountWords(spec, 1, true);
    dir.Write("d.txt", text);
    return Index::LoadCounted(spec, Shard{shard, 2}, {0, 1, true}, std::move(counts)).status();
  };
  EXPECT_TRUE(load(before, 0).ok());
  EXPECT_TRUE(load(before, 1).ok());
  for (const auto& [text, shard] :
       std::vector<std::pair<std::string, uint32_t>>{{"a b\nc new\na c\nb d\n", 0},  // an unknown word
                                                     {"a b\n", 0},                   // fewer documents
                                                     {"a b\nc d\na c\n", 1},  // the same, of the last shard
                                                     {"a b\nc d\na c\nb d\nd\n", 1}}) {  // more
    const absl::Status status = load(text, shard);
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << text << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("d.txt' changed while it was read"));
  }
}

TEST(Collection, MoreDocumentsThanItMayHaveAreAnErrorAndNotCutOff) {
  const DataSpec spec = *DataSpec::Parse("synthetic:N=11,words=5");
  PassOptions pass{.threads = 1, .quiet = true};
  EXPECT_GT(pass.end, pass.most);
  const auto nothing = [](int, const Batch&) { return absl::OkStatus(); };
  pass.most = 10;
  const absl::Status status = ForBatches(spec, pass, nothing);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 10 documents"));
  pass.most = 11;
  EXPECT_TRUE(ForBatches(spec, pass, nothing).ok());
}

TEST(Offline, AFileIsReplacedOnlyByAWholeOne) {
  const TempDir dir;
  const std::string out = dir.Write("out.txt", "precious\n");
  OfflineOptions options;
  options.data = "wikipedia:" + dir.Write("bad.xml", std::string(kDump) + "</x>");
  EXPECT_EQ(WriteDocuments(options, out).code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Read(out), ElementsAre("precious"));
  options.data = "synthetic:N=3,words=5";
  EXPECT_TRUE(WriteDocuments(options, out).ok());
  EXPECT_EQ(Read(out), Read(options.data));
  // Nothing else is left in the folder.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.File(".")), {}), 2);
  const std::string device = dir.File("device");
  std::filesystem::create_symlink("/dev/null", device);
  EXPECT_TRUE(WriteDocuments(options, device).ok());
  EXPECT_TRUE(std::filesystem::is_character_file(device));
}

TEST(Offline, WhatIsGeneratedReadsTheSame) {
  const TempDir dir;
  OfflineOptions options;
  options.data = "synthetic:N=1000,words=50,seed=9";
  const absl::Status written = WriteDocuments(options, dir.File("out.txt"));
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(Read(dir.File("out.txt")), Read(options.data));
  EXPECT_EQ(WriteDocuments(options, dir.File("no/such/folder.txt")).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace curtail::setalgebra
