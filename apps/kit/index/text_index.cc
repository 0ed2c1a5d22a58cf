// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A text is a document. Its boolean term "Q" + id finds it again, its value 0 is the id, by which Xapian sorts. A tag is
// the boolean term "T" + tag, the number is value 1.
// Xapian's databases are for one thread each: one writes, under a mutex, and readers are pooled. A reader sees the commit
// that it last opened, so each query begins with reopen(), which reads one small file. A commit that frees the blocks
// under a running query ends it with DatabaseModifiedError; then the query begins again. A query, too, is for one thread: copies
// share a part, whose users Xapian counts without a lock.
//
// A query of a word that very many texts have must not look at all of them:
//
//  - The newest are found from the last block on (index_blocks.h).
//  - A text that has each word once has the least score there is, so of these the newest are the best. A text that repeats a
//    word has the boolean term "R" + word, and those alone are looked at for their scores.
#include "apps/kit/index/text_index.h"

#include <xapian.h>

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "apps/kit/index/index_blocks.h"
#include "apps/kit/index/words.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

constexpr Xapian::valueno kIdSlot = 0, kNumberSlot = 1;
constexpr int kFreeTries = 2;
// Metadata: all documents are noted in blocks, and have the terms for words that they repeat.
constexpr char kFormatKey[] = "format", kFormat[] = "2";
constexpr unsigned kMostWordBytes = 240;  // Xapian's limit is 245

std::string TermOf(uint64_t id) { return Join("Q", id); }
std::string TermOf(std::string_view tag) { return Join("T", tag); }

// Big-endian, so that the order of the bytes is that of the ids.
std::string BytesOf(uint64_t id) {
  std::string bytes(8, '\0');
  for (int i = 7; i >= 0; --i, id >>= 8) bytes[static_cast<size_t>(i)] = static_cast<char>(id & 0xff);
  return bytes;
}
uint64_t IdOf(const std::string& bytes) {
  uint64_t id = 0;
  for (const char c : bytes) id = id << 8 | static_cast<unsigned char>(c);
  return id;
}

// The words of a text, as they stand in the index; those over `most` bytes are left out.
Xapian::Document WordsOf(const std::string& text, unsigned most) {
  Xapian::TermGenerator words;
  words.set_max_word_length(most);
  words.index_text_without_positions(text);
  return words.get_document();
}

// Returns whether there are some.
bool AddRepeatedWords(Xapian::Document& document) {
  std::vector<std::string> repeated;
  for (Xapian::TermIterator it = document.termlist_begin(); it != document.termlist_end(); ++it) {
    if (it.get_wdf() > 1) repeated.push_back("R" + *it);
  }
  for (const std::string& term : repeated) document.add_boolean_term(term);
  return !repeated.empty();
}

// A WordQuery asks for the words of a text. `all` finds documents with each word, `repeating` documents with a word twice.
struct WordQuery {
  Xapian::Query all, repeating;
  size_t count = 0;
  bool missing = false;  // the index cannot have one of the words
};

WordQuery QueryOf(const std::string& text) {
  const Xapian::Document words = WordsOf(text, UINT_MAX);
  std::vector<Xapian::Query> terms, repeated;
  WordQuery query;
  for (Xapian::TermIterator it = words.termlist_begin(); it != words.termlist_end(); ++it) {
    query.missing |= (*it).size() > kMostWordBytes;
    terms.emplace_back(*it);
    repeated.emplace_back("R" + *it);
  }
  query.count = terms.size();
  if (query.missing) return query;
  query.all = Xapian::Query(Xapian::Query::OP_AND, terms.begin(), terms.end());
  query.repeating = Xapian::Query(Xapian::Query::OP_OR, repeated.begin(), repeated.end());
  return query;
}

bool HasBounds(const TextIndex::Query& asked) { return asked.least != 0 || asked.greatest != UINT64_MAX; }
bool IsNarrowed(const TextIndex::Query& asked) { return !asked.tag.empty() || HasBounds(asked); }

// `words` with the tag and the number that are asked for; scores stay.
void Narrow(const TextIndex::Query& asked, Xapian::Query* words) {
  if (!asked.tag.empty()) {
    const Xapian::Query tagged(TermOf(asked.tag));
    *words = Xapian::Query(Xapian::Query::OP_FILTER, *words, tagged);
  }
  if (HasBounds(asked)) {
    const Xapian::Query between(Xapian::Query::OP_VALUE_RANGE, kNumberSlot, BytesOf(asked.least),
                                BytesOf(asked.greatest));
    *words = Xapian::Query(Xapian::Query::OP_FILTER, *words, between);
  }
}

using Hits = std::vector<TextIndex::Hit>;

