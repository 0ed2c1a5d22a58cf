// SPDX-License-Identifier: Apache-2.0
//
// bounded_log.h - keeps the log of a process from growing without end, while the process writes to it.
#pragma once

#include <cstdint>
#include <string>

namespace curtail::deploy {

inline constexpr uint64_t kMaxLogBytes = 16u << 20;

// Moves what is in `path` to PATH.1, in place of what is there, if it is more than `most` bytes. The process goes on to
// write to `path`, which it has opened with O_APPEND. Lines that it writes meanwhile may be lost. Failures leave the log as
// it is.
void BoundLog(const std::string& path, uint64_t most = kMaxLogBytes);

}  // namespace curtail::deploy
