// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/index/index_blocks.h"

#include <algorithm>
#include <sstream>

#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

std::string KeyOf(Xapian::docid block) { return Join("block", block); }

}  // namespace

IndexBlock ReadBlock(const Xapian::Database& db, Xapian::docid block) {
  IndexBlock read;
  std::istringstream text(db.get_metadata(KeyOf(block)));
  text >> read.least >> read.greatest >> read.greatest_before;
  return text ? read : IndexBlock();
}

void NoteInBlock(Xapian::WritableDatabase& db, Xapian::docid document, uint64_t id) {
  const Xapian::docid number = BlockOf(document);
  IndexBlock block = ReadBlock(db, number);
  for (Xapian::docid last = number; block.empty() && last > 0; --last) {
    const IndexBlock before = ReadBlock(db, last - 1);
    if (before.empty()) continue;
    block.greatest_before = std::max(before.greatest, before.greatest_before);
    break;
  }
  if (block.least <= id && id <= block.greatest) return;
  block.least = std::min(block.least, id);
  block.greatest = std::max(block.greatest, id);
  db.set_metadata(KeyOf(number), Join(block.least, " ", block.greatest, " ", block.greatest_before));
}

}  // namespace curtail::apps
