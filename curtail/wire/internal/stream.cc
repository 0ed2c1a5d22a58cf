// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/stream.h"

#include <algorithm>

namespace curtail::wire::internal {
namespace {

constexpr size_t kFirstBuckets = 16;

}  // namespace

Stream* StreamTable::Any() const {
  if (size_ == 0) return nullptr;
  return *std::find_if(buckets_.begin(), buckets_.end(), [](const Stream* s) { return s != nullptr; });
}

std::vector<StreamId> StreamTable::Ids() const {
  std::vector<StreamId> ids;
  ids.reserve(size_);
  ForEach([&ids](const Stream* s) { ids.push_back(s->id); });
  std::sort(ids.begin(), ids.end());
  return ids;
}

void StreamTable::Grow() {
  std::vector<Stream*> old = std::move(buckets_);
  buckets_.assign(old.empty() ? kFirstBuckets : 2 * old.size(), nullptr);
  for (Stream* s : old) {
    while (s != nullptr) {
      Stream* next = s->bucket_next;
      Stream*& bucket = buckets_[Bucket(s->id)];
      s->bucket_next = bucket;
      bucket = s;
      s = next;
    }
  }
}

StreamPool::~StreamPool() {
  while (free_ != nullptr) {
    const std::unique_ptr<Stream> owned(free_);
    free_ = owned->bucket_next;
  }
}

}  // namespace curtail::wire::internal
