// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: a thread reads all instances once a second, for as long as a browser has asked within kWatched. The pages hand
// out its latest document, so any number of browsers costs the instances the same, and no page waits for an instance.
#include "tools/curtail/observe/dashboard.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/boundary.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/signals.h"
#include "curtail/observe/dashboard.h"
#include "curtail/rpc/admin/admin_pages.h"
#include "tools/curtail/load/live_run.h"
#include "tools/curtail/observe/page_reader.h"

namespace curtail::tool {

using observe::DashboardInstance;
using observe::HttpAdminPage;
using observe::HttpAdminReply;
using observe::HttpAdminStats;
using wire::HttpRequest;

namespace {

constexpr Nanos kEvery = std::chrono::seconds(1);
constexpr Nanos kReadTime = std::chrono::milliseconds(500);
constexpr Nanos kWatched = std::chrono::seconds(10);
constexpr Nanos kSameText = std::chrono::milliseconds(250);
constexpr std::string_view kJson = "application/json";

std::vector<observe::DashboardService> GraphOf(const deploy::Topology& topology) {
  std::vector<observe::DashboardService> services;
  for (const deploy::ServiceSpec& spec : topology.services) {
    observe::DashboardService& service = services.emplace_back();
    service.name = spec.name;
    service.entry = spec.entry;
    for (const deploy::Wiring& call : spec.calls) {  // a group is called once a member
      if (std::ranges::count(service.calls, call.service) == 0) service.calls.push_back(call.service);
    }
  }
  return services;
}

DashboardInstance InstanceOf(const ProcessState& process) {
  return {.name = process.name,
          .service = process.service,
          .state = process.state,
          .pid = process.pid,
          .address = process.address,
          .restarts = process.restarts,
          .problem = process.problem};
}

}  // namespace

class Dashboard::Impl {
 public:
  Impl(std::string application, std::vector<observe::DashboardService> services)
      : application_(std::move(application)), services_(std::move(services)) {}
  ~Impl();

  absl::Status Begin(const std::string& text);
  const std::string& address() const { return pages_.address; }
  void Update(const UpState& state);

 private:
  struct Sample {
    observe::DashboardView view;
    std::string traces = "[]";
    TimePoint at;
  };

  static constexpr uint32_t kStopping = Parker::Signal(0);

  void Run();
  // Until somebody notifies, or until `deadline`. True once it shall end.
  bool Sleep(uint32_t ticket, Deadline deadline);
  Sample Read(const UpState& state, bool traces) const;
  wire::HttpReply Document();
  wire::HttpReply Traces();

  // Immutable once it has begun.
  const std::string application_;
  const std::vector<observe::DashboardService> services_;
  internal::AdminPages pages_;

  Mutex mu_;
  UpState state_ CURTAIL_GUARDED_BY(mu_);
  Sample latest_ CURTAIL_GUARDED_BY(mu_);
  std::string document_ CURTAIL_GUARDED_BY(mu_);  // of this sample, until then
  uint64_t document_of_ CURTAIL_GUARDED_BY(mu_) = 0;
  TimePoint document_until_ CURTAIL_GUARDED_BY(mu_);
  // When a browser asked last.
  TimePoint watched_ CURTAIL_GUARDED_BY(mu_);
  TimePoint traces_watched_ CURTAIL_GUARDED_BY(mu_);

