// SPDX-License-Identifier: Apache-2.0
#include "ps_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin_client.h"
#include "curtail/base/strings.h"
#include "deployment.h"
#include "exit_code.h"
#include "nlohmann/json.hpp"
#include "run_folder.h"

namespace curtail::tool {
namespace {

// One that takes longer does not serve well enough to be called healthy.
constexpr Nanos kHealthTimeout = std::chrono::milliseconds(500);

// A process as it is now.
struct Row {
  ProcessState process;
  std::string health;  // "serving", "not serving", "-"
  std::string config;  // in force
  double cpu_s = 0;
  double resident_mib = 0;
};

double ResidentMib(pid_t pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/statm"));
  double total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024.0 * 1024.0);
}

Row LookAt(const ProcessState& process) {
  Row row{.process = process, .health = "-", .config = process.under};
  const bool grpc = process.protocol == "grpc";
  if (grpc && process.state != StateName(Instance::State::kWaiting)) {
    row.health = IsServing(process.address, kHealthTimeout) ? "serving" : "not serving";
  }
  if (row.health == "serving" && !process.admin.empty()) {
    std::string config;
    if (AdminClient(process.admin).Call("GetConfig", "", &config, kHealthTimeout).ok()) {
      // Under a policy both matter.
      row.config = process.under.empty() || process.under == config
                       ? config
                       : absl::StrCat(process.under, " ", config);
    }
  }
  if (process.pid > 0) {
    row.cpu_s = static_cast<double>(CpuOf(process.pid).count()) / 1e9;
    row.resident_mib = ResidentMib(process.pid);
  }
  return row;
}

std::string Age(int64_t since_unix_ms) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t s = std::max<int64_t>(
      0, (std::chrono::duration_cast<std::chrono::milliseconds>(now).count() - since_unix_ms) / 1000);
  if (s < 120) return absl::StrFormat("%d s", s);
  return s < 7200 ? absl::StrFormat("%d min", s / 60) : absl::StrFormat("%d h", s / 3600);
}

std::string Table(const UpState& state, const std::vector<Row>& rows) {
  size_t name = 4, address = 7, config = 6;
  for (const Row& row : rows) {
    name = std::max(name, row.process.name.size());
    address = std::max(address, row.process.address.size());
    config = std::max(config, row.config.size());
  }
  std::string text = absl::StrFormat("%s, up for %s, looked after by process %d\n", state.application,
                                     Age(state.started_unix_ms), state.pid);
  absl::StrAppendFormat(&text, "%-*s %8s %-9s %-11s %-*s %-*s %8s %9s %8s\n", name, "NAME", "PID", "STATE",
                        "HEALTH", address, "ADDRESS", config, "CONFIG", "CPU", "MEMORY", "RESTARTS");
  for (const Row& row : rows) {
    const ProcessState& p = row.process;
    absl::StrAppendFormat(&text, "%-*s %8s %-9s %-11s %-*s %-*s %6.1f s %5.0f MiB %8d\n", name, p.name,
                          p.pid > 0 ? absl::StrCat(p.pid) : "-", p.state, row.health, address, p.address,
                          config, row.config.empty() ? "-" : row.config, row.cpu_s, row.resident_mib,
                          p.restarts);
  }
  return text;
}

nlohmann::ordered_json Json(const UpState& state, const std::vector<Row>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(ToJson(state));
  for (size_t i = 0; i < rows.size(); ++i) {
    json["processes"][i]["health"] = rows[i].health;
    json["processes"][i]["config"] = rows[i].config;
    json["processes"][i]["cpu_s"] = rows[i].cpu_s;
    json["processes"][i]["resident_mib"] = rows[i].resident_mib;
  }
  return json;
}

}  // namespace

int RunPs(const PsFlags& flags, Console& console) {
  std::vector<std::string> names = ApplicationsUp();
  if (!flags.application.empty()) names = {flags.application};
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::StatusOr<UpState> state = ReadUpState(names[i]);
    if (!state.ok()) {
      console.Error(std::string(Message(state.status())), "");
      return kFailed;
    }
    std::vector<Row> rows;
    for (const ProcessState& process : state->processes) rows.push_back(LookAt(process));
    if (flags.json) {
      all.push_back(Json(*state, rows));
    } else {
      console.Print(absl::StrCat(i == 0 ? "" : "\n", Table(*state, rows)));
    }
  }
  if (flags.json) {
    console.Print(all.dump(2) + "\n");
  } else if (names.empty()) {
    console.Print("nothing is up\n");
  }
  return kOk;
}

}  // namespace curtail::tool