// The better of two is first, as everywhere: of equal scores the newer.
void KeepBest(uint32_t limit, Hits* hits) {
  std::ranges::sort(*hits, [](const TextIndex::Hit& a, const TextIndex::Hit& b) {
    return a.score != b.score ? a.score > b.score : a.id > b.id;
  });
  if (hits->size() > limit) hits->resize(limit);
}

// Appends the best. Looks at all that match.
void FindBest(const Xapian::Database& db, const Xapian::Query& query, bool scored, uint32_t limit,
              Hits* hits) {
  Xapian::Enquire enquire(db);
  enquire.set_query(query);
  if (scored) {
    // The logarithm of how often each word is there, and nothing of the collection: scores of the parts of an index
    // compare. All texts have all words, so how rare these are says little.
    enquire.set_weighting_scheme(Xapian::TfIdfWeight("lnn"));
    enquire.set_sort_by_relevance_then_value(kIdSlot, /*reverse=*/true);
  } else {
    enquire.set_weighting_scheme(Xapian::BoolWeight());
    enquire.set_sort_by_value(kIdSlot, /*reverse=*/true);
  }
  const Xapian::MSet found = enquire.get_mset(0, limit);
  for (Xapian::MSetIterator it = found.begin(); it != found.end(); ++it) {
    hits->push_back({IdOf(it.get_document().get_value(kIdSlot)), it.get_weight()});
  }
}

// Sets `hits` to the newest, of which all that match have the same score. `query` leaves out ids from `before` on.
void FindNewest(const Xapian::Database& db, const Xapian::Query& query, bool scored, uint64_t before,
                uint32_t limit, Hits* hits) {
  Xapian::docid end = db.get_doccount() == 0 ? 0 : BlockOf(db.get_lastdocid()) + 1;
  while (end > 0 && ReadBlock(db, end - 1).least >= before) --end;
  for (Xapian::docid width = 1; end > 0 && limit > 0; width *= 8) {
    Xapian::docid begin = end - std::min(end, width);
    while (begin > 0 && ReadBlock(db, begin).empty()) --begin;
    DocumentRange range(begin * kBlock + 1, end * kBlock);
    FindBest(db, Xapian::Query(Xapian::Query::OP_FILTER, query, Xapian::Query(&range)), scored, limit, hits);
    KeepBest(limit, hits);
    if (hits->size() == limit && hits->back().id > ReadBlock(db, begin).greatest_before) return;
    end = begin;
  }
}

// Xapian's exceptions end here.
template <class F>
absl::Status Guard(F f) {
  try {
    return f();
  } catch (const Xapian::DatabaseModifiedError& error) {
    return absl::AbortedError(error.get_msg());
  } catch (const Xapian::DatabaseCorruptError& error) {
    return absl::DataLossError(Join("the index is damaged: ", error.get_msg()));
  } catch (const Xapian::Error& error) {
    return absl::UnavailableError(Join("the index: ", error.get_msg(), " ",
                                       error.get_error_string() == nullptr ? "" : error.get_error_string()));
  }
}

}  // namespace

struct TextIndex::Impl {
  std::string folder;

  // Held during a commit: its holders may block.
  Mutex write_mu;
  Xapian::WritableDatabase writer CURTAIL_GUARDED_BY(write_mu);

  Mutex read_mu;
  std::vector<std::unique_ptr<Xapian::Database>> readers CURTAIL_GUARDED_BY(read_mu);  // idle

  std::unique_ptr<Xapian::Database> TakeReader() {
    {
      const MutexLock lock(read_mu);
      if (!readers.empty()) {
        auto reader = std::move(readers.back());
        readers.pop_back();
        return reader;
      }
    }
    return std::make_unique<Xapian::Database>(folder);
  }
  void GiveBack(std::unique_ptr<Xapian::Database> reader) {
    constexpr size_t kMostIdle = 16;
    const MutexLock lock(read_mu);
    if (readers.size() < kMostIdle) readers.push_back(std::move(reader));
  }

  // `even`: all that has all words and repeats none has the same score.
  absl::Status Search(const WordQuery& words, bool even, const Query& asked, Hits* hits) {
    std::unique_ptr<Xapian::Database> reader = TakeReader();
    reader->reopen();
    const uint64_t before = asked.newest && asked.before != 0 ? asked.before : UINT64_MAX;
    if (asked.newest) {
      Xapian::Query query = words.all;
      if (before != UINT64_MAX)
        query &= Xapian::Query(Xapian::Query::OP_VALUE_LE, kIdSlot, BytesOf(before - 1));
      FindNewest(*reader, query, /*scored=*/false, before, asked.limit, hits);
    } else if (even) {
      Hits repeating;
      const Xapian::Query those(Xapian::Query::OP_FILTER, words.all, words.repeating);
      FindBest(*reader, those, /*scored=*/true, asked.limit, &repeating);
      const Xapian::Query others(Xapian::Query::OP_AND_NOT, words.all, words.repeating);
      FindNewest(*reader, others, /*scored=*/true, before, asked.limit, hits);
      hits->insert(hits->end(), repeating.begin(), repeating.end());
      KeepBest(asked.limit, hits);
    } else {
      FindBest(*reader, words.all, /*scored=*/true, asked.limit, hits);
    }
    GiveBack(std::move(reader));
    return absl::OkStatus();
  }

