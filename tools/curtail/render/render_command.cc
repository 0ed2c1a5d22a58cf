// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/render_command.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/strings.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/render/manifests.h"

namespace curtail::tool {
namespace {

std::vector<RenderedFile> Rendered(const RenderFlags& flags, const Plan& plan) {
  if (flags.to == "kubernetes") return PlainManifests(plan);
  if (flags.to == "compose") return ComposeFile(plan);
  return HelmChart(plan);
}

absl::Status WriteFiles(const std::string& folder, const std::vector<RenderedFile>& files, Console& console) {
  for (const RenderedFile& file : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / file.path;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      return absl::InvalidArgumentError(absl::StrCat(path.parent_path().string(), ": ", error.message()));
    }
    if (absl::Status written = console.DeliverTo(path.string(), file.text); !written.ok()) return written;
  }
  return absl::OkStatus();
}

// Says which secrets must be there before the application starts: no file of it can hold them.
void NoteSecrets(const RenderFlags& flags, const Plan& plan, Console& console) {
  std::set<std::string> secrets;
  for (const ServicePlan& service : plan.services) {
    for (const auto& [secret, flag] : service.spec->secrets) secrets.insert(secret);
  }
  for (const std::string& secret : secrets) {
    console.Note(flags.to == "compose"
                     ? absl::StrCat("needs a secret: openssl rand -out ", secret,
                                    " 32, readable for its group ", kUser)
                     : absl::StrCat("needs a secret: kubectl create secret generic ",
                                    plan.topology.application, "-", secret, " --from-literal=", secret,
                                    "=$(openssl rand -hex 32)"));
  }
}

}  // namespace

int RunRender(const RenderFlags& flags, Console& console) {
  const auto fail = [&console](const absl::Status& status, const std::string& hint) {
    console.Error(std::string(Message(status)), hint);
    return kBadConfig;
  };
  if (flags.to == "helm" && flags.output.empty()) {
    return fail(absl::InvalidArgumentError("a chart is several files"), "say where: --output DIR");
  }
  absl::StatusOr<deploy::Topology> topology = apps::LoadTopology(flags.application, flags.changes);
  if (!topology.ok()) return fail(topology.status(), "");
  if (absl::Status whole = topology->Check(); !whole.ok()) return fail(whole, "");
  const absl::StatusOr<Plan> plan = MakePlan(*std::move(topology), flags.options);
  if (!plan.ok()) return fail(plan.status(), "docs/kubernetes.md says how a topology maps to a cluster");
  const std::vector<RenderedFile> files = Rendered(flags, *plan);
  NoteSecrets(flags, *plan, console);
  if (flags.output.empty()) {
    std::string all;
    for (const RenderedFile& file : files) all += file.text;
    const absl::Status delivered = console.Deliver(all);
    return delivered.ok() ? kOk : (console.Error(std::string(Message(delivered)), ""), kFailed);
  }
  if (absl::Status written = WriteFiles(flags.output, files, console); !written.ok()) {
    return fail(written, "--output takes a folder that can be written to");
  }
  const char* const next = flags.to == "kubernetes" ? "kubectl apply -f "
                           : flags.to == "helm"     ? "helm install NAME "
                                                    : "docker compose up --detach, in ";
  console.Print(absl::StrCat(files.size(), " files in ", flags.output, "; next: ", next, flags.output, "\n"));
  return kOk;
}

}  // namespace curtail::tool
