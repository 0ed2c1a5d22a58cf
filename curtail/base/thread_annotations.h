// SPDX-License-Identifier: Apache-2.0
//
// thread_annotations.h - names for clang's thread-safety attributes; empty on other compilers.
#pragma once

#if defined(__clang__)
#define CURTAIL_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define CURTAIL_THREAD_ATTRIBUTE(x)
#endif

#define CURTAIL_CAPABILITY(x) CURTAIL_THREAD_ATTRIBUTE(capability(x))
#define CURTAIL_SCOPED_CAPABILITY CURTAIL_THREAD_ATTRIBUTE(scoped_lockable)
#define CURTAIL_GUARDED_BY(x) CURTAIL_THREAD_ATTRIBUTE(guarded_by(x))
#define CURTAIL_PT_GUARDED_BY(x) CURTAIL_THREAD_ATTRIBUTE(pt_guarded_by(x))
#define CURTAIL_REQUIRES(...) CURTAIL_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define CURTAIL_EXCLUDES(...) CURTAIL_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define CURTAIL_ACQUIRE(...) CURTAIL_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define CURTAIL_RELEASE(...) CURTAIL_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define CURTAIL_TRY_ACQUIRE(...) CURTAIL_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define CURTAIL_NO_THREAD_SAFETY_ANALYSIS CURTAIL_THREAD_ATTRIBUTE(no_thread_safety_analysis)
