// SPDX-License-Identifier: Apache-2.0
//
// journey.h - requests that follow from replies: log in, list, pay.
//
// An application or a file (json_journey.h) implements one Journey; schedules, runners and reports
// then count each journey as one request, and its steps beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/load/message/workload.h"
#include "curtail/wire/metadata.h"

namespace curtail {

// The values of replies that one journey in flight needs later; absent ones had no value. The
// journey assigns the places.
using KeptValues = std::vector<std::optional<std::string>>;

// A Journey is a numbered sequence of runs through the same steps. A step begins when the one
// before has succeeded; the first that fails ends the journey. As a workload its request is the
// first step. Thread-compatible; a pure function of its arguments, so that a run can be repeated.
class Journey : public Workload {
 public:
  // At least one.
  virtual size_t steps() const = 0;
  // Unique within the journey; of letters, digits, '-' and '_'.
  virtual std::string_view StepName(size_t step) const = 0;
  // The full path, as Workload::method().
  virtual std::string_view StepMethod(size_t step) const = 0;

  // The time from the reply before to the request of `step`, for step 1 and later.
  virtual Nanos PauseBefore(size_t step, uint64_t index) const = 0;
  // The most that the pauses of a journey add up to.
  virtual Nanos longest_pauses() const = 0;

  // The serialized message of `step`. Errors: the step fails with them; INVALID_ARGUMENT, a kept
  // value is absent or does not fit.
  virtual absl::StatusOr<std::string> StepRequest(size_t step, uint64_t index,
                                                  const KeptValues& kept) const = 0;
  // Adds the metadata that only this step has. Errors: as above.
  virtual absl::Status AddStepMetadata(size_t /*step*/, uint64_t /*index*/, const KeptValues& /*kept*/,
                                       wire::Metadata* /*metadata*/) const {
    return absl::OkStatus();
  }
  // Keeps the values that later steps use of the OK `reply` to `step`. Errors: the step fails with
  // them; INTERNAL, the reply is not a message of its type.
  virtual absl::Status Keep(size_t step, std::string_view reply, KeptValues* kept) const = 0;

  const Journey* journey() const final { return this; }
  std::string_view MethodOf(uint64_t /*index*/) const final { return StepMethod(0); }
  // The first step needs no reply, so it cannot fail for want of one.
  std::string Request(uint64_t index) const final { return StepRequest(0, index, {}).value_or(""); }
};

}  // namespace curtail