  // Search(), again while commits end it, at last while none can.
  absl::Status SearchOneVersion(const WordQuery& words, bool even, const Query& asked, Hits* hits) {
    const auto search = [&] {
      hits->clear();
      return Guard([&] { return Search(words, even, asked, hits); });
    };
    for (int tries = kFreeTries; tries > 0; --tries) {
      absl::Status status = search();
      if (!absl::IsAborted(status)) return status;
    }
    const MutexLock lock(write_mu);
    return search();
  }

  // An index of an older version becomes one of this, in one transaction.
  void Upgrade() CURTAIL_REQUIRES(write_mu) {
    if (writer.get_metadata(kFormatKey) == kFormat) return;
    const Xapian::Database old(folder);
    writer.begin_transaction();
    for (Xapian::PostingIterator it = old.postlist_begin(""); it != old.postlist_end(""); ++it) {
      Xapian::Document document = old.get_document(*it);
      NoteInBlock(writer, *it, IdOf(document.get_value(kIdSlot)));
      if (AddRepeatedWords(document)) writer.replace_document(*it, document);
    }
    writer.set_metadata(kFormatKey, kFormat);
    writer.commit_transaction();
  }
};

TextIndex::TextIndex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextIndex::~TextIndex() = default;

absl::StatusOr<std::unique_ptr<TextIndex>> TextIndex::Open(const std::string& folder, bool sync) {
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  absl::Status opened = Guard([&] {
    const int flags = Xapian::DB_CREATE_OR_OPEN | (sync ? 0 : Xapian::DB_NO_SYNC);
    const MutexLock lock(impl->write_mu);
    impl->writer = Xapian::WritableDatabase(folder, flags);
    impl->Upgrade();
    return absl::OkStatus();
  });
  if (!opened.ok()) return absl::Status(opened.code(), Join(folder, ": ", Message(opened)));
  return std::unique_ptr<TextIndex>(new TextIndex(std::move(impl)));
}

absl::Status TextIndex::Apply(std::span<const Change> changes) {
  return Guard([&] {
    const MutexLock lock(impl_->write_mu);
    Xapian::WritableDatabase& db = impl_->writer;
    db.begin_transaction();
    try {
      for (const Change& change : changes) {
        const std::string term = TermOf(change.id);
        if (change.remove) {
          db.delete_document(term);
          continue;
        }
        Xapian::Document document = WordsOf(Folded(change.text), kMostWordBytes);
        document.add_boolean_term(term);
        document.add_value(kIdSlot, BytesOf(change.id));
        document.add_value(kNumberSlot, BytesOf(change.number));
        for (const std::string_view tag : change.tags) document.add_boolean_term(TermOf(tag));
        AddRepeatedWords(document);
        NoteInBlock(db, db.replace_document(term, document), change.id);
      }
      db.commit_transaction();
    } catch (...) {
      db.cancel_transaction();
      throw;
    }
    return absl::OkStatus();
  });
}

absl::Status TextIndex::Find(const Query& query, std::vector<Hit>* hits) const {
  hits->clear();
  const std::string folded = Folded(query.text);
  WordQuery words = QueryOf(folded);
  if (words.count == 0 && IsNarrowed(query)) return FindAll(query, hits);
  if (words.count == 0 || words.count > kMostWords) {
    return absl::InvalidArgumentError(
        Join("the query has ", words.count, " different words; 1 to ", kMostWords, " are taken"));
  }
  if (words.missing) return absl::OkStatus();
  // Texts of older versions have their words as they were written.
  const WordQuery as_written = QueryOf(std::string(query.text));
  const bool even = as_written.missing || as_written.count == words.count;
  if (!as_written.missing && as_written.all.serialise() != words.all.serialise()) {
    words.all = Xapian::Query(Xapian::Query::OP_MAX, words.all, as_written.all);
    words.repeating |= as_written.repeating;
  }
  Narrow(query, &words.all);
  return impl_->SearchOneVersion(words, even, query, hits);
}

absl::Status TextIndex::FindAll(Query query, std::vector<Hit>* hits) const {
  query.newest = true;
  WordQuery all;
  all.all = Xapian::Query(std::string());  // not MatchAll, of which all threads would have to count the users
  Narrow(query, &all.all);
  return impl_->SearchOneVersion(all, /*even=*/true, query, hits);
}

}  // namespace curtail::apps
