// SPDX-License-Identifier: Apache-2.0
//
// kernel.h - the little of an operating system that the code under test asks for: futexes, and epoll with
// eventfds. Each call is a scheduling point.
//
// Programs use an eventfd where the real thing has a socket: the sender writes to it, and a handler reads.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace curtail::model {

// Not ::epoll_event: a call with that would find the real system call by its argument.
struct EpollEvent {
  uint32_t events;
  epoll_data_t data;
};

// Forgets all descriptors and sleepers; between runs.
void ResetKernel();

// Sleeps while `changed()` is false and no thread wakes `address`; at most until `until_ns`.
void FutexWait(const void* address, const std::function<bool()>& changed, int64_t until_ns);
void FutexWake(const void* address, int count);

int EpollCreate();
int EventFd();
int EpollCtl(int epoll, int op, int fd, const EpollEvent* event);
// Waits at most until `until_ns`; 0 looks only. Two at once on one epoll fail the schedule: no owner of a
// Poller may let that happen.
int EpollWait(int epoll, EpollEvent* events, int max, int64_t until_ns);
// On an eventfd: one more thing to read, and an edge.
void Write(int fd);
// All there is to read: how many things.
uint64_t Read(int fd);
void Close(int fd);
// CPUs the process seems to have.
int Cpus();

// Memory that is not given out again before the next run.
void* FreshMemory(size_t size);

}  // namespace curtail::model
