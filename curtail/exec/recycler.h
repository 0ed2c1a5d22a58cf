// SPDX-License-Identifier: Apache-2.0
//
// recycler.h - used objects, kept with their memory for the next who needs one of their type.
//
// Use it for what every request needs: calls, messages, buffers, coroutine frames. A request in a steady stream
// then allocates nothing. Not for objects that are rare, or that differ much in size.
//
// A thread keeps a few objects for itself; what it has too many of goes to a depot that all threads share, in
// lots, and it fetches a lot when it has none (magazines and depot: Bonwick and Adams, USENIX 2001). So objects may
// be taken on one thread and given back on another, and the depot's mutex is taken once in kLot times at most.
// What a burst leaves behind is bounded: kDepot objects a type, of at most kKeptBytes of buffers each, if their
// type looks after that (Recycle() below).
//
// Thread safety: all functions from any thread, also while it ends. An object belongs to whoever took it.
// Memory ordering: what happened before Give() is visible to whoever takes the object: it is the same thread, or
// the depot's mutex lies between.
// Under AddressSanitizer nothing is kept, so that it sees every use after Give().
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "curtail/base/mutex.h"

namespace curtail {

// Buffers larger than this are not kept.
inline constexpr size_t kKeptBytes = 64u << 10;

// Empties `buffer`, and frees its memory if that is more than is kept.
inline void EmptyForReuse(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeptBytes) std::string().swap(buffer);
}

#if defined(__SANITIZE_ADDRESS__)
#define CURTAIL_RECYCLES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CURTAIL_RECYCLES 0
#endif
#endif
#ifndef CURTAIL_RECYCLES
#define CURTAIL_RECYCLES 1
#endif

// T has bool Recycle(), which makes it as good as new but for the memory it holds; false: it holds too much, and
// goes.
template <class T>
class Recycler {
 public:
  struct Return {
    void operator()(T* object) const { Give(object); }
  };
  // Gives the object back at the end.
  using Lease = std::unique_ptr<T, Return>;

  static T* Take() {
#if CURTAIL_RECYCLES
    Shelf& shelf = shelf_;
    if (shelf.count > 0 || shelf.Fetch()) return shelf.objects[--shelf.count];
#endif
    return new T;
  }
  static void Give(T* object) {
    if (!CURTAIL_RECYCLES || !object->Recycle()) {
      delete object;
      return;
    }
    Shelf& shelf = shelf_;
    if (shelf.count >= shelf.limit && !shelf.MakeRoom()) return Store(&object, 1);
    shelf.objects[shelf.count++] = object;
  }
  static Lease Borrow() { return Lease(Take()); }

 private:
  static constexpr size_t kLot = 8;           // objects moved at a time
  static constexpr size_t kShelf = 2 * kLot;  // for one thread
  static constexpr size_t kDepot = 512;

  // What all threads share. Never destroyed: threads may outlive everything else.
  struct Depot {
    Mutex mu;
    T* objects[kDepot] CURTAIL_GUARDED_BY(mu);
    size_t count CURTAIL_GUARDED_BY(mu) = 0;
  };
  static Depot& depot() {
    static Depot* const depot = new Depot;
    return *depot;
  }

  // Moves `n` objects to the depot; what does not fit there goes.
  static void Store(T* const* objects, size_t n) {
    Depot& to = depot();
    {
      MutexLock lock(to.mu);
      for (; n > 0 && to.count < kDepot; --n) to.objects[to.count++] = objects[n - 1];
    }
    for (; n > 0; --n) delete objects[n - 1];
  }

  // What one thread keeps. Plain data, so that code that runs while the thread ends may look at it.
  struct Shelf {
    T* objects[kShelf];
    size_t count;
    size_t limit;  // 0 before the first use, and once the thread ends
    bool ended;

    // Takes some objects from the depot; false when there are none.
    bool Fetch() {
      if (!Open()) return false;
      Depot& from = depot();
      MutexLock lock(from.mu);
      while (count < kLot && from.count > 0) objects[count++] = from.objects[--from.count];
      return count > 0;
    }
    // False when this thread keeps nothing any more.
    bool MakeRoom() {
      if (!Open()) return false;
      if (count == kShelf) Store(objects + (count -= kLot), kLot);
      return true;
    }
    bool Open() {
      if (limit == 0 && !ended) {
        static thread_local const Sweeper sweeper;
        limit = kShelf;
      }
      return !ended;
    }
  };
  // Takes along what the thread kept when it ends.
  struct Sweeper {
    ~Sweeper() {
      Shelf& shelf = shelf_;
      shelf.ended = true;
      shelf.limit = 0;
      Store(shelf.objects, std::exchange(shelf.count, 0));
    }
  };

  static inline thread_local constinit Shelf shelf_{};
};

namespace internal {

template <size_t n>
struct Block {
  alignas(std::max_align_t) std::byte bytes[n];
  bool Recycle() { return true; }
};

}  // namespace internal

// Memory for one object of a size known to both; used again for others of about that size.
void* AllocateBlock(size_t bytes);
void FreeBlock(void* block, size_t bytes);

// A base class for what is made with new and deleted, each time for one request.
struct InBlock {
  static void* operator new(size_t bytes) { return AllocateBlock(bytes); }
  static void operator delete(void* block, size_t bytes) { FreeBlock(block, bytes); }
};

}  // namespace curtail
