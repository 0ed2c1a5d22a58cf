// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/stack.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

constexpr size_t kSignalStackBytes = 64u << 10;

bool (*describe_overrun)(const void*) = nullptr;
struct sigaction previous_segv;
struct sigaction previous_bus;

void OnFault(int number, siginfo_t* info, void* context) {
  if (describe_overrun(info->si_addr)) std::abort();
  const struct sigaction& previous = number == SIGSEGV ? previous_segv : previous_bus;
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(number, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(number);
  // The default action takes the fault when it comes again on return.
  signal(number, SIG_DFL);
}

struct SignalStack {
  SignalStack() {
    stack_t now{};
    if (sigaltstack(nullptr, &now) != 0 || !(now.ss_flags & SS_DISABLE)) return;  // there is one already
    memory = std::make_unique<char[]>(kSignalStackBytes);
    const stack_t mine{.ss_sp = memory.get(), .ss_flags = 0, .ss_size = kSignalStackBytes};
    sigaltstack(&mine, nullptr);
  }
  ~SignalStack() {
    if (memory == nullptr) return;
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    sigaltstack(&none, nullptr);
  }
  std::unique_ptr<char[]> memory;
};

}  // namespace

absl::StatusOr<FiberStack> FiberStack::New(size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t size = (bytes + page - 1) / page * page;
  void* mapping = mmap(nullptr, kGuardBytes + size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(Join("no memory for a fiber's stack: ", std::strerror(errno)));
  }
  FiberStack stack(static_cast<char*>(mapping), size);
  if (mprotect(stack.bottom(), size, PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(
        Join("no memory for a fiber's stack: ", std::strerror(errno), " (see vm.max_map_count)"));
  }
  return stack;
}

FiberStack::FiberStack(FiberStack&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)), size_(other.size_) {}

FiberStack::~FiberStack() {
  if (mapping_ != nullptr) munmap(mapping_, kGuardBytes + size_);
}

void InstallOverrunHandler(bool (*describe)(const void* fault)) {
  static std::once_flag once;
  std::call_once(once, [describe] {
    describe_overrun = describe;
    struct sigaction action{};
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
  });
}

void EnsureSignalStack() { static thread_local const SignalStack stack; }

}  // namespace curtail
