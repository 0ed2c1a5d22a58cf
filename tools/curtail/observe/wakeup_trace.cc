// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The tracepoint sched_waking tells of a thread that is made ready, on the CPU of the one that does it, and
// sched_switch of both threads when a CPU changes from one to the other. The kernel filters both by thread. The times
// are of CLOCK_MONOTONIC, so that those of different CPUs compare. An event is visible a moment after its time, thus
// Read() judges only what is older than kSettled.
#include "tools/curtail/observe/wakeup_trace.h"

#include <sys/mman.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include "curtail/base/clock.h"

namespace curtail::tool {
namespace {

constexpr size_t kRingBytes = 256u << 10;
constexpr Nanos kSettled = std::chrono::milliseconds(1);

template <class T>
std::optional<T> ValueAt(const std::string& record, size_t offset) {
  T value;
  if (offset > record.size() || record.size() - offset < sizeof(value)) return std::nullopt;
  std::memcpy(&value, record.data() + offset, sizeof(value));
  return value;
}

perf_event_attr Attributes(uint64_t tracepoint) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = tracepoint;
  attributes.sample_period = 1;
  attributes.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  attributes.watermark = 1;
  attributes.wakeup_watermark = kRingBytes / 2;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  return attributes;
}

}  // namespace

// A page of the kernel's, and then kRingBytes of records.
struct WakeupTrace::Ring {
  ~Ring() {
    if (page != nullptr) munmap(page, PageBytes() + kRingBytes);
  }
  static size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  const char* data() const { return reinterpret_cast<const char*>(page) + PageBytes(); }
  std::string Copy(uint64_t from, size_t bytes) const {
    const size_t at = from % kRingBytes, first = std::min(bytes, kRingBytes - at);
    std::string out(data() + at, first);
    out.append(data(), bytes - first);
    return out;
  }

  internal::UniqueFd waking, switched;
  perf_event_mmap_page* page = nullptr;
};

WakeupTrace::WakeupTrace(const Format& format, std::vector<pid_t> threads)
    : format_(format), threads_(std::move(threads)) {}

WakeupTrace::~WakeupTrace() = default;

std::unique_ptr<WakeupTrace> WakeupTrace::Start(pid_t process, std::string* why) {
  const std::optional<Tracepoint> waking = Tracepoint::Find("sched/sched_waking", why);
  const std::optional<Tracepoint> switched =
      waking ? Tracepoint::Find("sched/sched_switch", why) : std::nullopt;
  if (!switched) return nullptr;
  const auto waking_pid = waking->OffsetOf("pid");
  const auto prev_pid = switched->OffsetOf("prev_pid"), next_pid = switched->OffsetOf("next_pid");
  if (!waking_pid || !prev_pid || !next_pid) {
    *why = "the kernel's sched_waking and sched_switch have other fields than those that are known";
    return nullptr;
  }
  std::unique_ptr<WakeupTrace> trace(
      new WakeupTrace({waking->id(), switched->id(), *waking_pid, *prev_pid, *next_pid}, ThreadsOf(process)));
  *why = trace->threads_.empty() ? "the process has ended" : "";
  for (size_t cpu = 0; cpu < Cpus() && why->empty(); ++cpu) *why = trace->Open(static_cast<int>(cpu));
  if (!why->empty()) return nullptr;
  return trace;
}

std::string WakeupTrace::Open(int cpu) {
  auto ring = std::make_unique<Ring>();
  ring->waking = OpenPerfEvent(Attributes(format_.waking), -1, cpu, ThreadsFilter("pid", threads_));
  if (!ring->waking && errno == ENODEV) return "";  // the CPU is off
  if (!ring->waking) return PerfDenial(errno, "perf_event_open of sched_waking");
  void* const mapped = mmap(nullptr, Ring::PageBytes() + kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                            ring->waking.get(), 0);
  if (mapped == MAP_FAILED) return PerfDenial(errno, "mmap of its ring");
  ring->page = static_cast<perf_event_mmap_page*>(mapped);
  ring->switched =
      OpenPerfEvent(Attributes(format_.switched), -1, cpu,
                    ThreadsFilter("prev_pid", threads_) + " || " + ThreadsFilter("next_pid", threads_));
  if (!ring->switched) return PerfDenial(errno, "perf_event_open of sched_switch");
  if (ioctl(ring->switched.get(), PERF_EVENT_IOC_SET_OUTPUT, ring->waking.get()) != 0)
    return PerfDenial(errno, "PERF_EVENT_IOC_SET_OUTPUT");
  rings_.push_back(std::move(ring));
  return "";
}

void WakeupTrace::AppendTo(std::vector<pollfd>* polled) const {
  for (const auto& ring : rings_) polled->push_back({ring->waking.get(), POLLIN, 0});
}

void WakeupTrace::Read() {
  const TimePoint now = Now();
  for (const auto& ring : rings_) ReadRing(*ring);
  matcher_.JudgeUntil((now - kSettled).time_since_epoch().count());
}

void WakeupTrace::ReadRing(Ring& ring) {
  // The kernel writes records and then the head; it reads the tail before it writes over what was read.
  const uint64_t head = std::atomic_ref(ring.page->data_head).load(std::memory_order_acquire);
  uint64_t tail = ring.page->data_tail;
  while (tail < head) {
    perf_event_header header;
    std::memcpy(&header, ring.Copy(tail, sizeof(header)).data(), sizeof(header));
    if (header.size < sizeof(header)) break;
    const std::string record = ring.Copy(tail, header.size);
    if (header.type == PERF_RECORD_SAMPLE) Take(record);
    // struct { header; u64 id; u64 lost; }
    if (header.type == PERF_RECORD_LOST) lost_ += ValueAt<uint64_t>(record, sizeof(header) + 8).value_or(0);
    tail += header.size;
  }
  std::atomic_ref(ring.page->data_tail).store(tail, std::memory_order_release);
}

// struct { header; u64 time; u32 size; char data[size]; }
void WakeupTrace::Take(const std::string& record) {
  constexpr size_t kTime = sizeof(perf_event_header), kData = kTime + 8 + 4;
  const auto time = ValueAt<uint64_t>(record, kTime);
  const auto type = ValueAt<uint16_t>(record, kData);  // common_type
  if (!time || !type) return;
  const auto at = static_cast<int64_t>(*time);
  const auto add = [&](size_t offset, WakeupEvent::Kind kind) {
    if (const auto thread = ValueAt<int32_t>(record, kData + offset)) Add(at, *thread, kind);
  };
  if (*type == format_.waking) add(format_.waking_pid, WakeupEvent::Kind::kWaking);
  if (*type == format_.switched) {
    add(format_.prev_pid, WakeupEvent::Kind::kOut);
    add(format_.next_pid, WakeupEvent::Kind::kIn);
  }
}

void WakeupTrace::Add(int64_t at_ns, pid_t thread, WakeupEvent::Kind kind) {
  if (std::binary_search(threads_.begin(), threads_.end(), thread)) matcher_.Add({at_ns, thread, kind});
}

}  // namespace curtail::tool
