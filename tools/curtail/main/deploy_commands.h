// SPDX-License-Identifier: Apache-2.0
//
// deploy_commands.h - the commands for what runs, here or on a cluster, and their flags; command_line.cc has the others.
#pragma once

namespace CLI {
class App;
}

namespace curtail::tool {

struct DownFlags;
struct NewFlags;
struct FailoverFlags;
struct ScaleFlags;
struct RelayFlags;
struct LogsFlags;
struct ObserveFlags;
struct ProvisionFlags;
struct PsFlags;
struct RenderFlags;
struct StatusFlags;
struct SwitchFlags;
struct TopFlags;
struct DashboardFlags;
struct TracesFlags;
struct UpFlags;

// Each adds its command to `app`, which owns it. Parsing writes into `f`, which outlives it.
CLI::App* AddUp(CLI::App& app, UpFlags* f);
CLI::App* AddNew(CLI::App& app, NewFlags* f);
CLI::App* AddDown(CLI::App& app, DownFlags* f);
CLI::App* AddScale(CLI::App& app, ScaleFlags* f);
CLI::App* AddFailover(CLI::App& app, FailoverFlags* f);
CLI::App* AddRelay(CLI::App& app, RelayFlags* f);
CLI::App* AddProvision(CLI::App& app, ProvisionFlags* f);
CLI::App* AddPs(CLI::App& app, PsFlags* f);
CLI::App* AddLogs(CLI::App& app, LogsFlags* f);
CLI::App* AddSwitch(CLI::App& app, SwitchFlags* f);
CLI::App* AddStatus(CLI::App& app, StatusFlags* f);
CLI::App* AddObserve(CLI::App& app, ObserveFlags* f);
CLI::App* AddTop(CLI::App& app, TopFlags* f);
CLI::App* AddDashboard(CLI::App& app, DashboardFlags* f);
CLI::App* AddTraces(CLI::App& app, TracesFlags* f);
CLI::App* AddRender(CLI::App& app, RenderFlags* f);

}  // namespace curtail::tool
