// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/app_under_test.h"

#include <unistd.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/rpc/admin/admin.pb.h"

namespace curtail::deploy {
namespace {

constexpr Nanos kDrain = std::chrono::seconds(20);
constexpr Nanos kDrainOfAll = std::chrono::seconds(60);  // which end one after the other
constexpr useconds_t kLookAgainUs = 1000;

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

void AppUnderTest::Stall(const std::string& service, int number) const {
  for (const Instance& instance : deployment_->instances()) {
    if (instance.Is(service, number) && instance.process != nullptr) instance.process->Pause();
  }
}

void AppUnderTest::GoOn(const std::string& service, int number) const {
  for (const Instance& instance : deployment_->instances()) {
    if (instance.Is(service, number) && instance.process != nullptr) instance.process->Resume();
  }
}

absl::Status AppUnderTest::Restart(const std::string& service, const Launch& launch, int instance) {
  return deployment_->Restart(service, launch, kDrain, instance);
}

absl::Status AppUnderTest::AwaitQuiet(Deadline deadline) const {
  // Callers first: what they have open keeps those that they call busy.
  for (const Instance& instance : std::views::reverse(deployment_->instances())) {
    while (instance.process != nullptr && !instance.admin.empty()) {
      const auto status = AdminClient(instance.admin).GetStatus();
      const bool other_host = absl::IsUnavailable(status.status()) && !instance.service->variant.empty();
      if (other_host) break;  // hosts in other languages have no admin port
      if (!status.ok()) return status.status();
      if (status->open_calls() <= 1) break;  // this very call is open
      if (deadline.Expired()) {
        return absl::DeadlineExceededError(
            absl::StrCat(instance.name, " has ", status->open_calls() - 1, " calls open"));
      }
      usleep(kLookAgainUs);
    }
  }
  return absl::OkStatus();
}

absl::Status AppUnderTest::Stop() {
  deployment_->Stop(kDrainOfAll);
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
