// SPDX-License-Identifier: Apache-2.0
//
// stream.h - the state of one call on one connection, and the table in which a frame finds it.
//
// Thread-compatible, as all of a session.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "curtail/wire/encoding.h"
#include "curtail/wire/internal/frame.h"
#include "curtail/wire/internal/messages.h"
#include "curtail/wire/metadata.h"
#include "curtail/wire/session.h"

namespace curtail::wire::internal {

// How a server's call ends, kept while messages are still queued ahead of it.
struct CallResult {
  absl::Status status;
  Metadata trailing;
};

struct Stream;

// The fields of a stream that hold no memory of their own: a used stream begins anew when they are assigned.
struct StreamState {
  StreamId id = 0;
  void* tag = nullptr;
  Stream* bucket_next = nullptr;  // StreamTable's, then StreamPool's
  // Links of the one queue it may stand in: streams that wait to be opened, that have DATA to send, or that have left.
  Stream* queue_previous = nullptr;
  Stream* queue_next = nullptr;
  class StreamQueue* in_queue = nullptr;

  bool known = false;      // the owner knows this stream and is owed an OnCallEnd
  bool done = false;       // OnCallEnd was called, or is not owed
  bool closed = false;     // no longer in the table
  bool unary = false;      // client: one message is all of the request
  bool unusual = false;    // DATA is counted against content-length, or belongs to no gRPC request
  bool waiting = false;    // client: HEADERS not yet sent, the peer takes no more streams at a time
  bool sent_head = false;  // server: HEADERS sent
  bool got_head = false;   // client: the response's (final) HEADERS have arrived
  bool ending = false;     // no more messages will be queued: after them END_STREAM or trailers
  bool sent_end = false;
  bool got_end = false;
  bool head_only = false;                        // HTTP: the request was a HEAD
  bool held = false;                             // the owner wants no more for now: no credit
  bool unknown_encoding = false;                 // the peer names one that is not supported
  Encoding encoding = Encoding::kIdentity;       // of the peer's compressed messages
  Encoding send_encoding = Encoding::kIdentity;  // of our own
  bool refuse_compressed = false;                // the trailers tell which encodings are accepted
  // Client: of the response's head. Server: of the answer that a request which is not gRPC gets at its end.
  int16_t http_status = 0;

  uint32_t head_bytes = 0;  // server: of the request's header fields
  // Client: the call's own limit for a message.
  size_t max_message_bytes = SIZE_MAX;
  uint32_t uncredited = 0;  // bytes received for which no WINDOW_UPDATE was sent
  // The sum of the peer's WINDOW_UPDATEs, less the bytes sent. With the initial window, which SETTINGS change for
  // all streams at once, it is the stream's window; that may be negative (RFC 9113, 6.9.2).
  int64_t send_credit = 0;
};

// A Stream is one call. It is open while it is in the session's StreamTable. A closed one stays an object until no event
// can be running on it (see http2.cc, R2).
struct Stream : StreamState {
  MessageReader reader;
  SendQueue queue;
  int64_t content_left;                       // of content-length, while `unusual`; negative: not announced
  std::unique_ptr<RequestHead> waiting_head;  // client, while `waiting`
  std::unique_ptr<CallResult> result;         // server, while `ending` and the queue is not empty
};

// A StreamQueue is a doubly linked list of streams through links of their own.
class StreamQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }
  Stream* front() const { return first_; }
  void Push(Stream* s) {
    s->in_queue = this;
    s->queue_previous = last_;
    s->queue_next = nullptr;
    (last_ != nullptr ? last_->queue_next : first_) = s;
    last_ = s;
    ++size_;
  }
  void Remove(Stream* s) {
    (s->queue_previous != nullptr ? s->queue_previous->queue_next : first_) = s->queue_next;
    (s->queue_next != nullptr ? s->queue_next->queue_previous : last_) = s->queue_previous;
    s->in_queue = nullptr;
    --size_;
  }
  Stream* Pop() {
    Stream* s = first_;
    Remove(s);
    return s;
  }

 private:
  Stream* first_ = nullptr;
  Stream* last_ = nullptr;
  size_t size_ = 0;
};

// A StreamTable finds streams by id. Ids count up in steps of two, so the low bits spread them evenly. Memory comes with
// the first stream.
class StreamTable {
 public:
  Stream* Find(StreamId id) const {
    if (buckets_.empty()) return nullptr;
    Stream* s = buckets_[Bucket(id)];
    while (s != nullptr && s->id != id) s = s->bucket_next;
    return s;
  }
  // REQUIRES: no stream of that id is there.
  void Insert(Stream* s) {
    if (size_ >= buckets_.size()) [[unlikely]]
      Grow();
    Stream*& bucket = buckets_[Bucket(s->id)];
    s->bucket_next = bucket;
    bucket = s;
    ++size_;
  }
  void Erase(Stream* s) {
    Stream** link = &buckets_[Bucket(s->id)];
    while (*link != s) link = &(*link)->bucket_next;
    *link = s->bucket_next;
    --size_;
  }
  size_t size() const { return size_; }
  // Any stream, or null when there is none.
  Stream* Any() const;
  // The ids of all streams, in order.
  std::vector<StreamId> Ids() const;
  template <class Visit>
  void ForEach(Visit visit) const {
    for (Stream* s : buckets_) {
      for (; s != nullptr; s = s->bucket_next) visit(s);
    }
  }

 private:
  size_t Bucket(StreamId id) const { return (static_cast<uint32_t>(id) >> 1) & (buckets_.size() - 1); }
  void Grow();

  std::vector<Stream*> buckets_;  // a power of two of them, or none
  size_t size_ = 0;
};

// A StreamPool keeps the memory of streams that are over for those to come.
class StreamPool {
 public:
  StreamPool() = default;
  ~StreamPool();
  StreamPool(const StreamPool&) = delete;
  StreamPool& operator=(const StreamPool&) = delete;

  Stream* New() {
    if (free_ == nullptr) [[unlikely]]
      return std::make_unique<Stream>().release();  // owned by the session until Free()
    Stream* s = free_;
    free_ = s->bucket_next;
    --kept_;
    static_cast<StreamState&>(*s) = StreamState();  // Free() has seen to the rest
    return s;
  }
  void Free(Stream* s) {
    if (kept_ == kMaxKept) [[unlikely]] {
      const std::unique_ptr<Stream> owned(s);
      return;
    }
    s->reader.Reset();
    s->queue.Clear();
    if (s->waiting_head != nullptr) [[unlikely]]
      s->waiting_head.reset();
    if (s->result != nullptr) [[unlikely]]
      s->result.reset();
    s->bucket_next = free_;
    free_ = s;
    ++kept_;
  }

 private:
  // Streams kept for reuse on one connection, some 250 bytes each.
  static constexpr size_t kMaxKept = 1024;

  Stream* free_ = nullptr;
  size_t kept_ = 0;
};

}  // namespace curtail::wire::internal
