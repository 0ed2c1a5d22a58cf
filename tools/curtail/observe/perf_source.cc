// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: a counter for each event and thread, or CPU. The kernel only adds: no event is lost, no thread is sampled.
// A tracepoint's number is read from tracefs. Events without a descriptor are named with the reason.
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/curtail/observe/os_source.h"
#include "tools/curtail/observe/perf_events.h"

namespace curtail::tool {
namespace {

enum class Scope : uint8_t { kThreads, kCpus };

struct Event {
  const char* name;
  uint32_t type;
  uint64_t config;
  const char* tracepoint = "";
  const char* filter = "";
  Scope scope = Scope::kThreads;
};

// FUTEX_WAIT and FUTEX_WAIT_BITSET, private or not, by either clock.
constexpr char kFutexWaits[] =
    "op == 0 || op == 128 || op == 256 || op == 384 || op == 9 || op == 137 || op == 265 || op == 393";
// MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM of Intel's processors since Haswell.
constexpr uint64_t kIntelHitm = 0x04d2;

constexpr Event kEvents[] = {
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"hitm", PERF_TYPE_RAW, kIntelHitm},
    {"cpu_migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    // It happens in the thread that wakes another one, so each CPU counts, for the threads of the process.
    {"wakeups", PERF_TYPE_TRACEPOINT, 0, "sched/sched_wakeup", "", Scope::kCpus},
    {"syscalls", PERF_TYPE_TRACEPOINT, 0, "raw_syscalls/sys_enter"},
    {"futex_waits", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_futex", kFutexWaits},
    {"syscalls_futex", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_futex"},
    {"syscalls_epoll_wait", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_epoll_wait"},
    {"syscalls_poll", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_poll"},
    {"syscalls_read", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_read"},
    {"syscalls_recvfrom", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_recvfrom"},
    {"syscalls_recvmsg", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_recvmsg"},
    {"syscalls_sendto", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_sendto"},
    {"syscalls_sendmsg", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_sendmsg"},
    {"syscalls_write", PERF_TYPE_TRACEPOINT, 0, "syscalls/sys_enter_write"},
};

bool IsIntel() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    if (line.starts_with("vendor_id")) return line.find("GenuineIntel") != std::string::npos;
  }
  return false;
}

// Empty, or why the event has no number. Fills in the number.
std::string Resolve(const Event& event, uint64_t* config) {
  *config = event.config;
  if (event.type == PERF_TYPE_RAW && !IsIntel()) return "no event of this processor is known for it";
  if (event.type != PERF_TYPE_TRACEPOINT) return "";
  std::string why;
  if (const std::optional<Tracepoint> found = Tracepoint::Find(event.tracepoint, &why)) *config = found->id();
  return why;
}

class PerfSource final : public OsSource {
 public:
  explicit PerfSource(pid_t pid) {
    // The soft limit alone is often 1024.
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
      limit.rlim_cur = limit.rlim_max;
      setrlimit(RLIMIT_NOFILE, &limit);
    }
    const std::vector<pid_t> threads = ThreadsOf(pid);
    for (const Event& event : kEvents) Open(event, threads);
  }

  void Read(OsCounts* into) const override {
    for (const auto& [name, counters] : counters_) {
      double& sum = into->counts[name];
      for (const internal::UniqueFd& counter : counters) {
        uint64_t value = 0;
        if (read(counter.get(), &value, sizeof(value)) == sizeof(value)) sum += static_cast<double>(value);
      }
    }
    into->denied.insert(denied_.begin(), denied_.end());
  }

 private:
  void Open(const Event& event, const std::vector<pid_t>& threads) {
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = event.type;
    uint64_t config = 0;
    std::string why = Resolve(event, &config);
    attributes.config = config;
    attributes.exclude_hv = 1;
    std::vector<internal::UniqueFd> counters;
    const bool by_cpu = event.scope == Scope::kCpus;
    const std::string filter = by_cpu ? ThreadsFilter("pid", threads) : event.filter;
    const size_t count = threads.empty() ? 0 : by_cpu ? Cpus() : threads.size();
    for (size_t i = 0; why.empty() && i < count; ++i) {
      const pid_t thread = by_cpu ? -1 : threads[i];
      const int cpu = by_cpu ? static_cast<int>(i) : -1;
      internal::UniqueFd counter = OpenPerfEvent(attributes, thread, cpu, filter);
      // A thread that has ended, or a CPU that is off.
      if (!counter && (errno == ESRCH || (by_cpu && errno == ENODEV))) continue;
      if (!counter) {
        why = PerfDenial(errno, "perf_event_open");
      } else {
        counters.push_back(std::move(counter));
      }
    }
    if (why.empty() && counters.empty()) why = "the process has ended";
    if (why.empty()) {
      counters_[event.name] = std::move(counters);
    } else {
      denied_[event.name] = std::move(why);
    }
  }

  std::map<std::string, std::vector<internal::UniqueFd>> counters_;
  std::map<std::string, std::string> denied_;
};

}  // namespace

std::unique_ptr<OsSource> NewPerfSource(pid_t pid) { return std::make_unique<PerfSource>(pid); }

}  // namespace curtail::tool
