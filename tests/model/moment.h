// SPDX-License-Identifier: Apache-2.0
//
// moment.h - deadlines that the clock of a schedule may jump to. For programs only: it names curtail's types.
#pragma once

#include <cstdint>

#include "curtail/base/clock.h"
#include "tests/model/scheduler.h"

namespace curtail::model {

inline Deadline At(int64_t ns) { return Deadline::At(TimePoint(Nanos(Moment(ns)))); }

}  // namespace curtail::model
