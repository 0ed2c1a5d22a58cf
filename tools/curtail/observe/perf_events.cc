// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/perf_events.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace curtail::tool {

std::vector<pid_t> ThreadsOf(pid_t process) {
  std::error_code error;
  std::vector<pid_t> threads;
  std::filesystem::directory_iterator task(absl::StrCat("/proc/", process, "/task"), error);
  for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    pid_t thread = 0;
    if (absl::SimpleAtoi(task->path().filename().string(), &thread)) threads.push_back(thread);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

size_t Cpus() { return static_cast<size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_CONF))); }

// Runs of numbers keep it short: the kernel takes a page at most.
std::string ThreadsFilter(std::string_view field, const std::vector<pid_t>& threads) {
  const std::string name(field);
  std::string filter;
  for (size_t first = 0, next = 0; first < threads.size(); first = next) {
    next = first + 1;
    while (next < threads.size() && threads[next] == threads[next - 1] + 1) ++next;
    absl::StrAppend(&filter, filter.empty() ? "" : " || ", "(", name, " >= ", threads[first], " && ", name,
                    " <= ", threads[next - 1], ")");
  }
  return filter;
}

internal::UniqueFd OpenPerfEvent(const perf_event_attr& attributes, pid_t thread, int cpu,
                                 const std::string& filter) {
  internal::UniqueFd event(
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (event && !filter.empty() && ioctl(event.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) != 0) {
    const int error = errno;
    event.Reset();
    errno = error;
  }
  return event;
}

std::string PerfDenial(int error, std::string_view call) {
  std::string paranoid = "unknown";
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> paranoid;
  switch (error) {
    case EACCES:
    case EPERM:
      return absl::StrCat("not permitted: perf_event_paranoid is ", paranoid,
                          ", and this process lacks CAP_PERFMON or a seccomp filter forbids it");
    case ENOSYS:
      return "the kernel, or a seccomp filter, has no perf_event_open";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return "this machine's processor shows no such counter";
    case EMFILE:
    case ENFILE:
      return "too few descriptors: a counter takes one for each thread";
    default:
      return absl::StrCat(std::string(call), ": ", std::generic_category().message(error));
  }
}

std::optional<Tracepoint> Tracepoint::Find(std::string_view name, std::string* why) {
  for (const char* root : {"/sys/kernel/tracing/events/", "/sys/kernel/debug/tracing/events/"}) {
    const std::string folder = absl::StrCat(root, std::string(name));
    Tracepoint found;
    if (!(std::ifstream(folder + "/id") >> found.id_)) continue;
    std::ifstream format(folder + "/format");
    found.format_.assign(std::istreambuf_iterator<char>(format), {});
    return found;
  }
  *why = absl::StrCat("the tracepoint ", std::string(name),
                      " cannot be read: tracefs is not mounted at /sys/kernel/tracing, is not permitted, or "
                      "the kernel has none");
  return std::nullopt;
}

// A line is "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;".
std::optional<size_t> Tracepoint::OffsetOf(std::string_view field) const {
  const size_t name = format_.find(absl::StrCat(" ", std::string(field), ";"));
  constexpr std::string_view kOffset = "offset:";
  const size_t offset = name == std::string::npos ? name : format_.find(kOffset, name);
  if (offset == std::string::npos) return std::nullopt;
  const size_t begin = offset + kOffset.size();
  const size_t end = format_.find(';', begin);
  size_t value = 0;
  if (end == std::string::npos || format_.compare(end, 9, ";\tsize:4;") != 0 ||
      !absl::SimpleAtoi(format_.substr(begin, end - begin), &value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace curtail::tool
