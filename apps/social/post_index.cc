// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A post is a document. Its boolean term "Q" + id finds it again, its value 0 is the id, by which Xapian sorts.
// Xapian's databases are for one thread each: one writes, under a mutex, and readers are pooled. A reader sees the commit
// that it last opened, so each query begins with reopen(), which reads one small file. A commit that frees the blocks
// under a running query ends it with DatabaseModifiedError; then the query begins again.
#include "apps/social/post_index.h"

#include <xapian.h>

#include <climits>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "apps/social/words.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"

namespace curtail::social {
namespace {

constexpr Xapian::valueno kIdSlot = 0;
constexpr int kTries = 8;
constexpr unsigned kMostWordBytes = 240;  // Xapian's limit is 245

std::string TermOf(uint64_t post) { return Join("Q", post); }

// Big-endian, so that the order of the bytes is that of the ids.
std::string BytesOf(uint64_t post) {
  std::string bytes(8, '\0');
  for (int i = 7; i >= 0; --i, post >>= 8) bytes[static_cast<size_t>(i)] = static_cast<char>(post & 0xff);
  return bytes;
}
uint64_t PostOf(const std::string& bytes) {
  uint64_t post = 0;
  for (const char c : bytes) post = post << 8 | static_cast<unsigned char>(c);
  return post;
}

// The words of a text, as they stand in the index; those over `most` bytes are left out.
Xapian::Document WordsOf(const std::string& text, unsigned most) {
  Xapian::TermGenerator words;
  words.set_max_word_length(most);
  words.index_text_without_positions(text);
  return words.get_document();
}

// All of them, or none if the index cannot have one.
std::optional<Xapian::Query> AllWordsOf(const std::string& text, size_t* count) {
  const Xapian::Document words = WordsOf(text, UINT_MAX);
  std::vector<Xapian::Query> terms;
  bool missing = false;
  for (Xapian::TermIterator it = words.termlist_begin(); it != words.termlist_end(); ++it) {
    missing |= (*it).size() > kMostWordBytes;
    terms.emplace_back(*it);
  }
  *count = terms.size();
  if (missing) return std::nullopt;
  return Xapian::Query(Xapian::Query::OP_AND, terms.begin(), terms.end());
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

struct PostIndex::Impl {
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

  absl::Status Search(const Xapian::Query& query, const Query& asked, std::vector<Hit>* hits) {
    std::unique_ptr<Xapian::Database> reader = TakeReader();
    reader->reopen();
    Xapian::Enquire enquire(*reader);
    enquire.set_query(query);
    if (asked.newest) {
      enquire.set_weighting_scheme(Xapian::BoolWeight());
      enquire.set_sort_by_value(kIdSlot, /*reverse=*/true);
    } else {
      // The logarithm of how often each word is there, and nothing of the collection: scores of the parts of an index
      // compare. All posts have all words, so how rare these are says little.
      enquire.set_weighting_scheme(Xapian::TfIdfWeight("lnn"));
      enquire.set_sort_by_relevance_then_value(kIdSlot, /*reverse=*/true);
    }
    const Xapian::MSet found = enquire.get_mset(0, asked.limit);
    for (Xapian::MSetIterator it = found.begin(); it != found.end(); ++it) {
      hits->push_back({PostOf(it.get_document().get_value(kIdSlot)), it.get_weight()});
    }
    GiveBack(std::move(reader));
    return absl::OkStatus();
  }
};

PostIndex::PostIndex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PostIndex::~PostIndex() = default;

absl::StatusOr<std::unique_ptr<PostIndex>> PostIndex::Open(const std::string& folder, bool sync) {
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  absl::Status opened = Guard([&] {
    const int flags = Xapian::DB_CREATE_OR_OPEN | (sync ? 0 : Xapian::DB_NO_SYNC);
    const MutexLock lock(impl->write_mu);
    impl->writer = Xapian::WritableDatabase(folder, flags);
    return absl::OkStatus();
  });
  if (!opened.ok()) return absl::Status(opened.code(), Join(folder, ": ", Message(opened)));
  return std::unique_ptr<PostIndex>(new PostIndex(std::move(impl)));
}

absl::Status PostIndex::Apply(std::span<const Change> changes) {
  return Guard([&] {
    const MutexLock lock(impl_->write_mu);
    Xapian::WritableDatabase& db = impl_->writer;
    db.begin_transaction();
    try {
      for (const Change& change : changes) {
        const std::string term = TermOf(change.post);
        if (change.remove) {
          db.delete_document(term);
          continue;
        }
        Xapian::Document document = WordsOf(Folded(change.text), kMostWordBytes);
        document.add_boolean_term(term);
        document.add_value(kIdSlot, BytesOf(change.post));
        db.replace_document(term, document);
      }
      db.commit_transaction();
    } catch (...) {
      db.cancel_transaction();
      throw;
    }
    return absl::OkStatus();
  });
}

absl::Status PostIndex::Find(const Query& query, std::vector<Hit>* hits) const {
  hits->clear();
  const std::string folded = Folded(query.text);
  size_t count;
  std::optional<Xapian::Query> all = AllWordsOf(folded, &count);
  if (count == 0 || count > kMostWords) {
    return absl::InvalidArgumentError(
        Join("the query has ", count, " different words; 1 to ", kMostWords, " are taken"));
  }
  if (!all) return absl::OkStatus();
  // Posts of older versions have their words as they were written.
  const std::optional<Xapian::Query> as_written = AllWordsOf(std::string(query.text), &count);
  if (as_written && as_written->serialise() != all->serialise()) {
    all = Xapian::Query(Xapian::Query::OP_MAX, *all, *as_written);
  }
  if (query.newest && query.before != 0) {
    all = *all & Xapian::Query(Xapian::Query::OP_VALUE_LE, kIdSlot, BytesOf(query.before - 1));
  }
  absl::Status status;
  int tries = kTries;
  do {
    hits->clear();
    status = Guard([&] { return impl_->Search(*all, query, hits); });
  } while (absl::IsAborted(status) && --tries > 0);
  return absl::IsAborted(status) ? absl::UnavailableError("the index changes too fast; try again") : status;
}

}  // namespace curtail::social
