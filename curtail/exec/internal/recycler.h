// SPDX-License-Identifier: Apache-2.0
//
// recycler.h - used objects, kept with their memory for the next user of their type.
//
// Use it for objects of every request: calls, messages, buffers, coroutine frames. A request in a
// steady stream then allocates nothing. Not for objects that are rare, or that differ much in size.
//
// A thread keeps a few objects for itself. It moves surplus objects in lots to a depot that all
// threads share, and fetches a lot when it has none. (These are magazines and depot: Bonwick and
// Adams, USENIX 2001.) One thread may therefore take an object and another give it back. A thread
// takes the depot's mutex once in kLot times at most. The rest of a burst is bounded: kDepot
// objects a type, of at most kKeptBytes of buffers each, if their type ensures that (Recycle()
// below).
//
// Thread safety: all functions from any thread, also while it ends. An object belongs to the code
// that took it.
// Memory ordering: a thread that takes an object sees all writes before Give(). It is the same
// thread, or the depot's mutex lies between. Under AddressSanitizer no object is kept, so that it
// sees every use after Give().
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "curtail/base/mutex.h"

namespace curtail {

// Buffers larger than this are not kept: 64 threads may keep a thousand objects of a type.
inline constexpr size_t kKeptBytes = 16u << 10;

// Empties `buffer`, and frees memory beyond kKeptBytes.
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

// T has bool Recycle(), which makes it as good as new but for its memory. False: it holds too much,
// and is deleted.
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

  // The part that all threads share. Never destroyed: threads may outlive everything else.
  struct Depot {
    Mutex mu;
    T* objects[kDepot] CURTAIL_GUARDED_BY(mu);
    size_t count CURTAIL_GUARDED_BY(mu) = 0;
  };
  static Depot& depot() {
    static Depot* const depot = new Depot;
    return *depot;
  }

  // Moves `n` objects to the depot; deletes objects that do not fit.
  static void Store(T* const* objects, size_t n) {
    Depot& to = depot();
    {
      MutexLock lock(to.mu);
      for (; n > 0 && to.count < kDepot; --n) to.objects[to.count++] = objects[n - 1];
    }
    for (; n > 0; --n) delete objects[n - 1];
  }

  // The objects of one thread. Plain data, so that code that runs while the thread ends may read
  // it.
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
    // False if this thread keeps no objects any more.
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
  // Moves the thread's objects to the depot when it ends.
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

// Memory for one object of a size that both calls know; reused for others of about that size.
void* AllocateBlock(size_t bytes);
void FreeBlock(void* block, size_t bytes);

// A base class for objects that one request makes with new and deletes.
struct InBlock {
  static void* operator new(size_t bytes) { return AllocateBlock(bytes); }
  static void operator delete(void* block, size_t bytes) { FreeBlock(block, bytes); }
};

}  // namespace curtail
