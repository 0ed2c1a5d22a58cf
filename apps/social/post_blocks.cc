// SPDX-License-Identifier: Apache-2.0
#include "apps/social/post_blocks.h"

#include <algorithm>
#include <sstream>

#include "curtail/base/strings.h"

namespace curtail::social {
namespace {

std::string KeyOf(Xapian::docid block) { return Join("block", block); }

}  // namespace

PostBlock ReadBlock(const Xapian::Database& db, Xapian::docid block) {
  PostBlock read;
  std::istringstream text(db.get_metadata(KeyOf(block)));
  text >> read.least >> read.greatest >> read.greatest_before;
  return text ? read : PostBlock();
}

void NoteInBlock(Xapian::WritableDatabase& db, Xapian::docid document, uint64_t post) {
  const Xapian::docid number = BlockOf(document);
  PostBlock block = ReadBlock(db, number);
  for (Xapian::docid last = number; block.empty() && last > 0; --last) {
    const PostBlock before = ReadBlock(db, last - 1);
    if (before.empty()) continue;
    block.greatest_before = std::max(before.greatest, before.greatest_before);
    break;
  }
  if (block.least <= post && post <= block.greatest) return;
  block.least = std::min(block.least, post);
  block.greatest = std::max(block.greatest, post);
  db.set_metadata(KeyOf(number), Join(block.least, " ", block.greatest, " ", block.greatest_before));
}

}  // namespace curtail::social
