// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/path_class.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace curtail {
namespace {

// "package.Service" of "/package.Service/Method".
std::string_view ServiceOf(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  return path.substr(0, path.find('/'));
}

}  // namespace

ClassTable::ClassTable(Fence* fence) : fence_(*fence) {}

ClassTable::~ClassTable() = default;

void ClassTable::BeginWith(const std::vector<ClassLimit>& limits) {
  for (const ClassLimit& limit : limits) {
    std::vector<std::string>& services = first_limits_.emplace_back(limit).services;
    std::sort(services.begin(), services.end());
  }
}

ClassTable::Method& ClassTable::Add(std::string_view method, TaskKind* kind) {
  Method& m = *methods_.emplace_back(std::make_unique<Method>());
  m.path = method;
  m.kind = kind;
  return m;
}

void ClassTable::AddLearned(std::string_view method, TaskKind* kind) {
  Method& m = Add(method, kind);
  MutexLock lock(mu_);
  SetClass(m, Fence::kUnknown);
}

void ClassTable::AddDeclared(std::string_view method, TaskKind* kind,
                             const std::vector<std::string>& services) {
  Method& m = Add(method, kind);
  m.declared = true;
  uint64_t set = 0;
  for (const std::string& service : services) set |= AddService(service);
  MutexLock lock(mu_);
  SetServices(m, set);
}

bool ClassTable::Called(uint32_t method, std::string_view path) {
  Method& m = *methods_[method];
  const uint64_t bit = BitOfCallee(path);
  // Release: a thread that reads it (Knows()) has not looked at service_count_.
  m.last_called.store(&services_[static_cast<size_t>(std::countr_zero(bit))], std::memory_order_release);
  if (m.declared) {
    if ((m.services.load(std::memory_order_relaxed) & bit) != 0) [[likely]]
      return false;
    const uint64_t times = m.undeclared.fetch_add(1, std::memory_order_relaxed) + 1;
    if (times == 1) {
      MutexLock lock(mu_);
      m.first_undeclared = ServiceOf(path);
    }
    return std::has_single_bit(times);
  }
  if ((m.called.load(std::memory_order_relaxed) & bit) != 0) [[likely]]
    return false;
  m.called.fetch_or(bit, std::memory_order_relaxed);
  if ((m.services.load(std::memory_order_relaxed) & bit) == 0) Widen(m);
  return false;
}

uint64_t ClassTable::BitOfCallee(std::string_view path) {
  const size_t count = service_count_.load(std::memory_order_acquire);  // pairs with AddService()
  const std::string_view service = ServiceOf(path);
  for (size_t i = 0; i < count; ++i) {
    if (services_[i] == service) return uint64_t{1} << i;
  }
  return AddService(service);
}

uint64_t ClassTable::AddService(std::string_view service) {
  constexpr size_t kLast = kMaxServices - 1;
  if (service_count_.load(std::memory_order_acquire) == kMaxServices) return uint64_t{1} << kLast;
  MutexLock lock(mu_);
  const size_t count = service_count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    if (services_[i] == service) return uint64_t{1} << i;
  }
  const size_t place = count < kLast ? count : kLast;
  if (count < kMaxServices) {
    services_[place] = count < kLast ? std::string(service) : "others";
    service_count_.store(count + 1, std::memory_order_release);
  }
  return uint64_t{1} << place;
}

void ClassTable::Widen(Method& m) {
  if (m.ended.load(std::memory_order_relaxed) < kLearned) return;
  MutexLock lock(mu_);
  SetServices(m, m.services.load(std::memory_order_relaxed) | m.called.load(std::memory_order_relaxed));
}

void ClassTable::NextGeneration(Method& m) {
  MutexLock lock(mu_);
  const uint64_t called = m.called.exchange(0, std::memory_order_relaxed);
  SetServices(m, called | m.before);
  m.before = called;
}

void ClassTable::SetServices(Method& m, uint64_t services) {
  m.services.store(services, std::memory_order_relaxed);
  SetClass(m, ClassOf(services));
}

void ClassTable::SetClass(Method& m, uint8_t path_class) {
  const uint8_t before = m.kind->path_class();
  if (m.member && before == path_class) return;
  if (std::exchange(m.member, true)) --members_[before];
  ++members_[path_class];
  m.kind->set_path_class(path_class);
  uint64_t present = 0;
  for (size_t i = 0; i < Fence::kMaxClasses; ++i) present |= uint64_t{members_[i] > 0} << i;
  fence_.SetPresent(present);
}

uint8_t ClassTable::ClassOf(uint64_t services) {
  if (services == 0) return Fence::kLocal;
  for (size_t i = Fence::kFirst; i < classes_; ++i) {
    if (sets_[i] == services) return static_cast<uint8_t>(i);
  }
  if (classes_ == Fence::kMaxClasses) return Fence::kOther;
  sets_[classes_] = services;
  if (const uint32_t first = FirstLimit(services); first != Fence::kNoLimit) {
    fence_.SetLimit(static_cast<uint8_t>(classes_), first);
  }
  return static_cast<uint8_t>(classes_++);
}

uint32_t ClassTable::FirstLimit(uint64_t services) const {
  std::vector<std::string> names;
  for (uint64_t left = services; left != 0; left &= left - 1) {
    names.push_back(services_[static_cast<size_t>(std::countr_zero(left))]);
  }
  std::sort(names.begin(), names.end());
  for (const ClassLimit& first : first_limits_) {
    if (first.services == names) return first.limit;
  }
  return Fence::kNoLimit;
}

std::string ClassTable::NameOf(uint8_t path_class) const {
  static constexpr std::string_view kNames[] = {"local", "unknown", "other"};
  if (path_class < Fence::kFirst) return std::string(kNames[path_class]);
  std::string name;
  for (uint64_t left = sets_[path_class]; left != 0; left &= left - 1) {
    if (!name.empty()) name += '+';
    name += services_[static_cast<size_t>(std::countr_zero(left))];
  }
  return name;
}

std::vector<std::string> ClassTable::Names() const {
  MutexLock lock(mu_);
  std::vector<std::string> names;
  for (size_t i = 0; i < classes_; ++i) names.push_back(NameOf(static_cast<uint8_t>(i)));
  return names;
}

std::string ClassTable::Name(uint8_t path_class) const {
  MutexLock lock(mu_);
  return NameOf(path_class);
}

size_t ClassTable::Find(std::string_view name) const {
  MutexLock lock(mu_);
  for (size_t i = 0; i < classes_; ++i) {
    if (NameOf(static_cast<uint8_t>(i)) == name) return i;
  }
  return Fence::kMaxClasses;
}

std::vector<std::vector<std::string>> ClassTable::Methods() const {
  std::vector<std::vector<std::string>> methods(Fence::kMaxClasses);
  for (const auto& m : methods_) methods[m->kind->path_class()].push_back(m->path);
  return methods;
}

std::vector<UndeclaredCalls> ClassTable::Undeclared() const {
  std::vector<UndeclaredCalls> all;
  for (const auto& m : methods_) {
    const uint64_t times = m->undeclared.load(std::memory_order_relaxed);
    if (times == 0) continue;
    MutexLock lock(mu_);
    all.push_back({m->path, m->first_undeclared, times});
  }
  return all;
}

}  // namespace curtail
