// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/one_call.h"

#include <utility>

#include "curtail/load/target/load_client.h"

namespace curtail {
namespace {

struct Outcome final : internal::LoadCompletion {
  bool done = false;
  absl::Status status;
  std::string reply;
  void Done(absl::Status&& s, std::string&& r) override {
    status = std::move(s), reply = std::move(r), done = true;
  }
};

}  // namespace

absl::StatusOr<Answer> CallOnce(const RunOptions& options, const Workload& workload) {
  Outcome outcome;
  const std::unique_ptr<internal::LoadClient> client = internal::MakeLoadClient(options, workload.journey());
  if (absl::Status status = client->Resolve(); !status.ok()) return status;
  outcome.step_timeout = options.timeout;
  const TimePoint start = Now();
  client->Start(0, workload.MethodOf(0), Deadline::In(options.timeout), options.metadata, workload.Request(0),
                &outcome);
  // Ends: the client keeps the deadline of the call.
  while (!outcome.done) client->Poll(Deadline::In(std::chrono::milliseconds(50)));
  if (!outcome.status.ok()) return outcome.status;
  return Answer{std::move(outcome.reply), Now() - start};
}

}  // namespace curtail
