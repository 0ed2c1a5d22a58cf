// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server.h"

#include <algorithm>

#include "curtail/rpc/admin/admin_pages.h"
#include "curtail/rpc/admin/admin_service.h"
#include "curtail/rpc/server/builtin/builtin_services.h"
#include "curtail/rpc/server/observe/call_tracer.h"
#include "curtail/rpc/server/server_core.h"

namespace curtail {

class Server::Impl {
 public:
  explicit Impl(ServerOptions options) : core(std::move(options)) {}
  // Observers of core; null without HTTP admin port, and without traces.
  std::unique_ptr<internal::CallMetrics> metrics;
  std::unique_ptr<internal::CallTracer> tracer;
  internal::ServerCore core;
  // After core: they refer to it.
  std::unique_ptr<internal::ServerCore> admin;
  internal::AdminPages pages;
  bool drained = false;
};

namespace {

// A server of its own, so that it answers when the other is busy, and listens where only operators get.
absl::StatusOr<std::unique_ptr<internal::ServerCore>> StartAdmin(const std::string& address,
                                                                 internal::ServerCore* core) {
  ServerOptions options;
  options.listen = {address};
  options.max_threads = 1;
  auto admin = std::make_unique<internal::ServerCore>(std::move(options));
  auto service = internal::NewAdminService(core);
  const std::string name(service->FullName());
  if (absl::Status added = admin->AddService(std::move(service)); !added.ok()) return added;
  const auto served = [raw = admin.get()](std::string_view path) { return raw->Serves(path); };
  for (auto& reflection : internal::NewReflectionServices({name}, false, served)) {
    if (absl::Status added = admin->AddService(std::move(reflection)); !added.ok()) return added;
  }
  if (absl::Status bound = admin->Bind(); !bound.ok()) return bound;
  if (absl::Status running = admin->Run(); !running.ok()) return running;
  return admin;
}

}  // namespace

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options,
                                                      std::vector<std::unique_ptr<Service>> services) {
  std::vector<std::string> names;
  for (const auto& service : services) {
    // Two may make one; see ServerCore::AddService().
    if (std::find(names.begin(), names.end(), service->FullName()) == names.end()) {
      names.emplace_back(service->FullName());
    }
  }
  auto impl = std::make_unique<Impl>(std::move(options));
  internal::ServerCore* const core = &impl->core;
  if (core->options().health) {
    services.push_back(internal::NewHealthService(names, [core] { return core->draining(); }));
  }
  if (core->options().reflection) {
    const auto served = [core](std::string_view path) { return core->Serves(path); };
    for (auto& reflection : internal::NewReflectionServices(names, core->options().health, served)) {
      services.push_back(std::move(reflection));
    }
  }
  for (auto& service : services) {
    if (absl::Status added = impl->core.AddService(std::move(service)); !added.ok()) return added;
  }
  if (absl::Status bound = impl->core.Bind(); !bound.ok()) return bound;
  const std::string http_admin = core->options().http_admin;
  if (!http_admin.empty()) {
    impl->metrics = std::make_unique<internal::CallMetrics>(core->methods());
    core->Observe(impl->metrics.get());
  }
  if (!core->options().trace.to.empty()) {
    auto tracer = internal::CallTracer::Start(core->options().trace, names, core->methods().InOrder().size());
    if (!tracer.ok()) return tracer.status();
    impl->tracer = *std::move(tracer);
    core->Observe(impl->tracer.get());
  }
  if (absl::Status running = impl->core.Run(); !running.ok()) return running;
  std::unique_ptr<Server> server(new Server(std::move(impl)));  // drains if what follows fails
  Impl& parts = *server->impl_;
  if (!core->options().admin.empty()) {
    auto admin = StartAdmin(core->options().admin, core);
    if (!admin.ok()) return admin.status();
    parts.admin = *std::move(admin);
  }
  if (!http_admin.empty()) {
    auto pages = internal::StartAdminPages(http_admin, core->options().admin_token, core, parts.metrics.get(),
                                           parts.tracer == nullptr ? nullptr : &parts.tracer->tracer());
    if (!pages.ok()) return pages.status();
    parts.pages = *std::move(pages);
  }
  return server;
}

Server::~Server() {
  if (!impl_->drained) Drain(Deadline::In(std::chrono::seconds(1))).IgnoreError();
}

const std::vector<std::string>& Server::addresses() const { return impl_->core.addresses(); }
std::string Server::admin_address() const { return impl_->admin ? impl_->admin->addresses()[0] : ""; }
std::string Server::http_admin_address() const { return impl_->pages.address; }
Config Server::config() const { return impl_->core.executor().config(); }
absl::Status Server::SwitchTo(const Config& config) { return impl_->core.SwitchTo(config); }

absl::Status Server::ReloadTls() {
  const auto& tls = impl_->core.options().tls;
  return tls == nullptr ? absl::FailedPreconditionError("this server has no TLS") : tls->Reload();
}

ServerStats Server::Sample(bool process) { return impl_->core.Sample(process); }

absl::Status Server::Drain(Deadline deadline) {
  impl_->drained = true;
  if (impl_->admin != nullptr) impl_->admin->Drain(Deadline::In(std::chrono::seconds(1))).IgnoreError();
  const absl::Status drained = impl_->core.Drain(deadline);  // /readyz says so meanwhile
  impl_->pages.http.reset();
  return drained;
}

}  // namespace curtail
