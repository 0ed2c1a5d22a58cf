// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/app_under_test.h"

#include <unistd.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/rpc/admin/admin.curtail.h"
#include "curtail/rpc/channel.h"

namespace curtail::deploy {
namespace {

constexpr Nanos kDrain = std::chrono::seconds(20);
constexpr useconds_t kLookAgainUs = 1000;

// The calls that the clients of a server have open, but for the one that asks.
absl::StatusOr<uint64_t> OpenCalls(const std::string& admin, Deadline deadline) {
  Client client;
  Channel channel(&client, admin);
  Context ctx(deadline);
  admin::v1::GetStatusReply reply;
  absl::Status status = admin::v1::Admin::Stub(&channel).GetStatus(ctx, {}, &reply);
  if (!status.ok()) return status;
  return std::max<uint64_t>(reply.open_calls(), 1) - 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AppUnderTest>> AppUnderTest::Start(Topology topology, AppOptions options) {
  DeploymentOptions deployment = {.admin = options.admin,
                                  .sockets = true,
                                  .to_stderr = true,
                                  .flags = std::move(options.flags),
                                  .launch = options.launch};
  for (const ServiceSpec& service : topology.services) {
    const bool starts = options.only.empty() || std::ranges::count(options.only, service.name) > 0;
    if (!starts) deployment.later.insert(service.name);
  }
  std::unique_ptr<AppUnderTest> app(new AppUnderTest(std::move(topology), std::move(options.launch)));
  if (app->folder_.path().empty()) return absl::InternalError("cannot make a folder for sockets");
  deployment.folder = app->folder_.path();
  auto started = Deployment::Start(app->topology_, std::move(deployment), app->stop_);
  if (!started.ok()) return started.status();
  app->deployment_ = *std::move(started);
  return app;
}

void AppUnderTest::Stall(const std::string& service) const {
  for (const Instance& instance : deployment_->instances()) {
    if (instance.service->name == service && instance.process != nullptr) instance.process->Pause();
  }
}

void AppUnderTest::GoOn(const std::string& service) const {
  for (const Instance& instance : deployment_->instances()) {
    if (instance.service->name == service && instance.process != nullptr) instance.process->Resume();
  }
}

absl::Status AppUnderTest::Restart(const std::string& service, const Launch& launch) {
  return deployment_->Restart(service, launch, kDrain);
}

absl::Status AppUnderTest::AwaitQuiet(Deadline deadline) const {
  // Callers first: what they have open keeps those that they call busy.
  for (const Instance& instance : std::views::reverse(deployment_->instances())) {
    while (instance.process != nullptr && !instance.admin.empty()) {
      const absl::StatusOr<uint64_t> open = OpenCalls(instance.admin, deadline);
      if (!open.ok()) return open.status();
      if (*open == 0) break;
      if (deadline.Expired()) {
        return absl::DeadlineExceededError(absl::StrCat(instance.name, " has ", *open, " calls open"));
      }
      usleep(kLookAgainUs);
    }
  }
  return absl::OkStatus();
}

absl::Status AppUnderTest::Stop() {
  deployment_->Stop(kDrain);
  absl::Status status;
  for (const Instance& instance : deployment_->instances()) {
    if (instance.process != nullptr) status.Update(instance.process->End(Nanos(0)));
  }
  return status;
}

std::string AppUnderTest::AddressOf(const std::string& service, int instance) const {
  return deployment_->addresses().at(service).at(static_cast<size_t>(instance));
}

}  // namespace curtail::deploy
