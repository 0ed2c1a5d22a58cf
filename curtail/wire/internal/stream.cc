// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/stream.h"

#include <algorithm>

namespace curtail::wire::internal {
namespace {

constexpr size_t kFirstBuckets = 16;
// Streams kept for reuse on one connection, some 250 bytes each.
constexpr size_t kMaxKept = 1024;

}  // namespace

void StreamTable::Insert(Stream* s) {
  if (size_ >= buckets_.size()) Grow();
  Stream*& bucket = buckets_[Bucket(s->id)];
  s->bucket_next = bucket;
  bucket = s;
  ++size_;
}

void StreamTable::Erase(Stream* s) {
  Stream** link = &buckets_[Bucket(s->id)];
  while (*link != s) link = &(*link)->bucket_next;
  *link = s->bucket_next;
  --size_;
}

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

Stream* StreamPool::New() {
  if (free_ == nullptr) return std::make_unique<Stream>().release();  // owned by the session until Free()
  Stream* s = free_;
  free_ = s->bucket_next;
  --kept_;
  static_cast<StreamState&>(*s) = StreamState();  // Free() has seen to the rest
  return s;
}

void StreamPool::Free(Stream* s) {
  if (kept_ == kMaxKept) {
    const std::unique_ptr<Stream> owned(s);
    return;
  }
  s->reader.Reset();
  s->queue.Clear();
  s->waiting_head.reset();
  s->result.reset();
  s->bucket_next = free_;
  free_ = s;
  ++kept_;
}

}  // namespace curtail::wire::internal
