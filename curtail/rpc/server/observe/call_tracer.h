// SPDX-License-Identifier: Apache-2.0
//
// call_tracer.h - makes spans of the calls of a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/observe/trace/tracer.h"
#include "curtail/rpc/call_observer.h"
#include "curtail/rpc/trace_options.h"

namespace curtail::internal {

// A CallTracer hands the calls over to the tracer that were chosen, failed or were slow. Thread-safe.
class CallTracer final : public CallObserver {
 public:
  // `services` are the server's, `methods` how many methods it has. Errors: INVALID_ARGUMENT, RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<CallTracer>> Start(const TraceOptions& options,
                                                           const std::vector<std::string>& services,
                                                           size_t methods);

  const observe::Tracer& tracer() const { return *tracer_; }

  // CallObserver. The note is the address of a record; 0: the call has none, as most.
  uint32_t Wants() const override;
  uint32_t WantsOf(uint64_t note) const override;
  Nanos LateAfter(const CallRecord& call) const override;
  uint64_t Arrived(const CallRecord& call) override;
  void ChildLeaves(const CallRecord& call, const ChildCall& child, Carried& carried, uint64_t note) override;
  void Replied(const CallRecord& call, uint64_t note) override;
  void Over(const CallRecord& call, uint64_t note) override;

 private:
  struct Live;

  explicit CallTracer(std::unique_ptr<observe::Tracer> tracer) : tracer_(std::move(tracer)) {}
  // The record of a call that was chosen, or whose caller sent a context; else 0.
  uint64_t Begin(const wire::Metadata& received, bool drawn);
  void HandOver(const CallRecord& call, const Live& live, observe::SpanReason reason);

  const std::unique_ptr<observe::Tracer> tracer_;
};

}  // namespace curtail::internal
