// SPDX-License-Identifier: Apache-2.0
//
// calls_kernel.h - whether system calls that wait go past glibc.
//
// glibc makes recv(), send() and epoll_wait() points of cancellation, which costs more than the rest of the call, and no
// thread here is cancelled. Builds with a sanitizer use glibc's functions, which it watches.
#pragma once

// Of tests/model the kernel is another.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(CURTAIL_MODEL)
#define CURTAIL_CALLS_KERNEL 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CURTAIL_CALLS_KERNEL 0
#endif
#endif
#ifndef CURTAIL_CALLS_KERNEL
#define CURTAIL_CALLS_KERNEL 1
#endif
