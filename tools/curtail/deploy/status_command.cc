// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/status_command.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/curtail/cli/exit_code.h"
#include "tools/curtail/deploy/admin_client.h"

namespace curtail::tool {
namespace {

constexpr size_t kDecisions = 10;

// The policy's name, what it sees, and its last switches; empty for a server without one.
std::string PolicyText(const nlohmann::json& status) {
  const auto found = status.find("policy");
  if (found == status.end() || found->is_null()) return "";
  const nlohmann::json& policy = *found;
  std::string text = absl::StrFormat("policy %s", policy["name"].get<std::string>());
  if (policy["switches_by_itself"].get<bool>()) {
    absl::StrAppendFormat(&text, ": %.0f requests/s (%.0f by the last few), switches: %d, failed: %d",
                          policy["rate_per_s"].get<double>(), policy["fast_rate_per_s"].get<double>(),
                          policy["switches"].get<int64_t>(), policy["failures"].get<int64_t>());
  }
  text += "\n";
  if (const auto note = policy["note"].get<std::string>(); !note.empty()) text += "  " + note + "\n";
  const nlohmann::json& decisions = policy["decisions"];
  for (size_t i = decisions.size() - std::min(decisions.size(), kDecisions); i < decisions.size(); ++i) {
    const nlohmann::json& decision = decisions[i];
    absl::StrAppendFormat(&text, "  %10.3f s ago, at %.0f/s: %s -> %s (%s)",
                          decision["ago_ms"].get<double>() / 1000, decision["rate_per_s"].get<double>(),
                          decision["from"].get<std::string>(), decision["to"].get<std::string>(),
                          decision["reason"].get<std::string>());
    const auto failure = decision["failure"].get<std::string>();
    text += failure.empty() ? "\n" : " failed: " + failure + "\n";
  }
  return text;
}

std::string Table(const nlohmann::json& status) {
  std::string text =
      absl::StrFormat("config %s\n%s\n%-10s %8s %8s %8s %8s\n", status["config"].get<std::string>(),
                      PolicyText(status), "pool", "threads", "active", "waiting", "parked");
  for (const nlohmann::json& pool : status["pools"]) {
    absl::StrAppendFormat(&text, "%-10s %8d %8d %8d %8d\n", pool["name"].get<std::string>(),
                          pool["threads"].get<int>(), pool["active"].get<int>(), pool["waiting"].get<int>(),
                          pool["parked"].get<int>());
  }
  const uint64_t begun = status["begun"].get<uint64_t>();
  const double mean = begun == 0 ? 0 : status["queue_wait_us"].get<double>() / static_cast<double>(begun);
  const nlohmann::json& process = status["process"];
  absl::StrAppendFormat(&text,
                        "\n%d spinning, %d without a role, %d fibers\n"
                        "queue: %d now, %d requests taken so far after %.0f us each; the longest since the "
                        "last look waited %d us\n"
                        "%d connections, %d open calls\n"
                        "process: %d threads, %d voluntary and %d involuntary switches, %.1f s on CPUs, %.1f "
                        "s ready without one\n",
                        status["spinning_threads"].get<int>(), status["sleeping_threads"].get<int>(),
                        status["fibers"].get<int64_t>(), status["queued"].get<int64_t>(), begun, mean,
                        status["max_queue_wait_us"].get<int64_t>(), status["connections"].get<int64_t>(),
                        status["open_calls"].get<int64_t>(), process["threads"].get<int>(),
                        process["voluntary_switches"].get<int64_t>(),
                        process["involuntary_switches"].get<int64_t>(), process["cpu_us"].get<double>() / 1e6,
                        process["run_delay_us"].get<double>() / 1e6);
  return text;
}

}  // namespace

int RunStatus(const StatusFlags& flags, Console& console) {
  std::string answer;
  if (const absl::Status status = AdminClient(flags.target).Call("GetStatus", "", &answer); !status.ok()) {
    return AdminFailure(status, console);
  }
  try {
    const nlohmann::json status = nlohmann::json::parse(answer);
    console.Print(flags.json ? status.dump(2) + "\n" : Table(status));
  } catch (const nlohmann::json::exception& error) {
    console.Error(absl::StrFormat("the server's status cannot be read: %s", error.what()),
                  "is it of another version?");
    return kFailed;
  }
  return kOk;
}

}  // namespace curtail::tool
