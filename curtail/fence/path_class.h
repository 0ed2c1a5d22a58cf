// SPDX-License-Identifier: Apache-2.0
//
// path_class.h - which path class each method of a server has: declared, or learned from its calls.
//
// A method declares the services that it may call, or the table learns them. A learned method is
// `unknown` until kLearned of its requests have ended. From then on its class is what its recent
// requests called: a service is added with the first call, and left out after kGeneration to twice
// as many whole requests without one. Requests that a deadline, an overload or their callers cut
// short leave none out: they may have ended before that call. The calls of a declared method are
// compared with its declaration.
//
// Everything here has a fixed bound: 63 services have a bit of their own, and 61 sets of services
// have a class of their own. The rest share one.
//
// Thread safety: methods are added before the server runs; the rest from any thread. Called() and
// Ended() take the mutex only when something has changed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/base/mutex.h"
#include "curtail/exec/task.h"
#include "curtail/fence/fence.h"

namespace curtail {

// A ClassTable keeps the path class of each method up to date in its TaskKind, and tells the fence
// which classes there are.
class ClassTable {
 public:
  // Requests of a method that end before its class is learned.
  static constexpr uint32_t kLearned = 16;
  // Requests of a method after which a service that none of them called is left out.
  static constexpr uint32_t kGeneration = 256;

  explicit ClassTable(Fence* fence);
  ~ClassTable();
  ClassTable(const ClassTable&) = delete;
  ClassTable& operator=(const ClassTable&) = delete;

  // The limits that classes begin with which have these services. Of several for one class the
  // first holds. Before methods are added.
  void BeginWith(const std::vector<ClassLimit>& limits);
  // Methods are numbered in the order in which they are added. `kind` is the method's tasks'; both
  // outlive the table.
  void AddLearned(std::string_view method, TaskKind* kind);
  // `services`: the full names of services that the method may call, or names of stores. None: it
  // is local.
  void AddDeclared(std::string_view method, TaskKind* kind, const std::vector<std::string>& services);

  // A request of `method` called `path`, "/package.Service/Method". True: for the first time, or
  // again after a power of two of times, the method had not declared that service.
  bool Called(uint32_t method, std::string_view path);
  // True if such a call would change nothing; false when in doubt. Quick for the service that the
  // method called last.
  bool Knows(uint32_t method, std::string_view path) const {
    const Method& m = *methods_[method];
    const std::string* const last = m.last_called.load(std::memory_order_acquire);  // see Called()
    if (last == nullptr || last->size() < kWord || !IsMethodOf(path, *last)) return false;
    const uint64_t bit = uint64_t{1} << (last - services_.data());
    return (m.known().load(std::memory_order_relaxed) & bit) != 0;
  }
  // The method that has this number.
  std::string_view PathOf(uint32_t method) const { return methods_[method]->path; }
  // A request of `method` has ended; `whole`: nothing cut it short.
  void Ended(uint32_t method, bool whole) {
    Method& m = *methods_[method];
    if (m.declared || (!whole && m.ended.load(std::memory_order_relaxed) >= kLearned)) return;
    const uint32_t ended = m.ended.fetch_add(1, std::memory_order_relaxed) + 1;
    if (ended == kLearned || ended % kGeneration == 0) NextGeneration(m);
  }

  // The classes so far: the name of each.
  std::vector<std::string> Names() const;
  std::string Name(uint8_t path_class) const;
  // The class whose name that is; kMaxClasses if there is none.
  size_t Find(std::string_view name) const;
  // The methods of each class so far, by their paths.
  std::vector<std::vector<std::string>> Methods() const;
  // Methods that made undeclared calls.
  std::vector<UndeclaredCalls> Undeclared() const;

 private:
  struct Method {
    // Services whose calls change nothing, as bits.
    const std::atomic<uint64_t>& known() const { return declared ? services : called; }

    // Immutable once added.
    std::string path;
    TaskKind* kind = nullptr;
    bool declared = false;
    // Atomic, relaxed: services as bits. Called in this generation; of the class.
    std::atomic<uint64_t> called{0};
    std::atomic<uint64_t> services{0};
    // Atomic: one of services_, which Knows() compares with; null: there was no call. A hint.
    std::atomic<const std::string*> last_called{nullptr};
    // Atomic, relaxed: counters.
    std::atomic<uint32_t> ended{0};
    std::atomic<uint64_t> undeclared{0};
    // Guarded by mu_ of the table: services called in the generation before; the first undeclared
    // one; it counts in members_.
    uint64_t before = 0;
    bool member = false;
    std::string first_undeclared;
  };
  static constexpr size_t kMaxServices = 64;

  // True if `path` is "/SERVICE/...". REQUIRES: the service has kWord bytes.
  static bool IsMethodOf(std::string_view path, std::string_view service) {
    const size_t size = service.size();
    return path.size() > size + 1 && path[size + 1] == '/' &&
           SameBytes(path.data() + 1, service.data(), size);
  }
  // As memcmp(), without a call: names are short. REQUIRES: kWord bytes.
  static constexpr size_t kWord = 8;
  static bool SameBytes(const char* a, const char* b, size_t size) {
    const size_t last = size - kWord;
    if (std::memcmp(a + last, b + last, kWord) != 0) return false;
    for (size_t at = 0; at < last; at += kWord) {
      if (std::memcmp(a + at, b + at, kWord) != 0) return false;
    }
    return true;
  }

  Method& Add(std::string_view method, TaskKind* kind);
  // The bit of the service that has the method `path`.
  uint64_t BitOfCallee(std::string_view path);
  // The bit of a service, perhaps a new one.
  uint64_t AddService(std::string_view service);
  // A method of which enough is known called a service that its class lacks.
  void Widen(Method& m);
  void NextGeneration(Method& m);
  void SetServices(Method& m, uint64_t services) CURTAIL_REQUIRES(mu_);
  void SetClass(Method& m, uint8_t path_class) CURTAIL_REQUIRES(mu_);
  uint8_t ClassOf(uint64_t services) CURTAIL_REQUIRES(mu_);
  // The limit that the class of these services begins with; kNoLimit: an equal share.
  uint32_t FirstLimit(uint64_t services) const CURTAIL_REQUIRES(mu_);
  std::string NameOf(uint8_t path_class) const CURTAIL_REQUIRES(mu_);

  Fence& fence_;
  // Immutable once the server runs; the methods guard themselves.
  std::vector<std::unique_ptr<Method>> methods_;
  std::vector<ClassLimit> first_limits_;  // with ascending services

  mutable Mutex mu_;
  // The services of each class, as bits; from kFirst on.
  std::array<uint64_t, Fence::kMaxClasses> sets_ CURTAIL_GUARDED_BY(mu_){};
  size_t classes_ CURTAIL_GUARDED_BY(mu_) = Fence::kFirst;
  std::array<uint32_t, Fence::kMaxClasses> members_ CURTAIL_GUARDED_BY(mu_){};  // methods of each

  // The services, in the order of their bits; only grows. An entry is written under mu_, before
  // service_count_ (release) tells of it. The last one stands for all others.
  std::array<std::string, kMaxServices> services_;
  std::atomic<size_t> service_count_{0};
};

}  // namespace curtail
