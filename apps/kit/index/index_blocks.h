// SPDX-License-Identifier: Apache-2.0
//
// index_blocks.h - where in an index the newest texts are.
//
// Documents are numbered as they come, which is about the order of their ids, but not quite. A block is kBlock numbers, and
// the index notes the least and the greatest id of each: a search for the newest begins at the last block, and ends where no
// older one can have a newer text. Exceptions are Xapian's.
#pragma once

#include <xapian.h>

#include <algorithm>
#include <cstdint>

namespace curtail::apps {

// Of the ids in a block.
struct IndexBlock {
  bool empty() const { return greatest == 0; }
  uint64_t least = UINT64_MAX, greatest = 0;
  uint64_t greatest_before = 0;  // of all blocks before it
};

inline constexpr Xapian::docid kBlock = 1024;
inline Xapian::docid BlockOf(Xapian::docid document) { return (document - 1) / kBlock; }

// An empty one if none was noted.
IndexBlock ReadBlock(const Xapian::Database& db, Xapian::docid block);
// Notes that a document has the id of a text. Documents with new numbers come one after the other.
void NoteInBlock(Xapian::WritableDatabase& db, Xapian::docid document, uint64_t id);

// Documents of these numbers, if an AND has it with words: those lead.
class DocumentRange final : public Xapian::PostingSource {
 public:
  DocumentRange(Xapian::docid first, Xapian::docid last) : first_(first), last_(last) {}

  void init(const Xapian::Database& db) override { at_ = 0, size_ = db.get_doccount(); }
  Xapian::doccount get_termfreq_min() const override { return 0; }
  Xapian::doccount get_termfreq_est() const override { return size_; }
  Xapian::doccount get_termfreq_max() const override { return size_; }
  void next(double) override { skip_to(at_ + 1, 0); }
  void skip_to(Xapian::docid to, double) override { at_ = std::max({at_, to, first_}); }
  bool at_end() const override { return at_ > last_; }
  Xapian::docid get_docid() const override { return at_; }

 private:
  const Xapian::docid first_, last_;
  Xapian::docid at_ = 0;
  Xapian::doccount size_ = 0;
};

}  // namespace curtail::apps
