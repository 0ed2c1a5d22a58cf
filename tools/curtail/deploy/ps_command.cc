// SPDX-License-Identifier: Apache-2.0
//
// `curtail ps`: the processes of the applications that are up, and how they are.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/shipped/application.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/deploy/deployment.h"
#include "curtail/deploy/process/process_usage.h"
#include "curtail/deploy/readiness.h"
#include "curtail/deploy/service_tls.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/screen.h"
#include "tools/curtail/term/table.h"

namespace curtail::tool {
namespace {

struct PsFlags {
  std::string application;  // empty: all
  bool json = false;
};

// One that takes longer does not serve well enough to be called healthy.
constexpr Nanos kLookTimeout = std::chrono::milliseconds(500);

ProcessLook LookAt(const ProcessState& process, const std::string& folder) {
  ProcessLook row{.health = "-", .config = process.under};
  const bool grpc = process.protocol == "grpc";
  if (grpc && process.state != deploy::StateName(deploy::Instance::State::kWaiting)) {
    const auto tls = deploy::TlsToCall(folder, process.service);
    const absl::Status health =
        tls.ok() ? deploy::CheckHealth(process.address, kLookTimeout, *tls) : tls.status();
    if (!absl::IsUnimplemented(health))
      row.health = health.ok() ? "serving" : absl::IsDeadlineExceeded(health) ? "no answer" : "not serving";
  }
  if (row.health == "serving" && !process.admin.empty()) {
    const absl::StatusOr<std::string> config = deploy::AdminClient(process.admin).GetConfig(kLookTimeout);
    if (config.ok()) {
      // Under a policy both matter.
      row.config = process.under.empty() || process.under == *config
                       ? *config
                       : absl::StrCat(process.under, " ", *config);
    }
  }
  if (process.pid > 0) {
    row.cpu_s = static_cast<double>(deploy::CpuOf(process.pid).count()) / 1e9;
    row.resident_mib = deploy::ResidentMib(process.pid);
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

// `room` as TableLines() takes it.
std::string Table(const UpState& state, size_t room) {
  std::vector<TableColumn> columns = {{"NAME", 0, true},   {"PID", 5},           {"STATE", 1, true},
                                      {"HEALTH", 2, true}, {"ADDRESS", 3, true}, {"CONFIG", 4, true},
                                      {"CPU S", 6},        {"MIB", 7},           {"RESTARTS", 8},
                                      {"ADMIN", 9, true},  {"HTTP", 10, true}};
  // Only where there is one.
  const bool has_variants = std::ranges::any_of(
      state.processes, [](const std::string& variant) { return !variant.empty(); }, &ProcessState::variant);
  if (has_variants) columns.push_back({"VARIANT", 11, true});
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  std::string ends;
  std::vector<TableRow> rows;
  for (const ProcessState& p : state.processes) {
    const ProcessLook& look = *p.look;
    rows.push_back({{p.name, p.pid > 0 ? absl::StrCat(p.pid) : "-", p.state, look.health, p.address,
                     or_dash(look.config), NumberCell(look.cpu_s, 1), NumberCell(look.resident_mib, 0),
                     absl::StrCat(p.restarts), or_dash(p.admin), or_dash(p.http_admin)}});
    if (has_variants) rows.back().cells.push_back(or_dash(p.variant));
    if (p.problem.empty()) continue;
    absl::StrAppend(&ends, p.name, " ", p.problem.substr(0, p.problem.find('\n')), ", ",
                    Age(p.problem_unix_ms), " ago\n");
  }
  return absl::StrCat(state.application, ", up for ", Age(state.started_unix_ms),
                      ", looked after by process ", state.pid, "\n",
                      PlainText(TableLines(columns, std::move(rows), room)), ends);
}

// Returns the exit code.
int RunPs(const PsFlags& flags, Console& console) {
  if (const std::string wrong = NotAnApplication("ps", flags.application); !wrong.empty()) {
    console.Error(wrong, "");
    return kBadConfig;
  }
  if (const std::string note = OtherRunFolder(); !note.empty()) console.Note(note);
  std::vector<std::string> names = ApplicationsUp();
  if (!flags.application.empty()) names = {flags.application};
  const size_t room = console.has_terminal() ? TerminalSize().columns : 0;
  std::string json, tables;
  for (const std::string& name : names) {
    absl::StatusOr<UpState> state = ReadUpState(name);
    // One that is starting or ending now has no state to show.
    if (absl::IsNotFound(state.status()) && flags.application.empty()) continue;
    if (!state.ok()) {
      console.Error(std::string(Message(state.status())), "");
      return apps::IsApplication(name) || WasUp(name) ? kFailed : kBadConfig;
    }
    for (ProcessState& process : state->processes) process.look = LookAt(process, RunFolderOf(name));
    absl::StrAppend(&json, json.empty() ? "" : ",\n", ToJson(*state));
    absl::StrAppend(&tables, tables.empty() ? "" : "\n", Table(*state, room));
  }
  if (flags.json) {
    console.Print(absl::StrCat("[", json, "]\n"));
  } else {
    console.Print(tables.empty() ? "nothing is up\n" : tables);
  }
  return kOk;
}

}  // namespace

Command AddPs(CLI::App& app) {
  const auto f = std::make_shared<PsFlags>();
  CLI::App* command = app.add_subcommand("ps", "The processes of the applications that are up");
  command->add_option("APP", f->application, "Of this one only");
  command->add_flag("--json", f->json, "As JSON");
  command->footer("Example: curtail ps --json");
  return {command, [f](const Invocation& given) { return RunPs(*f, given.console); }};
}

}  // namespace curtail::tool