  Parker wake_;  // of the thread: a browser asks again, or the end
  std::thread thread_;
};

Dashboard::Impl::~Impl() {
  pages_.http.reset();
  wake_.Notify(kStopping);
  if (thread_.joinable()) thread_.join();
}

absl::Status Dashboard::Impl::Begin(const std::string& text) {
  {
    const MutexLock lock(mu_);
    latest_.view.application = application_;
    latest_.view.services = services_;
  }
  std::vector<HttpAdminPage> pages = observe::DashboardPages(absl::StrCat(
      "the dashboard of ", application_, " is for a browser; its data: /dashboard.json, /traces\n"));
  pages.push_back(
      {"/dashboard.json", [this](const HttpRequest&, const HttpAdminStats&) { return Document(); }});
  pages.push_back({"/traces", [this](const HttpRequest&, const HttpAdminStats&) { return Traces(); }});
  absl::StatusOr<internal::AdminPages> port = internal::StartAdminPort(text, /*token=*/"", std::move(pages));
  if (!port.ok()) return port.status();
  pages_ = *std::move(port);
  const SignalsKeptOut keep_out;
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Dashboard::Impl::Update(const UpState& state) {
  const MutexLock lock(mu_);
  state_ = state;
}

bool Dashboard::Impl::Sleep(uint32_t ticket, Deadline deadline) {
  if ((ticket & kStopping) == 0) wake_.Wait(ticket, deadline);
  return (wake_.Ticket() & kStopping) != 0;
}

void Dashboard::Impl::Run() {
  while (true) {
    // Before the look at what a notifier has changed.
    const uint32_t ticket = wake_.Ticket();
    const TimePoint now = Now();
    MutexLock lock(mu_);
    const bool watched = now <= watched_ + kWatched, traces = now < traces_watched_ + kWatched;
    const UpState state = state_;
    lock.Unlock();
    if (!watched) {
      if (Sleep(ticket, Deadline::Infinite())) return;
      continue;
    }
    Sample sample;
    if (Contain("dashboard", [&] { sample = Read(state, traces); })) {
      lock.Lock();
      sample.view.sample = latest_.view.sample + 1;
      latest_ = std::move(sample);
      lock.Unlock();
    }
    for (const TimePoint next = now + kEvery; Now() < next;) {
      if (Sleep(wake_.Ticket(), Deadline::At(next))) return;
    }
  }
}

Dashboard::Impl::Sample Dashboard::Impl::Read(const UpState& state, bool traces) const {
  Sample sample;
  sample.view.application = application_;
  sample.view.services = services_;
  sample.view.traces = true;
  std::vector<PageWanted> wanted;
  for (const ProcessState& process : state.processes) {
    if (process.http_admin.empty() || process.pid == 0) continue;
    wanted.push_back({process.http_admin, "/status.json"});
    wanted.push_back({process.http_admin, "/metrics"});
    if (traces) wanted.push_back({process.http_admin, "/traces"});
  }
  std::vector<absl::StatusOr<std::string>> bodies = ReadPages(wanted, Deadline::In(kReadTime));
  std::string spans;
  size_t next = 0;
  for (const ProcessState& process : state.processes) {
    DashboardInstance& instance = sample.view.instances.emplace_back(InstanceOf(process));
    if (process.http_admin.empty() || process.pid == 0) continue;
    for (std::string* const body : {&instance.status, &instance.metrics}) {
      absl::StatusOr<std::string>& read = bodies[next++];
      if (read.ok()) *body = *std::move(read);
      else instance.error = std::string(Message(read.status()));
    }
    if (!traces) continue;
    // Each is a document of a service of ours; one without traces answers 404.
    if (bodies[next].ok()) absl::StrAppend(&spans, spans.empty() ? "" : ",", *bodies[next]);
    ++next;
  }
  sample.view.loads = ReadLiveRuns(RunFolderOf(application_));
  sample.traces = absl::StrCat("[", spans, "]\n");
  sample.at = Now();
  return sample;
}

wire::HttpReply Dashboard::Impl::Document() {
  const MutexLock lock(mu_);
  const bool first = watched_ + kWatched < Now();
  watched_ = Now();
  if (first) wake_.Notify();
  observe::DashboardView& view = latest_.view;
  // Readers who ask more often get the same text: to make it takes a millisecond, and Update() waits meanwhile.
  if (view.sample != document_of_ || Now() >= document_until_) {
    document_of_ = view.sample;
    document_until_ = Now() + kSameText;
    view.age_ms = view.sample == 0 ? 0 : (Now() - latest_.at) / std::chrono::milliseconds(1);
    document_ = observe::DashboardJson(view);
  }
  return HttpAdminReply(200, kJson, document_);
}

wire::HttpReply Dashboard::Impl::Traces() {
  const MutexLock lock(mu_);
  watched_ = traces_watched_ = Now();
  wake_.Notify();
  return HttpAdminReply(200, kJson, latest_.traces);
}

absl::StatusOr<std::unique_ptr<Dashboard>> Dashboard::Start(const std::string& text, std::string application,
                                                            std::vector<observe::DashboardService> services) {
  auto impl = std::make_unique<Impl>(std::move(application), std::move(services));
  if (absl::Status begun = impl->Begin(text); !begun.ok()) return begun;
  return std::unique_ptr<Dashboard>(new Dashboard(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<Dashboard>> Dashboard::Start(const std::string& text,
                                                            const deploy::Topology& topology) {
  return Start(text, topology.application, GraphOf(topology));
}

Dashboard::Dashboard(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dashboard::~Dashboard() = default;
const std::string& Dashboard::address() const { return impl_->address(); }
void Dashboard::Update(const UpState& state) { impl_->Update(state); }

}  // namespace curtail::tool
