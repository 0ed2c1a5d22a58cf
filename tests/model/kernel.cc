// SPDX-License-Identifier: Apache-2.0
#include "tests/model/kernel.h"

#include <algorithm>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "tests/model/scheduler.h"

namespace curtail::model {
namespace {

struct Sleeper {
  const void* address;
  bool woken = false;
};

// The events for which one descriptor is watched.
struct Watch {
  int fd;
  EpollEvent event;
  bool edge;  // news since it was last reported
};

// An eventfd, or an epoll instance: that one is readable while it has something to report.
struct File {
  bool open = true;
  uint64_t level = 0;  // things to read
  std::vector<Watch> watches;
  int waiting = 0;
};

struct Kernel {
  std::list<Sleeper*> sleepers;  // first come, first woken
  std::vector<File> files;
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

Kernel& TheKernel() {
  static Kernel kernel;
  return kernel;
}

constexpr int kFirstFd = 3;

File& FileOf(int fd) {
  const size_t index = static_cast<size_t>(fd - kFirstFd);
  if (fd < kFirstFd || index >= TheKernel().files.size() || !TheKernel().files[index].open)
    Fail("system call on a descriptor that is not open");
  return TheKernel().files[index];
}

int NewFile() {
  TheKernel().files.emplace_back();
  return kFirstFd + static_cast<int>(TheKernel().files.size()) - 1;
}

bool Readable(int fd);

bool Reportable(const Watch& watch) {
  return watch.edge && (watch.event.events & EPOLLIN) && Readable(watch.fd);
}

bool Readable(int fd) {
  const File& file = FileOf(fd);
  return file.level > 0 || std::any_of(file.watches.begin(), file.watches.end(), Reportable);
}

// News of `fd` go to the epolls that watch it, and to those that watch them.
void Edge(int fd) {
  std::vector<File>& files = TheKernel().files;
  for (size_t i = 0; i < files.size(); ++i) {
    for (Watch& watch : files[i].watches) {
      if (watch.fd != fd || !files[i].open) continue;
      watch.edge = true;
      if (watch.event.events & EPOLLIN) Edge(kFirstFd + static_cast<int>(i));
    }
  }
}

}  // namespace

void ResetKernel() {
  TheKernel().sleepers.clear();
  TheKernel().files.clear();
  TheKernel().memory.clear();
}

void FutexWait(const void* address, const std::function<bool()>& changed, int64_t until_ns) {
  Point("futex wait", address);
  if (changed()) return;
  Sleeper self{address};
  const auto place = TheKernel().sleepers.insert(TheKernel().sleepers.end(), &self);
  Block("futex sleep", address, [&self] { return self.woken; }, until_ns, /*may_be_spurious=*/true);
  TheKernel().sleepers.erase(place);
}

void FutexWake(const void* address, int count) {
  Point("futex wake", address);
  for (Sleeper* sleeper : TheKernel().sleepers) {
    if (count == 0) return;
    if (sleeper->address != address || sleeper->woken) continue;
    sleeper->woken = true;
    --count;
  }
}

int EpollCreate() { return NewFile(); }
int EventFd() { return NewFile(); }

int EpollCtl(int epoll, int op, int fd, const EpollEvent* event) {
  Point("epoll_ctl", nullptr);
  std::vector<Watch>& watches = FileOf(epoll).watches;
  std::erase_if(watches, [&](const Watch& watch) { return op != EPOLL_CTL_ADD && watch.fd == fd; });
  if (op == EPOLL_CTL_DEL) return 0;
  watches.push_back({fd, *event, true});
  if (Readable(fd)) Edge(epoll);
  return 0;
}

int EpollWait(int epoll, EpollEvent* events, int max, int64_t until_ns) {
  Check(FileOf(epoll).waiting++ == 0, "two threads wait on one poller");
  if (until_ns <= NowNs()) {
    Point("epoll look", nullptr);
  } else {
    Block("epoll_wait", nullptr, [epoll] { return Readable(epoll); }, until_ns);
  }
  --FileOf(epoll).waiting;
  int count = 0;
  for (Watch& watch : FileOf(epoll).watches) {
    if (count == max) break;
    if (!Reportable(watch)) continue;
    watch.edge = false;
    events[count] = {.events = EPOLLIN, .data = watch.event.data};
    ++count;
  }
  return count;
}

void Write(int fd) {
  Point("write", nullptr);
  ++FileOf(fd).level;
  Edge(fd);
}

uint64_t Read(int fd) {
  Point("read", nullptr);
  return std::exchange(FileOf(fd).level, 0);
}

void Close(int fd) { FileOf(fd).open = false; }

int Cpus() { return 2; }

void* FreshMemory(size_t size) {
  TheKernel().memory.push_back(std::make_unique<std::byte[]>(size));
  return TheKernel().memory.back().get();
}

}  // namespace curtail::model
